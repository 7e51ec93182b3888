import * as vscode from "vscode";
import { l10n } from "vscode";
import { comments, control, type Control } from "./words";
import { live, spoke, promptText, type Turn, type Turns } from "./turns";

// The inline conversation: a comment thread at the line where it was asked. The chain of a question and its redirects is
// one thread. Its reply box is the redirect lane.

/** Between two updates of a thread, in milliseconds: at most 20 a second. */
const interval = 50;

interface Shown {
  thread: vscode.CommentThread;
  root: Turn;
  timer?: NodeJS.Timeout;
  updated: number;
}

export class Conversation implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("fermata", "Fermata");
  private readonly threads = new Map<string, Shown>();
  private readonly subscription: { dispose(): void };

  constructor(private readonly turns: Turns) {
    this.controller.options = { prompt: l10n.t("Redirect"), placeHolder: l10n.t("What should it do instead?") };
    this.subscription = turns.onChange((t) => this.changed(t));
  }

  /** The turn that a thread's menus and reply box are about: the newest of its chain. */
  turnOf(thread: vscode.CommentThread): Turn | undefined {
    for (const s of this.threads.values()) if (s.thread === thread) return this.newest(s.root);
    return undefined;
  }

  /** Closes a thread. What was said stays in the transcript. */
  close(thread: vscode.CommentThread): void {
    for (const [key, s] of this.threads) {
      if (s.thread === thread) {
        clearTimeout(s.timer);
        this.threads.delete(key);
        thread.dispose();
      }
    }
  }

  /** Opens the lane of a turn's thread. */
  reveal(turn: Turn): void {
    const s = this.threads.get(this.turns.root(turn).turn);
    if (s !== undefined) s.thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
  }

  private newest(root: Turn): Turn {
    return this.turns.chain(root).at(-1) ?? root;
  }

  private changed(t: Turn): void {
    const root = this.turns.root(t);
    let s = this.threads.get(root.turn);
    if (s === undefined) {
      // Threads are opened by what happens now, not by what a session that is read again holds from earlier.
      if (root.anchor === undefined || !live(t) || vscode.workspace.getConfiguration("fermata").get("inline", "comments") !== "comments") return;
      const a = root.anchor;
      const thread = this.controller.createCommentThread(vscode.Uri.parse(a.uri, true), new vscode.Range(a.start_line, a.start_char, a.end_line, a.end_char), []);
      thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
      s = { thread, root, updated: 0 };
      this.threads.set(root.turn, s);
    }
    this.schedule(s, t);
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
    s.thread.comments = chain.flatMap((t) =>
      comments(t, (m, ...a) => l10n.t(m, ...a)).map((said): vscode.Comment => {
        const body = new vscode.MarkdownString(said.markdown, true);
        body.supportHtml = true;
        const comment: vscode.Comment = {
          body,
          mode: vscode.CommentMode.Preview,
          author: { name: said.author === "you" ? l10n.t("You") : "fermata" },
        };
        if (said.label !== undefined) comment.label = said.label;
        return comment;
      }),
    );
    s.thread.contextValue = contextOf(newest);
    s.thread.label = title(newest);
    s.thread.canReply = !live(newest);
  }

  dispose(): void {
    this.subscription.dispose();
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
