import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import type { FileChange, TurnChangesParams, TurnRevertResult } from "./protocol";

// What a turn changed, in the native multi-diff editor, and taking it back.

const blobScheme = "fermata-change";

export class Changes implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly texts = new Map<string, Uint8Array>();
  readonly onDidChangeFile = new vscode.EventEmitter<vscode.FileChangeEvent[]>().event; // what was before a turn and after it stays
  // A file system, which VS Code waits for when it opens again what was open before a reload.
  private readonly subscription = vscode.workspace.registerFileSystemProvider(blobScheme, this, { isReadonly: true });

  constructor(
    private readonly daemon: Daemon,
    private readonly report: (err: unknown) => void,
  ) {}

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const known = this.texts.get(uri.toString());
    if (known !== undefined) return known;
    const [turn = ""] = uri.query.split(" ");
    const r = await this.daemon.request("fermata/turn/changes", { turn });
    for (const f of r.files) for (const side of ["before", "after"] as const) this.side(turn, f, side);
    const text = this.texts.get(uri.toString());
    if (text === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    return text;
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const text = await this.readFile(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: text.length, permissions: vscode.FilePermission.Readonly };
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.FileNotADirectory(uri);
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  /** The turn that a document of the changes is of. */
  turnOf(uri: vscode.Uri): string | undefined {
    return uri.scheme === blobScheme ? uri.query.split(" ")[0] : undefined;
  }

  async show(of: TurnChangesParams): Promise<void> {
    const r = await this.daemon.request("fermata/turn/changes", of);
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
    this.texts.set(uri.toString(), Buffer.from((side === "before" ? f.beforeText : f.afterText) ?? l10n.t("This is no text, or too long to be shown.")));
    return uri;
  }

  async revert(of: TurnChangesParams): Promise<void> {
    this.told(await this.daemon.request("fermata/turn/revert", of), l10n.t("reverted"));
  }

  /** Reverts some of the files of a turn. */
  async revertFiles(of: TurnChangesParams): Promise<void> {
    const r = await this.daemon.request("fermata/turn/changes", of);
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
