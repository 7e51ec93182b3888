import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Conversation } from "./conversation";
import { isGone, kindOf, type Daemon } from "./daemon";
import type { Models } from "./models";
import type { Anchor, CommandArgs, PromptPart, TurnResult } from "./protocol";
import type { Sessions } from "./sessions";
import { promptText, type Turn, type Turns } from "./turns";

// What a person does to turns: ask, stop, redirect, queue, keep, retry. Each command works from the palette without
// arguments, from a thread (which it is given), and from the daemon's code actions and lenses (whose arguments it is given).

export class Asking {
  constructor(
    private readonly daemon: Daemon,
    private readonly sessions: Sessions,
    private readonly turns: Turns,
    private readonly conversation: Conversation,
    private readonly models: Models,
    private readonly report: (err: unknown) => void,
  ) {}

  async ask(args?: CommandArgs): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const uri = args?.uri !== undefined ? vscode.Uri.parse(args.uri, true) : editor?.document.uri;
    const range = args?.range !== undefined ? toRange(args.range) : editor?.selection;
    const words = typeof args?.prompt === "string" ? args.prompt : await vscode.window.showInputBox({
      title: range !== undefined && !range.isEmpty ? l10n.t("Ask fermata about the selection") : l10n.t("Ask fermata"),
      placeHolder: l10n.t("What should it do?"), ignoreFocusOut: true,
    });
    if (words === undefined || words.trim() === "") return;
    const prompt: PromptPart[] = [{ type: "text", text: words }];
    if (uri !== undefined && range !== undefined && !range.isEmpty) {
      // What is no file, as an untitled document or the other side of a diff, is not the daemon's to read.
      const text = uri.scheme === "file" ? undefined : vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri.toString())?.getText(range);
      prompt.push({ type: "selection", uri: uri.toString(), range: fromRange(range), ...(text !== undefined && { text }) });
    }
    const session = args?.session ?? (await this.sessions.forQuestion(this.sessions.rootOf(uri)));
    const anchor = uri?.scheme === "file" ? { uri: uri.toString(), range: fromRange(range ?? new vscode.Range(0, 0, 0, 0)) } : undefined;
    this.run(this.daemon.request("fermata/turn/start", { session, prompt, clientId: randomUUID(), ...(anchor && { anchor }), ...this.model() }));
    // Without a line to stand at, the answer streams in the transcript.
    if (anchor === undefined) await vscode.commands.executeCommand("fermata.openTranscript", { session } satisfies CommandArgs);
  }

  async stop(about?: vscode.CommentThread | CommandArgs): Promise<void> {
    const turn = this.turnOf(about) ?? this.turns.running();
    if (turn !== undefined) this.turns.event({ session: turn.session, kind: "stopping", turn: turn.turn }); // acknowledged at once
    try {
      await this.daemon.request("fermata/turn/stop", turn === undefined ? {} : { turn: turn.turn });
    } catch (err) {
      if (kindOf(err) === "nothing_runs") void vscode.window.showInformationMessage(l10n.t("Nothing runs."));
      else throw err;
    }
  }

  /** The reply box of a thread: a redirect after a stop or while it runs, else the next question. */
  reply(reply: vscode.CommentReply): void {
    const turn = this.conversation.turnOf(reply.thread);
    if (turn === undefined || reply.text.trim() === "") return;
    if (turn.phase === "completed") this.followUp(turn, reply.text);
    else this.redirectTurn(turn, reply.text);
  }

  /** The next question in a thread whose last answer is complete. */
  private followUp(turn: Turn, words: string): void {
    const clientId = randomUUID();
    this.conversation.join(clientId, turn);
    this.run(this.daemon.request("fermata/turn/start", { session: turn.session, prompt: [{ type: "text", text: words }], clientId, ...this.anchorOf(turn), ...this.model() }));
  }

  async redirect(about?: vscode.CommentThread | CommandArgs): Promise<void> {
    const turn = this.turnOf(about) ?? this.turns.running() ?? this.turns.last();
    const given = about !== undefined && "prompt" in about && typeof about.prompt === "string" ? about.prompt : undefined;
    const words = given ?? (await vscode.window.showInputBox({
      title: l10n.t("Redirect"), placeHolder: l10n.t("What should it do instead?"), ignoreFocusOut: true,
      value: turn?.ended?.silent === true ? promptText(turn.prompt) : "",
    }));
    if (words === undefined || words.trim() === "") return; // Escape leaves all as it was
    this.redirectTurn(turn, words);
  }

  private redirectTurn(turn: Turn | undefined, words: string): void {
    this.run(this.daemon.request("fermata/turn/redirect", {
      prompt: [{ type: "text", text: words }], clientId: randomUUID(), ...(turn && { turn: turn.turn }), ...(turn && this.anchorOf(turn)), ...this.model(),
    }));
  }

  /** Where a turn's thread stands now, which is where what follows it is asked. */
  private anchorOf(turn: Turn): { anchor?: Anchor } {
    const a = turn.anchor;
    if (a === undefined) return {};
    const place = this.conversation.placeOf(turn);
    const range = place?.range ?? new vscode.Range(a.start_line, a.start_char, a.end_line, a.end_char);
    return { anchor: { uri: place?.uri.toString() ?? a.uri, range: fromRange(range) } };
  }

  async queue(): Promise<void> {
    const turn = this.turns.running() ?? this.turns.last();
    if (turn === undefined) return this.ask();
    const words = await vscode.window.showInputBox({ title: l10n.t("Queue a message"), placeHolder: l10n.t("It is delivered after the next tool results, or starts the next turn"), ignoreFocusOut: true });
    if (words === undefined || words.trim() === "") return;
    const r = await this.daemon.request("fermata/turn/queue", { session: turn.session, prompt: [{ type: "text", text: words }], clientId: randomUUID() });
    if (r.state === "queued") vscode.window.setStatusBarMessage(l10n.t("Queued: {0}", words), 5000);
  }

  async keep(about?: vscode.CommentThread | CommandArgs): Promise<void> {
    const turn = this.turnOf(about) ?? this.turns.last();
    const r = await this.daemon.request("fermata/turn/adopt", turn === undefined ? {} : { turn: turn.turn });
    void vscode.window.showInformationMessage(l10n.t("Kept: the next model input holds these {0} words.", r.kept.words));
  }

  retry(about?: vscode.CommentThread | CommandArgs): void {
    const turn = this.turnOf(about) ?? this.turns.last();
    this.run(this.daemon.request("fermata/turn/retry", { clientId: randomUUID(), ...(turn && { turn: turn.turn }), ...this.model() }));
  }

  /** Waits for a turn's end without keeping the command: what happens is told by events. */
  private run(result: Promise<TurnResult>): void {
    result.then(
      (r) => this.ended(r),
      (err: unknown) => {
        if (!isGone(err)) this.report(err);
      },
    );
  }

  private ended(r: TurnResult): void {
    if (r.returned.length > 0) {
      const again = l10n.t("Copy");
      const text = r.returned.map((m) => promptText(m.prompt)).join("\n\n");
      void vscode.window.showInformationMessage(l10n.t("Handed back, and sent to no model: {0}", text), again).then((choice) =>
        choice === again ? vscode.env.clipboard.writeText(text) : undefined);
    }
    if (r.outcome === "stopped" && r.cause === "user") {
      const turn = this.turns.get(r.turn);
      if (turn?.redirectedBy === undefined) {
        const shown = turn !== undefined && this.conversation.reveal(turn, r.silent !== true);
        // A reply box cannot be filled, so a prompt that nothing was said to yet is offered back in an input of its own (S6).
        if (r.silent === true) void this.redirect({ turn: r.turn }).catch(this.report);
        else if (!shown) void this.offer(r);
      }
    }
    if (r.outcome === "failed" && this.turns.get(r.turn)?.anchor === undefined) this.report(new Error(r.error ?? r.cause ?? "?"));
  }

  /** The lane of a turn that has no place in a document. */
  private async offer(r: TurnResult): Promise<void> {
    const redirect = l10n.t("Redirect…");
    const transcript = l10n.t("Transcript");
    const said = l10n.t("Stopped here: {0} words kept.", r.kept?.words ?? 0);
    const choice = await vscode.window.showInformationMessage(said, redirect, transcript);
    if (choice === redirect) await this.redirect({ turn: r.turn });
    if (choice === transcript) await vscode.commands.executeCommand("fermata.openTranscript");
  }

  /** The turn that a command was given: by a thread's menu, or by the daemon's lens or action. */
  turnOf(about?: vscode.CommentThread | CommandArgs): Turn | undefined {
    if (about === undefined) return undefined;
    if ("comments" in about) return this.conversation.turnOf(about);
    return about.turn !== undefined ? this.turns.get(about.turn) : undefined;
  }

  private model(): { model?: string } {
    const model = this.models.chosen;
    return model === "" ? {} : { model };
  }
}

function toRange(r: NonNullable<CommandArgs["range"]>): vscode.Range {
  return new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
}

function fromRange(r: vscode.Range): NonNullable<CommandArgs["range"]> {
  return { start: { line: r.start.line, character: r.start.character }, end: { line: r.end.line, character: r.end.character } };
}
