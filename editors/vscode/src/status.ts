import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Models } from "./models";
import { live, promptText, type Turn, type Turns } from "./turns";

// The status bar: what runs and what waits behind it, and a click that stops it; else the way to the transcript. The context
// key that keys and menus look at is kept here too.

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("fermata.status", vscode.StatusBarAlignment.Right, 100);
  private readonly subscriptions: { dispose(): void }[];
  private context = "";

  constructor(
    private readonly turns: Turns,
    private readonly models: Models,
  ) {
    this.item.name = "Fermata";
    this.subscriptions = [turns.onChange(() => this.update()), models.onChange(() => this.update())];
    this.update();
  }

  private update(): void {
    const running = this.turns.all().filter(live);
    const stopping = running.length > 0 && running.every((t) => t.phase === "stopping");
    this.draw(running, stopping);
    const now = stopping ? "stopping" : running.length > 0 ? "running" : "idle";
    if (now === this.context) return;
    this.context = now;
    // Behind the item, which is sent with the next tick: what a key means costs the window more than to show it.
    setTimeout(() => void vscode.commands.executeCommand("setContext", "fermata.turn", now));
  }

  private draw(running: Turn[], stopping: boolean): void {
    const model = this.models.chosen;
    const about = model === "" ? "" : l10n.t("Model: {0}", model);
    const newest = running.at(-1);
    if (newest === undefined) {
      this.show(`$(comment-discussion) ${model === "" ? "fermata" : model}`, [l10n.t("Open the transcript"), about], "fermata.openTranscript");
      return;
    }
    const waiting = running.flatMap((t) => t.messages).filter((m) => m.state === "queued").length;
    const text = stopping ? `$(loading~spin) ${l10n.t("stopping…")}` : `$(debug-stop) ${running.length > 1 ? l10n.t("Stop ({0} run)", running.length) : l10n.t("Stop")}`;
    this.show(waiting === 0 ? text : `${text} · ${l10n.t("{0} queued", waiting)}`, [promptText(newest.prompt), about], "fermata.stop");
  }

  /** Whatever is set of an item is sent to the window: not with each word of an answer. */
  private show(text: string, about: string[], command: string): void {
    const tooltip = about.filter(Boolean).join("\n");
    if (this.item.text === text && this.item.tooltip === tooltip && this.item.command === command) return;
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.accessibilityInformation = { label: text.replace(/\$\([^)]*\) /, "fermata: "), role: "button" };
    this.item.show();
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
    this.item.dispose();
  }
}
