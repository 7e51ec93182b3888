import * as vscode from "vscode";
import { l10n } from "vscode";
import { Boxes } from "./boxes";
import { Pace, ofThread } from "./pace";
import { moved } from "./places";
import { comments, control, lane, type Control, type Said } from "./words";
import { keepable, live, spoke, promptText, type Turn, type Turns } from "./turns";

// The inline conversation: a comment thread at the line where it was asked. The chain of a question and its redirects is
// one thread. Its reply box asks for the next question, or is the redirect lane. Threads that are open are remembered and
// shown again after a reload.
//
// Where the other box is needed, another thread is put in the place of the one that is shown: see boxes.ts.

/** After what time VS Code has sent what was set of a thread, in milliseconds, when no more was set since. */
const sent = 100;

/** How many questions in reply boxes are known to belong to their threads after a reload. */
const joinsKept = 200;

interface Shown {
  thread: vscode.CommentThread;
  lane: boolean;
  root: Turn;
  /** The turn that was changed last, and its phase. */
  state?: string;
  pace: Pace;
  /** Threads that this one is shown in place of: they go when it has come. */
  before: vscode.CommentThread[];
  leaving?: NodeJS.Timeout;
  /** The comments by turn and place: VS Code takes another object for another comment. */
  comments: Map<string, { said: Said; comment: vscode.Comment }>;
  /** The reply box is wanted, once it has come. */
  wanted?: true;
}

/** Where a thread stands now; the log says only where it was asked. */
interface Remembered {
  session: string;
  /** The file, where it was renamed. */
  uri?: string;
  range: [number, number, number, number];
}

export class Conversation implements vscode.Disposable {
  private readonly boxes: Boxes;
  private readonly threads = new Map<string, Shown>();
  private readonly closed = new Set<string>();
  private readonly remembered: Map<string, Remembered>;
  private stopping: string[] = [];
  private readonly subscriptions: { dispose(): void }[];

  constructor(
    private readonly turns: Turns,
    private readonly memento: vscode.Memento,
    log: vscode.LogOutputChannel,
  ) {
    this.boxes = new Boxes(log, () => this.renew());
    for (const [clientId, turn] of this.joins) turns.join(clientId, turn);
    this.remembered = new Map(Object.entries(memento.get<Record<string, Remembered>>("threads", {})));
    this.subscriptions = [turns.onChange((t) => this.changed(t)), vscode.workspace.onDidChangeTextDocument((e) => this.edited(e)), vscode.workspace.onDidRenameFiles((e) => this.renamed(e))];
  }

  /** The sessions whose threads were open before a reload. */
  get sessions(): string[] {
    return [...new Set([...this.remembered.values()].map((r) => r.session))];
  }

  /** Has the turn that is going to be started with a client id stand in the thread of a turn, also after a reload. */
  join(clientId: string, turn: Turn): void {
    this.turns.join(clientId, turn.turn);
    void this.memento.update("joins", [...this.joins, [clientId, turn.turn]].slice(-joinsKept));
  }

  private get joins(): [string, string][] {
    return this.memento.get<[string, string][]>("joins", []);
  }

  /** The turn that a thread's menus and reply box are about: the newest of its chain. */
  turnOf(thread: vscode.CommentThread): Turn | undefined {
    for (const s of this.threads.values()) if (s.thread === thread || s.before.includes(thread)) return this.newest(s.root);
    return undefined;
  }

  /** Where the thread of a turn stands now. */
  placeOf(turn: Turn): { uri: vscode.Uri; range: vscode.Range } | undefined {
    const thread = this.threads.get(this.turns.root(turn).turn)?.thread;
    return thread?.range && { uri: thread.uri, range: thread.range };
  }

  /** Closes a thread. What was said stays in the transcript. */
  close(thread: vscode.CommentThread): void {
    for (const s of this.threads.values()) if (s.thread === thread) this.drop(s);
  }

  /** Closes the threads of a session that was deleted. */
  forget(session: string): void {
    for (const s of this.threads.values()) if (s.root.session === session) this.drop(s);
    for (const [root, r] of this.remembered) if (r.session === session) this.remembered.delete(root);
    this.save();
  }

  private drop(s: Shown): void {
    this.threads.delete(s.root.turn);
    this.closed.add(s.root.turn); // what still comes does not open it again
    this.remembered.delete(s.root.turn);
    end(s);
    this.save();
  }

  /** Opens the lane of a turn's thread, with the cursor in it or not; false when it has none. */
  reveal(turn: Turn, focused: boolean): boolean {
    const s = this.threads.get(this.turns.root(turn).turn);
    if (s === undefined) return false;
    s.thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    if (focused) s.wanted = true;
    s.pace.now();
    return true;
  }

