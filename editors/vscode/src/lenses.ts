import * as vscode from "vscode";
import { l10n } from "vscode";
import { inputScheme, type Inputs } from "./inputs";
import type { CommandArgs, InputPart } from "./protocol";
import { transcriptScheme, type Transcripts } from "./transcripts";
import { keepable, live, type Turn, type Turns } from "./turns";

// What can be done about what a transcript or a model input shows, as code lenses; and the outline of a model input.

export class TranscriptLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changes.event;
  private readonly subscriptions: { dispose(): void }[];
  private readonly phases = new Map<string, string>();

  constructor(
    private readonly transcripts: Transcripts,
    private readonly turns: Turns,
  ) {
    this.subscriptions = [
      vscode.languages.registerCodeLensProvider({ scheme: transcriptScheme }, this),
      transcripts.onDidChangeLacks(() => this.changes.fire()),
      turns.onChange((t) => {
        const now = `${t.phase} ${t.changed.length} ${t.redirectedBy ?? ""}`;
        if (this.phases.get(t.turn) === now) return;
        this.phases.set(t.turn, now);
        this.changes.fire();
      }),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const lenses: vscode.CodeLens[] = [];
    const lacks = this.transcripts.lacks(document.uri);
    if (lacks !== undefined) {
      const title = lacks === "end" ? l10n.t("Show What Was Said Since") : l10n.t("Show Whole Transcript");
      for (const line of lacks === "end" ? [0, document.lineCount - 1] : [0]) lenses.push(new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command(title, "fermata.showWholeTranscript")));
    }
    let turn: Turn | undefined;
    for (const ref of this.transcripts.linesOf(document.uri)) {
      const at = new vscode.Range(ref.line - 1, 0, ref.line - 1, 0);
      if (ref.turn !== undefined) {
        turn = this.turns.get(ref.turn);
        if (turn !== undefined) for (const c of controls(turn, turn === this.turns.last(turn.session))) lenses.push(new vscode.CodeLens(at, c));
      }
      const step = turn?.steps.length === 1 ? undefined : turn?.steps.find((s) => s.answer === ref.seq);
      if (step?.request !== undefined) lenses.push(new vscode.CodeLens(at, command(l10n.t("Model Input of This Answer"), "fermata.showModelInput", { request: step.request })));
    }
    return lenses;
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
    this.changes.dispose();
  }
}

/** What can be done about a turn, given whether it is the last of its session. */
function controls(t: Turn, last: boolean): vscode.Command[] {
  const about: CommandArgs = { turn: t.turn, session: t.session };
  const out: vscode.Command[] = [];
  if (t.phase === "running") out.push(command(l10n.t("■ Stop"), "fermata.stop", about));
  if (t.phase === "stopping") out.push(command(l10n.t("stopping…"), "fermata.stop", about));
  if (last && t.phase === "stopped") out.push(command(l10n.t("Redirect…"), "fermata.redirect", about), command(l10n.t("Retry"), "fermata.retry", about));
  if (last && (t.phase === "failed" || t.phase === "abandoned")) {
    out.push(command(l10n.t("Retry"), "fermata.retry", about));
    if (keepable(t)) out.push(command(l10n.t("Keep"), "fermata.keep", about));
  }
  const request = t.steps.at(-1)?.request;
  if (request !== undefined) out.push(command(l10n.t("Model Input"), "fermata.showModelInput", { request }));
  if (t.changed.length > 0) out.push(command(l10n.t("Changes"), "fermata.showChanges", about));
  if (t.changed.length > 0 && !live(t)) out.push(command(l10n.t("Revert"), "fermata.revert", about));
  return out;
}

function command(title: string, name: string, args?: CommandArgs): vscode.Command {
  return { title, command: name, ...(args !== undefined && { arguments: [args] }) };
}

export class InputLenses implements vscode.CodeLensProvider, vscode.DocumentSymbolProvider, vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly inputs: Inputs) {
    this.subscriptions = [
      vscode.languages.registerCodeLensProvider({ scheme: inputScheme }, this),
      vscode.languages.registerDocumentSymbolProvider({ scheme: inputScheme }, this, { label: l10n.t("Parts of the model input") }),
    ];
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const r = this.inputs.of(document.uri);
    if (r === undefined || !document.uri.path.endsWith(".jsonc")) return [];
    const top = new vscode.Range(0, 0, 0, 0);
    const lenses = [
      ...(r.previous !== undefined ? [command(l10n.t("Compare with Previous Request"), "fermata.compareModelInput")] : []),
      command(l10n.t("Exact Bytes"), "fermata.showExactInput"),
      command(l10n.t("Transcript"), "fermata.openTranscript", { session: r.request.session, turn: r.request.turn }),
    ].map((c) => new vscode.CodeLens(top, c));
    for (const { part, first } of this.inputs.parts(document.uri)) {
      for (const why of part.unsendable ?? []) lenses.push(new vscode.CodeLens(new vscode.Range(first, 0, first, 0), { title: why, command: "" }));
    }
    return lenses;
  }

  provideDocumentSymbols(document: vscode.TextDocument): vscode.DocumentSymbol[] {
    return this.inputs.parts(document.uri).map(({ part, first, last }) => {
      const end = document.lineAt(Math.min(last, document.lineCount - 1)).range.end;
      const range = new vscode.Range(first, 0, Math.max(first, end.line), end.character);
      const kind = part.kind === "message" ? vscode.SymbolKind.Object : vscode.SymbolKind.Namespace;
      return new vscode.DocumentSymbol(nameOf(part), detailOf(part), kind, range, new vscode.Range(first, 0, first, 0));
    });
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
  }
}

function nameOf(p: InputPart): string {
  switch (p.kind) {
    case "head":
      return l10n.t("head: model, instructions, tools");
    case "tail":
      return l10n.t("tail");
    default:
      // Of many messages by the same, lists of symbols show no details: the entry is what tells them apart.
      return [p.role ?? p.kind, ...(p.source !== undefined ? [l10n.t("entry {0}", p.source)] : [])].join(" · ");
  }
}

function detailOf(p: InputPart): string {
  return [l10n.t("{0} bytes", p.length), ...(p.unsendable ?? [])].join(" · ");
}
