import * as vscode from "vscode";
import { l10n } from "vscode";
import { kindOf, type Daemon } from "./daemon";
import type { FileChange, TurnChangesParams, TurnChangesResult, TurnRevertResult } from "./protocol";
import { ReadonlyFiles } from "./readonlyfiles";
import type { Turn, Turns } from "./turns";

// What a turn changed, in the native multi-diff editor, and taking it back.

const blobScheme = "fermata-change";

export class Changes extends ReadonlyFiles {
  /** The turns that are shown, by how many changes were known of them then: one that runs goes on changing files. */
  private readonly shown = new Map<string, number>();
  private readonly asking = new Set<string>();
  private readonly subscription: { dispose(): void };

  constructor(
    private readonly daemon: Daemon,
    private readonly turns: Turns,
    private readonly report: (err: unknown) => void,
  ) {
    super(blobScheme);
    this.subscription = turns.onChange((t) => this.more(t));
  }

  protected override async load(uri: vscode.Uri): Promise<void> {
    const [turn = ""] = uri.query.split(" ");
    await this.fetch({ turn });
  }

  /** Asks for the changes of a turn, and keeps their sides: what of them is open already, and has changed, is shown anew. */
  private async fetch(of: TurnChangesParams): Promise<TurnChangesResult> {
    const edits = of.turn === undefined ? undefined : this.turns.get(of.turn)?.edits; // before it is asked: more can come meanwhile
    const r = await this.daemon.request("fermata/turn/changes", of);
    this.shown.set(r.turn, edits ?? this.turns.get(r.turn)?.edits ?? 0);
    for (const f of r.files) for (const side of ["before", "after"] as const) {
      const uri = sideOf(r.turn, f, side);
      if (uri !== undefined) this.put(uri, (side === "before" ? f.beforeText : f.afterText) ?? l10n.t("This is no text, or too long to be shown."));
    }
    return r;
  }

  /** Asks again, once at a time, as long as a turn that is shown has changed more. */
  private more(t: Turn): void {
    if (!this.shown.has(t.turn) || this.shown.get(t.turn) === t.edits || this.asking.has(t.turn)) return;
    this.asking.add(t.turn);
    this.fetch({ turn: t.turn }).then(() => {
      this.asking.delete(t.turn);
      if (this.turns.get(t.turn) === t) this.more(t);
    }, (err: unknown) => {
      this.asking.delete(t.turn);
      this.report(err);
    });
  }

  /** The turn that a document of the changes is of. */
  turnOf(uri: vscode.Uri): string | undefined {
    return uri.scheme === blobScheme ? uri.query.split(" ")[0] : undefined;
  }

  async show(of: TurnChangesParams): Promise<void> {
    const r = await this.of(of);
    if (r === undefined) return;
    const resources = r.files.map((f): [vscode.Uri, vscode.Uri | undefined, vscode.Uri | undefined] => [
      vscode.Uri.parse(f.uri, true), sideOf(r.turn, f, "before"), sideOf(r.turn, f, "after"),
    ]);
    await vscode.commands.executeCommand("vscode.changes", l10n.t("Changes of the turn"), resources);
  }

  /** The changes of a turn, undefined where there are none and the user was told so. */
  private async of(of: TurnChangesParams): Promise<TurnChangesResult | undefined> {
    const r = await this.fetch(of).catch(none);
    if (r !== undefined && r.files.length > 0) return r;
    void vscode.window.showInformationMessage(of.turn === undefined ? l10n.t("No file was changed here.") : l10n.t("This turn changed no file."));
    return undefined;
  }

  async revert(of: TurnChangesParams): Promise<void> {
    const r = await this.daemon.request("fermata/turn/revert", of).catch(none);
    if (r === undefined) void vscode.window.showInformationMessage(of.turn === undefined ? l10n.t("No file was changed here.") : l10n.t("This turn changed no file."));
    else this.told(r, l10n.t("reverted"));
  }

  /** Reverts some of the files of a turn. */
  async revertFiles(of: TurnChangesParams): Promise<void> {
    const r = await this.of(of);
    if (r === undefined) return;
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

  override dispose(): void {
    this.subscription.dispose();
    super.dispose();
  }
}

function sideOf(turn: string, f: FileChange, side: "before" | "after"): vscode.Uri | undefined {
  return f[side] === undefined ? undefined : vscode.Uri.from({ scheme: blobScheme, path: `/${f.path}`, query: `${turn} ${side}` });
}

/** That there is nothing to show or to revert is no error. */
function none(err: unknown): undefined {
  if (kindOf(err) !== "no_changes") throw err;
}
