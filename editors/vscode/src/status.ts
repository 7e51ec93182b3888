import * as vscode from "vscode";
import { l10n } from "vscode";
import { live, promptText, type Turns } from "./turns";

// The status bar: what runs, and a click that stops it; else the way to the transcript. The context key that keys and
// menus look at is kept here too.

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("fermata.status", vscode.StatusBarAlignment.Right, 100);
  private readonly subscription: { dispose(): void };
  private context = "";

  constructor(private readonly turns: Turns) {
    this.item.name = "Fermata";
    this.subscription = turns.onChange(() => this.update());
    this.update();
  }

  private update(): void {
    const running = this.turns.all().filter(live);
    const stopping = running.length > 0 && running.every((t) => t.phase === "stopping");
    const now = stopping ? "stopping" : running.length > 0 ? "running" : "idle";
    if (now !== this.context) {
      this.context = now;
      void vscode.commands.executeCommand("setContext", "fermata.turn", now);
    }
    const newest = running.at(-1);
    if (newest === undefined) {
      this.item.text = "$(comment-discussion) fermata";
      this.item.tooltip = l10n.t("Open the transcript");
      this.item.command = "fermata.openTranscript";
    } else {
      this.item.text = stopping ? `$(loading~spin) ${l10n.t("stopping…")}` : `$(debug-stop) ${running.length > 1 ? l10n.t("Stop ({0} run)", running.length) : l10n.t("Stop")}`;
      this.item.tooltip = promptText(newest.prompt);
      this.item.command = "fermata.stop";
    }
    this.item.show();
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }
}
