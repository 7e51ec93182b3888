import * as vscode from "vscode";
import { l10n } from "vscode";
import { moved } from "./places";
import { comments, control, type Control, type Said } from "./words";
import { live, spoke, promptText, type Turn, type Turns } from "./turns";

// The inline conversation: a comment thread at the line where it was asked. The chain of a question and its redirects is
// one thread. Its reply box is the redirect lane. Threads that are open are remembered and shown again after a reload.

/** Between two updates of a thread, in milliseconds: at most 20 a second. */
const interval = 50;

/** How many questions in reply boxes are known to belong to their threads after a reload. */
const joinsKept = 200;

interface Shown {
  thread: vscode.CommentThread;
  root: Turn;
  timer?: NodeJS.Timeout;
  updated: number;
  /** What is shown, by turn and place: VS Code draws a comment anew when it is another object. */
  comments: Map<string, { said: Said; comment: vscode.Comment }>;
}

/** Where a thread stands now; the log says only where it was asked. */
interface Remembered {
  session: string;
  range: [number, number, number, number];
}

export class Conversation implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("fermata", "Fermata");
  private readonly threads = new Map<string, Shown>();
  private readonly closed = new Set<string>();
  private readonly remembered: Map<string, Remembered>;
  private readonly subscriptions: { dispose(): void }[];

  constructor(
    private readonly turns: Turns,
    private readonly memento: vscode.Memento,
  ) {
    const lane = l10n.t("What should it do instead?");
    this.controller.options = { prompt: lane, placeHolder: lane }; // a thread takes them when it is made
    for (const [clientId, turn] of this.joins) turns.join(clientId, turn);
    this.remembered = new Map(Object.entries(memento.get<Record<string, Remembered>>("threads", {})));
    this.subscriptions = [turns.onChange((t) => this.changed(t)), vscode.workspace.onDidChangeTextDocument((e) => this.edited(e))];
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
    for (const s of this.threads.values()) if (s.thread === thread) return this.newest(s.root);
    return undefined;
  }

  /** Where the thread of a turn stands now. */
  rangeOf(turn: Turn): vscode.Range | undefined {
    return this.threads.get(this.turns.root(turn).turn)?.thread.range;
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
    clearTimeout(s.timer);
    this.threads.delete(s.root.turn);
    this.closed.add(s.root.turn); // what still comes does not open it again
    this.remembered.delete(s.root.turn);
    s.thread.dispose();
    this.save();
  }

  /** Opens the lane of a turn's thread; false when it has none. */
  reveal(turn: Turn): boolean {
    const s = this.threads.get(this.turns.root(turn).turn);
    if (s !== undefined) s.thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    return s !== undefined;
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
      const thread = this.controller.createCommentThread(vscode.Uri.parse(a.uri, true), range, []);
      thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
      s = { thread, root, updated: 0, comments: new Map() };
      this.threads.set(root.turn, s);
      this.remember(s);
      this.save();
    }
    this.schedule(s, t);
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

  private remember(s: Shown): void {
    const r = s.thread.range;
    if (r !== undefined) this.remembered.set(s.root.turn, { session: s.root.session, range: [r.start.line, r.start.character, r.end.line, r.end.character] });
  }

  private save(): void {
    void this.memento.update("threads", Object.fromEntries(this.remembered));
  }

  private schedule(s: Shown, t: Turn): void {
    const wait = s.updated + interval - Date.now();
    if (wait <= 0 || s.thread.contextValue !== contextOf(t)) {
      this.show(s); // what can be done has changed: at once
      return;
    }
    s.timer ??= setTimeout(() => this.show(s), wait);
  }

  private show(s: Shown): void {
    clearTimeout(s.timer);
    delete s.timer;
    s.updated = Date.now();
    const chain = this.turns.chain(s.root);
    const newest = chain.at(-1) ?? s.root;
    const now = contextOf(newest);
    s.thread.comments = chain.flatMap((t) => comments(t, (m, ...a) => l10n.t(m, ...a)).map((said, i) => this.comment(s, `${t.turn} ${i}`, said)));
    s.thread.contextValue = now;
    s.thread.label = title(newest);
    s.thread.canReply = !live(newest);
  }

  private comment(s: Shown, key: string, said: Said): vscode.Comment {
    const known = s.comments.get(key);
    if (known !== undefined && known.said.markdown === said.markdown && known.said.label === said.label) return known.comment;
    const comment: vscode.Comment = known?.comment ?? {
      body: "",
      mode: vscode.CommentMode.Preview,
      author: { name: said.author === "you" ? l10n.t("You") : "fermata" },
    };
    const body = new vscode.MarkdownString(said.markdown);
    body.supportHtml = true; // for the dimmed text; what a model says holds none, see markdown.ts
    comment.body = body;
    if (said.label !== undefined) comment.label = said.label;
    else delete comment.label;
    s.comments.set(key, { said, comment });
    return comment;
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
    for (const s of this.threads.values()) clearTimeout(s.timer);
    this.controller.dispose();
  }
}

/** What package.json's menus look at. */
function contextOf(t: Turn): Control | "stopped.silent" {
  return t.phase === "stopped" && !spoke(t) && t.steps.every((s) => s.tools.length === 0) ? "stopped.silent" : control(t);
}

function title(t: Turn): string {
  const words = promptText(t.prompt).replace(/\s+/g, " ").trim();
  return words.length > 60 ? words.slice(0, 59) + "…" : words || "fermata";
}
