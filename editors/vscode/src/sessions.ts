import * as fs from "node:fs";
import * as vscode from "vscode";
import type { Daemon } from "./daemon";
import { kindOf } from "./daemon";
import type { Turns } from "./turns";

// Which session a question goes to. One is in use for each workspace folder; which, is remembered across reloads.

export class Sessions implements vscode.Disposable {
  private readonly followed = new Set<string>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly memento: vscode.Memento,
    private readonly daemon: Daemon,
    private readonly turns: Turns,
    /** More sessions to follow again with a new daemon. */
    private readonly more: () => string[],
  ) {
    this.subscriptions = [
      daemon.onState((state) => {
        if (state === "stopped") {
          this.followed.clear();
          return;
        }
        const current = this.roots().map((root) => this.current(root)).filter((s) => s !== undefined);
        for (const session of new Set([...current, ...this.more()])) void this.follow(session).catch(() => undefined);
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        for (const session of this.followed) void this.daemon.request("fermata/session/mode", { session, mode: "default" }).catch(() => undefined);
      }),
    ];
  }

  private roots(): string[] {
    return [...(vscode.workspace.workspaceFolders ?? []).map((f) => f.uri.toString()), ""];
  }

  /** The workspace folder of a document, "" for none. */
  rootOf(uri?: vscode.Uri): string {
    const folder = (uri && vscode.workspace.getWorkspaceFolder(uri)) ?? vscode.workspace.workspaceFolders?.[0];
    return folder?.uri.toString() ?? "";
  }

  /** The workspace folder at a path as the daemon has it, which is without links; "" for none. */
  rootOfPath(root: string): string {
    return vscode.workspace.workspaceFolders?.find((f) => real(f.uri.fsPath) === root)?.uri.toString() ?? "";
  }

  /** The session in use for a root, without making one. */
  current(root: string): string | undefined {
    return this.memento.get<string>(`session:${root}`);
  }

  /** The session of a folder that was last asked in, by whatever client: for a window in which nothing was asked yet. */
  async newest(root: string): Promise<string | undefined> {
    if (root === "") return undefined;
    const r = await this.daemon.request("fermata/session/list", { workspace: root, limit: 20 });
    return r.sessions.find((s) => s.turns > 0)?.session;
  }

  async use(root: string, session: string): Promise<void> {
    await this.memento.update(`session:${root}`, session);
    await this.follow(session);
  }

  /** The session to ask in: the one in use, or a new one when that is busy, or gone. */
  async forQuestion(root: string): Promise<string> {
    const current = this.current(root);
    if (current !== undefined && this.turns.running(current) === undefined && (await this.follow(current))) return current;
    return this.create(root);
  }

  async create(root: string): Promise<string> {
    const s = await this.daemon.request("fermata/session/new", root === "" ? {} : { workspace: root });
    await this.use(root, s.session);
    return s.session;
  }

  /** Has the daemon tell of a session; false when there is no such session any more. */
  async follow(session: string): Promise<boolean> {
    if (this.followed.has(session)) return true;
    try {
      const opened = await this.daemon.request("fermata/session/open", { session, since: this.turns.seq(session) });
      // A workspace that is not trusted gets tools that only read, or none: nothing is asked in a session that is not told so.
      if (!vscode.workspace.isTrusted) await this.daemon.request("fermata/session/mode", { session, mode: "read-only" });
      this.followed.add(session);
      this.turns.read(session, opened.entries);
      return true;
    } catch (err) {
      if (kindOf(err) === "unknown_session") return false;
      throw err;
    }
  }

  forget(session: string): void {
    this.followed.delete(session);
    this.turns.forget(session);
    for (const root of this.roots()) if (this.current(root) === session) void this.memento.update(`session:${root}`, undefined);
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
  }
}

/** A path without links, as it is where there is no such file. */
function real(path: string): string {
  try {
    return fs.realpathSync.native(path);
  } catch {
    return path;
  }
}
