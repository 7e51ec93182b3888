import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import type { Session } from "./protocol";
import type { Sessions } from "./sessions";
import { live, type Turns } from "./turns";

// The view with the sessions: those of the workspace's folders, newest first, or those that a search finds.

/** How many sessions are listed of a folder. */
const page = 100;

export class SessionView implements vscode.TreeDataProvider<Session>, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changes.event;
  private readonly view: vscode.TreeView<Session>;
  private readonly subscriptions: { dispose(): void }[];
  private query = "";
  private timer: NodeJS.Timeout | undefined;
  private readonly phases = new Map<string, string>();

  constructor(
    private readonly daemon: Daemon,
    private readonly sessions: Sessions,
    private readonly turns: Turns,
    private readonly forgotten: (session: string) => void,
  ) {
    this.view = vscode.window.createTreeView("fermata.sessions", { treeDataProvider: this });
    this.subscriptions = [
      this.view,
      turns.onChange((t) => {
        if (this.phases.get(t.turn) === t.phase) return;
        this.phases.set(t.turn, t.phase);
        this.refreshSoon();
      }),
      daemon.onState((state) => {
        if (state === "running") this.refreshSoon();
      }),
    ];
  }

  getTreeItem(s: Session): vscode.TreeItem {
    const item = new vscode.TreeItem(s.title || l10n.t("(no title)"));
    item.id = s.session;
    const running = this.turns.running(s.session);
    const current = this.sessions.current(this.sessions.rootOfPath(s.workspace)) === s.session;
    item.description = [current ? l10n.t("in use") : "", s.turns === 1 ? l10n.t("1 turn") : l10n.t("{0} turns", s.turns), when(s.updated)].filter(Boolean).join(" · ");
    item.tooltip = [s.title, s.workspace, s.session, s.parent !== undefined ? l10n.t("forked from {0}", s.parent) : ""].filter(Boolean).join("\n");
    item.iconPath = new vscode.ThemeIcon(running !== undefined && live(running) ? "sync~spin" : icon(s));
    item.contextValue = running !== undefined ? "running" : "session";
    item.command = { title: l10n.t("Open Transcript"), command: "fermata.openTranscript", arguments: [{ session: s.session }] };
    return item;
  }

  async getChildren(of?: Session): Promise<Session[]> {
    if (of !== undefined) return [];
    const roots = vscode.workspace.workspaceFolders?.map((f) => f.uri.toString()) ?? [undefined];
    const found: Session[] = [];
    for (const workspace of roots) {
      const r = await this.daemon.request("fermata/session/list", { limit: page, ...(workspace !== undefined && { workspace }), ...(this.query !== "" && { query: this.query }) });
      found.push(...r.sessions);
    }
    // With a message VS Code does not show what package.json has for an empty view.
    this.view.message = this.query === "" ? "" : l10n.t("Found by “{0}”: {1}", this.query, found.length);
    return found.sort((a, b) => (a.updated < b.updated ? 1 : -1));
  }

  refresh(): void {
    this.changes.fire(undefined);
  }

  /** The log is ahead of what is told by at most this: many events come at once. */
  private refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.view.visible) this.refresh();
    }, 300);
  }

  async search(): Promise<void> {
    const query = await vscode.window.showInputBox({ title: l10n.t("Find sessions"), prompt: l10n.t("Words of a title or a prompt. Leave it empty for all."), value: this.query });
    if (query === undefined) return;
    this.query = query.trim();
    void vscode.commands.executeCommand("setContext", "fermata.searched", this.query !== "");
    this.refresh();
    await vscode.commands.executeCommand("fermata.sessions.focus");
  }

  clear(): void {
    this.query = "";
    void vscode.commands.executeCommand("setContext", "fermata.searched", false);
    this.refresh();
  }

  /** Asks go to it from now on. */
  async use(s?: Session): Promise<void> {
    const session = s ?? (await this.pick(l10n.t("Use which session?")));
    if (session === undefined) return;
    await this.sessions.use(this.sessions.rootOfPath(session.workspace), session.session);
    this.refresh();
  }

  async rename(s?: Session): Promise<void> {
    const session = s ?? (await this.pick(l10n.t("Rename which session?")));
    if (session === undefined) return;
    const title = await vscode.window.showInputBox({ title: l10n.t("Rename session"), value: session.title, validateInput: (v) => (v.length > 200 ? l10n.t("At most 200 characters.") : undefined) });
    if (title === undefined || title.trim() === "") return;
    await this.daemon.request("fermata/session/rename", { session: session.session, title: title.trim() });
    this.refresh();
  }

  async fork(s?: Session): Promise<void> {
    const session = s ?? (await this.pick(l10n.t("Fork which session?")));
    if (session === undefined) return;
    const fork = await this.daemon.request("fermata/session/fork", { session: session.session });
    await this.sessions.use(this.sessions.rootOfPath(fork.workspace), fork.session);
    this.refresh();
    void vscode.window.showInformationMessage(l10n.t("Forked: what you ask next goes on in the fork. Files stay as they are."));
  }

  async delete(s?: Session): Promise<void> {
    const session = s ?? (await this.pick(l10n.t("Delete which session?")));
    if (session === undefined) return;
    const yes = l10n.t("Delete for Good");
    const title = session.title || l10n.t("(no title)");
    const question = session.turns === 1 ? l10n.t("Delete “{0}” with its turn? This cannot be undone.", title) : l10n.t("Delete “{0}” with its {1} turns? This cannot be undone.", title, session.turns);
    if ((await vscode.window.showWarningMessage(question, { modal: true }, yes)) !== yes) return;
    await this.daemon.request("fermata/session/delete", { session: session.session });
    this.sessions.forget(session.session);
    this.forgotten(session.session);
    this.refresh();
  }

  /** The next question begins a new session. */
  async begin(): Promise<void> {
    await this.sessions.create(this.sessions.rootOf(vscode.window.activeTextEditor?.document.uri));
    this.refresh();
  }

  private async pick(title: string): Promise<Session | undefined> {
    const items = (await this.getChildren()).map((s) => ({ label: s.title || l10n.t("(no title)"), description: when(s.updated), session: s }));
    return (await vscode.window.showQuickPick(items, { title, matchOnDescription: true }))?.session;
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const s of this.subscriptions) s.dispose();
    this.changes.dispose();
  }
}

function icon(s: Session): string {
  switch (s.lastOutcome) {
    case "stopped":
      return "debug-stop";
    case "failed":
      return "error";
    case "abandoned":
      return "debug-disconnect";
    case "completed":
      return "comment-discussion";
    default:
      return "comment"; // nothing was asked, or it runs elsewhere
  }
}

function when(at: string): string {
  return new Date(at).toLocaleString(vscode.env.language, { dateStyle: "short", timeStyle: "short" });
}