  /**
   * Puts the cursor into the reply box. VS Code has no API for it that is not a proposal, but a command for the thread at the
   * cursor's line, and one that goes on from there to the box. So it is done when that line is the thread's; nobody's cursor
   * is moved for it.
   */
  private async focus(s: Shown): Promise<void> {
    const { thread } = s;
    const here = (t: vscode.CommentThread): boolean => t.uri.toString() === thread.uri.toString() && t.range?.end.line === thread.range?.end.line;
    const editor = vscode.window.activeTextEditor;
    const alone = [...this.threads.values()].every((o) => o === s || !here(o.thread));
    if (!alone || editor?.document.uri.toString() !== thread.uri.toString() || editor.selection.end.line !== thread.range?.end.line) return;
    await vscode.commands.executeCommand("workbench.action.focusCommentOnCurrentLine");
    // A box that is just being made takes no keyboard, and one that has it keeps it.
    for (const wait of [0, 100, 300]) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      await vscode.commands.executeCommand("widgetNavigation.focusNext");
    }
  }

  private newest(root: Turn): Turn {
    return this.turns.chain(root).at(-1) ?? root;
  }

  private changed(t: Turn): void {
    const root = this.turns.root(t);
    let s = this.threads.get(root.turn);
    if (s === undefined) {
      // Threads are opened by what happens now, or were open before; not by all that a session holds from earlier.
      const before = this.remembered.get(root.turn);
      const wanted = live(t) ? !this.closed.has(root.turn) : before !== undefined;
      if (root.anchor === undefined || !wanted || vscode.workspace.getConfiguration("fermata").get<string>("inline", "comments") !== "comments") return;
      const a = root.anchor;
      const range = before !== undefined ? new vscode.Range(...before.range) : new vscode.Range(a.start_line, a.start_char, a.end_line, a.end_char);
      s = this.begin(root, vscode.Uri.parse(before?.uri ?? a.uri, true), range);
      this.threads.set(root.turn, s);
      this.remember(s);
      this.save();
    }
    if (t.phase === "stopping") void this.tellStopping();
    const state = `${t.turn} ${t.phase}`;
    if (s.state === state) s.pace.soon();
    else s.pace.now(); // what can be done has changed
    s.state = state;
  }

  private begin(root: Turn, uri: vscode.Uri, range: vscode.Range): Shown {
    const known: Shown["comments"] = new Map();
    const isLane = lane(this.newest(root));
    const s: Shown = {
      thread: this.create(uri, range, this.content(root, known).comments, isLane), lane: isLane, root, before: [], comments: known,
      pace: new Pace(() => this.show(s), () => this.taken(s), ofThread),
    };
    return s;
  }

  /** A thread that has its comments from the start: one without any would take the keyboard from the editor. */
  private create(uri: vscode.Uri, range: vscode.Range | undefined, comments: vscode.Comment[], lane: boolean): vscode.CommentThread {
    // The types want a range: VS Code takes none for a thread of the whole file, which no thread of ours is.
    const thread = this.boxes.thread(uri, range ?? new vscode.Range(0, 0, 0, 0), comments, lane);
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    return thread;
  }

  /** Tells VS Code's menus which threads are stopping: a thread's own context is only sent after a while. */
  private async tellStopping(): Promise<void> {
    const now = this.turns.all().filter((t) => t.phase === "stopping").map((t) => `running ${t.turn}`);
    if (now.join() === this.stopping.join()) return;
    this.stopping = now;
    await vscode.commands.executeCommand("setContext", "fermata.stopping", now);
  }

  /** Resolves when the window has taken all that it was sent before: commands are answered in their order. */
  private async taken(s: Shown): Promise<void> {
    await vscode.commands.executeCommand("setContext", "fermata.shown", true);
    await this.tellStopping();
    if (this.threads.get(s.root.turn) !== s) return; // it was closed meanwhile
    if (s.lane !== lane(this.newest(s.root))) {
      // Only now: a window that makes a reply box shows nothing else meanwhile, and what has happened is to be seen first.
      this.exchange(s);
      s.pace.now();
    } else if (s.wanted === true && s.lane) {
      delete s.wanted;
      this.focus(s).catch(() => undefined); // not waited for: it looks again for a while, and the window may go away meanwhile
    }
  }

  /** Puts a thread with the other reply box in place of the one that is shown. */
  private exchange(s: Shown): void {
    s.before.push(s.thread);
    s.lane = !s.lane;
    this.replace(s);
  }

  private replace(s: Shown, uri = s.thread.uri): void {
    const old = s.thread;
    s.thread = this.create(uri, old.range, [...old.comments], s.lane);
    s.thread.collapsibleState = old.collapsibleState;
  }

  /** Makes all threads again: the window has lost them. */
  private renew(): void {
    for (const s of this.threads.values()) {
      this.replace(s);
      s.pace.now();
    }
  }

  /** VS Code moves what it draws of a thread along with the text, and moves it back with the next update: so does this. */
  private edited(e: vscode.TextDocumentChangeEvent): void {
    const uri = e.document.uri.toString();
    let any = false;
    for (const s of this.threads.values()) {
      if (s.thread.uri.toString() !== uri || s.thread.range === undefined) continue;
      let span = { start: s.thread.range.start, end: s.thread.range.end };
      for (const c of e.contentChanges) span = moved(span, c.range, c.text) as typeof span;
      const range = new vscode.Range(span.start.line, span.start.character, span.end.line, span.end.character);
      if (range.isEqual(s.thread.range)) continue;
      s.thread.range = range;
      this.remember(s);
      any = true;
    }
    if (any) this.save();
  }

  /** A thread goes with its file, also with a folder of it. */
  private renamed(e: vscode.FileRenameEvent): void {
    for (const { oldUri, newUri } of e.files) {
      const from = oldUri.toString();
      for (const s of this.threads.values()) {
        const uri = s.thread.uri.toString();
        if (uri !== from && !uri.startsWith(`${from}/`)) continue;
        s.before.push(s.thread);
        this.replace(s, vscode.Uri.parse(newUri.toString() + uri.slice(from.length), true));
        this.remember(s);
        s.pace.now();
      }
    }
    this.save();
  }

  private remember(s: Shown): void {
    const r = s.thread.range;
    if (r === undefined) return;
    const uri = s.thread.uri.toString();
    this.remembered.set(s.root.turn, {
      session: s.root.session, range: [r.start.line, r.start.character, r.end.line, r.end.character], ...(uri !== s.root.anchor?.uri && { uri }),
    });
  }

  private save(): void {
    void this.memento.update("threads", Object.fromEntries(this.remembered));
  }

  private show(s: Shown): void {
    const newest = this.newest(s.root);
    const content = this.content(s.root, s.comments);
    // Only what has changed: with each change of comments VS Code makes a reply box that is just being made once more.
    if (content.changed || content.comments.length !== s.thread.comments.length) s.thread.comments = content.comments;
    s.thread.contextValue = contextOf(newest);
    s.thread.label = title(newest);
    s.thread.canReply = !live(newest) && s.lane === lane(newest);
    clearTimeout(s.leaving);
    if (s.before.length > 0) s.leaving = setTimeout(() => s.before.splice(0).forEach((t) => t.dispose()), sent);
  }

  /** The comments of a chain: those that have not changed as they are in known. */
  private content(root: Turn, all: Shown["comments"]): { comments: vscode.Comment[]; changed: boolean } {
    let changed = false;
    const list = this.turns.chain(root).flatMap((t) => comments(t, (m, ...a) => l10n.t(m, ...a)).map((said, i) => {
      const key = `${t.turn} ${i}`;
      const known = all.get(key);
      if (known !== undefined && known.said.markdown === said.markdown && known.said.label === said.label) return known.comment;
      changed = true;
      const comment = written(said, known?.comment);
      all.set(key, { said, comment });
      return comment;
    }));
    return { comments: list, changed };
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
    for (const s of this.threads.values()) end(s);
    this.boxes.dispose();
  }
}

