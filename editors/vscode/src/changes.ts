import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import type { FileChange, TurnRevertResult } from "./protocol";
import type { Turn } from "./turns";
import { blobScheme } from "./documents";

// What a turn changed, in the native multi-diff editor, and taking it back.

export class Changes implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly subscription = vscode.workspace.registerTextDocumentContentProvider(blobScheme, this);

  constructor(
    private readonly daemon: Daemon,
    private readonly report: (err: unknown) => void,
  ) {}

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  async show(turn: Turn | undefined): Promise<void> {
    const r = await this.daemon.request("fermata/turn/changes", turn === undefined ? {} : { turn: turn.turn });
    if (r.files.length === 0) {
      void vscode.window.showInformationMessage(l10n.t("This turn changed no file."));
      return;
    }
    const resources = r.files.map((f): [vscode.Uri, vscode.Uri | undefined, vscode.Uri | undefined] => [
      vscode.Uri.parse(f.uri, true), this.side(r.turn, f, "before"), this.side(r.turn, f, "after"),
    ]);
    await vscode.commands.executeCommand("vscode.changes", l10n.t("Changes of the turn"), resources);
  }

  private side(turn: string, f: FileChange, side: "before" | "after"): vscode.Uri | undefined {
    if (f[side] === undefined) return undefined;
    const uri = vscode.Uri.from({ scheme: blobScheme, path: `/${f.path}`, query: `${turn} ${side}` });
    this.texts.set(uri.toString(), (side === "before" ? f.beforeText : f.afterText) ?? l10n.t("This is no text, or too long to be shown."));
    return uri;
  }

  async revert(turn: Turn | undefined, paths?: string[]): Promise<void> {
    const params = { ...(turn !== undefined && { turn: turn.turn }), ...(paths !== undefined && { paths }) };
    this.told(await this.daemon.request("fermata/turn/revert", params), l10n.t("reverted"));
  }

  /** Reverts some of the files of a turn. */
  async revertFiles(turn: Turn | undefined): Promise<void> {
    const r = await this.daemon.request("fermata/turn/changes", turn === undefined ? {} : { turn: turn.turn });
    const active = vscode.window.activeTextEditor?.document.uri.toString();
    const items = r.files.map((f) => ({
      label: f.path, description: `+${f.added} −${f.removed}`, detail: f.now === "changed" ? l10n.t("was changed since, and will be kept") : "", picked: f.uri === active,
    }));
    const picked = await vscode.window.showQuickPick(items, { canPickMany: true, title: l10n.t("Revert which files?") });
    if (picked === undefined || picked.length === 0) return;
    this.told(await this.daemon.request("fermata/turn/revert", { turn: r.turn, paths: picked.map((p) => p.label) }), l10n.t("reverted"));
  }

  private told(r: TurnRevertResult, what: string): void {
    const kept = r.files.filter((f) => f.state !== "reverted");
    const count = r.files.length - kept.length;
    const message = [count === 1 ? l10n.t("1 file {0}.", what) : l10n.t("{0} files {1}.", count, what), ...kept.map((f) => `${f.path}: ${f.why ?? f.state}`)].join(" ");
    if (r.revert === undefined) {
      void vscode.window.showWarningMessage(message);
      return;
    }
    const revert = r.revert;
    const undo = l10n.t("Undo");
    void vscode.window.showInformationMessage(message, undo).then(async (choice) => {
      if (choice === undo) this.told(await this.daemon.request("fermata/turn/revert", { revert }), l10n.t("put back"));
    }).then(undefined, this.report);
  }

  dispose(): void {
    this.subscription.dispose();
  }
}