/** A comment that says this: a new one, or the one that said something else before. */
function written(said: Said, comment: vscode.Comment = { body: "", mode: vscode.CommentMode.Preview, author: { name: said.author === "you" ? l10n.t("You") : "fermata" } }): vscode.Comment {
  const body = new vscode.MarkdownString(said.markdown);
  body.supportHtml = true; // for the dimmed text; what a model says holds none, see markdown.ts
  comment.body = body;
  if (said.label !== undefined) comment.label = said.label;
  else delete comment.label;
  return comment;
}

function end(s: Shown): void {
  s.pace.dispose();
  clearTimeout(s.leaving);
  for (const t of [...s.before, s.thread]) t.dispose();
}

/** What package.json's menus look at. */
function contextOf(t: Turn): Control | "stopped.silent" | "failed.nothing" | "abandoned.nothing" | `running ${string}` {
  if (t.phase === "stopped" && !spoke(t) && t.steps.every((s) => s.tools.length === 0)) return "stopped.silent";
  const c = control(t);
  if ((c === "failed" || c === "abandoned") && !keepable(t)) return `${c}.nothing`;
  return c === "running" ? `running ${t.turn}` : c;
}

function title(t: Turn): string {
  const words = promptText(t.prompt).replace(/\s+/g, " ").trim();
  return words.length > 60 ? words.slice(0, 59) + "…" : words || "fermata";
}
