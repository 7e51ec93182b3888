import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import { Pace, ofTranscript } from "./pace";
import type { LineRef } from "./protocol";
import { ReadonlyFiles } from "./readonlyfiles";
import { saying, type Turn, type Turns } from "./turns";

// The transcript as a read-only document. Of a long session it begins with the newest part: a window that is given 20 MB with
// every few words answers no click, nor a stop. For the same reason nothing is rendered before the window has taken what was, and
// has then had some time for other things; and a text that is longer than that allows is left as it is until it is asked for
// again.

export const transcriptScheme = "fermata-transcript";

/** After this many milliseconds a rendering is taken for shown. */
const patience = 30_000;

/** How many entries of a session are shown at first: some twenty turns without tools. */
const page = 150;

/** The length up to which a text follows its session by itself, in characters. */
const lively = 2_000_000;

/** An open transcript. */
interface Shown {
  /** The entry that it begins behind: undefined before it was rendered, 0 when all is shown. */
  since?: number;
  length: number;
  lines: LineRef[];
  pace: Pace;
  /** More was said while it was being opened. */
  missed?: boolean;
  /** More was said since, and is not shown by itself. */
  stale?: boolean;
  /** Called when the window has what was rendered. */
  taken?: (() => void) | undefined;
}

export class Transcripts extends ReadonlyFiles {
  private readonly stale = new vscode.EventEmitter<void>();
  /** Whether a transcript lacks something has changed. */
  readonly onDidChangeLacks = this.stale.event;
  private readonly subscriptions: { dispose(): void }[];
  private readonly shown = new Map<string, Shown>();

  constructor(
    private readonly daemon: Daemon,
    private readonly turns: Turns,
  ) {
    super(transcriptScheme);
    this.subscriptions = [
      turns.onChange((t) => this.said(t)),
      vscode.workspace.onDidChangeTextDocument((e) => this.shown.get(e.document.uri.toString())?.taken?.()),
      vscode.workspace.onDidOpenTextDocument((d) => {
        const shown = this.shown.get(d.uri.toString());
        if (shown?.missed !== true) return;
        shown.missed = false;
        shown.pace.soon();
      }),
      vscode.workspace.onDidCloseTextDocument((d) => {
        if (d.uri.scheme === transcriptScheme && !isOpen(d.uri)) this.forget(d.uri); // one whose language is changed is closed too
      }),
    ];
  }

  uri(session: string): vscode.Uri {
    return vscode.Uri.from({ scheme: transcriptScheme, path: `/${session}/Transcript.md` });
  }

  sessionOf(uri: vscode.Uri): string {
    return uri.path.split("/")[1] ?? "";
  }

  /** From which turns and entries the lines of an open transcript come. */
  linesOf(uri: vscode.Uri): LineRef[] {
    return this.shown.get(uri.toString())?.lines ?? [];
  }

  /** What an open transcript lacks of its session: its beginning, or what was said since it was shown. */
  lacks(uri: vscode.Uri): "beginning" | "end" | undefined {
    const shown = this.shown.get(uri.toString());
    if (shown?.stale === true) return "end";
    return (shown?.since ?? 0) > 0 ? "beginning" : undefined;
  }

  protected override async load(uri: vscode.Uri): Promise<void> {
    const shown = this.of(uri);
    if (shown.stale === true) {
      shown.stale = false;
      this.stale.fire();
    }
    try {
      const r = await this.daemon.request("fermata/transcript/render", { session: this.sessionOf(uri), format: "markdown", since: shown.since ?? -page });
      if (this.shown.get(uri.toString()) !== shown) return; // it was closed meanwhile
      shown.since = r.since;
      const above = r.since > 0 ? `> ${l10n.t("The conversation began before this: its {0} earlier entries are not shown.", r.since)}\n\n` : "";
      shown.lines = above === "" ? r.lines : r.lines.map((l) => ({ ...l, line: l.line + 2 }));
      // What is being said is in no entry yet. Where the text knows an entry that no event has told of, it may hold it.
      const told = (r.lines.at(-1)?.seq ?? 0) <= this.turns.seq(r.session);
      const text = above + r.text + (told ? saying(this.turns.running(r.session)) : "");
      shown.length = text.length;
      if (!this.put(uri, text)) shown.taken?.(); // VS Code has nothing to change
    } catch (err) {
      shown.taken?.();
      throw err;
    }
  }

  /** Opens a transcript at its end, or at where a turn begins. */
  async open(session: string, turn?: string): Promise<void> {
    const uri = this.uri(session);
    const document = await vscode.workspace.openTextDocument(uri);
    const find = (): number | undefined => this.linesOf(uri).find((l) => l.turn === turn && turn !== undefined)?.line;
    const lacks = this.lacks(uri);
    if (lacks === "end" || (lacks === "beginning" && turn !== undefined && find() === undefined)) await this.showWhole(uri);
    const editor = await vscode.window.showTextDocument(document, { preview: true });
    const line = find();
    const at = line === undefined ? document.lineCount - 1 : line - 1;
    editor.revealRange(new vscode.Range(at, 0, at, 0), line === undefined ? vscode.TextEditorRevealType.Default : vscode.TextEditorRevealType.AtTop);
  }

  /** Shows what an open transcript lacks; done when it is shown. */
  async showWhole(uri: vscode.Uri): Promise<void> {
    const lacks = this.lacks(uri);
    if (lacks === undefined) return;
    if (lacks === "beginning") this.of(uri).since = 0;
    await this.render(uri);
  }

  private of(uri: vscode.Uri): Shown {
    const key = uri.toString();
    let shown = this.shown.get(key);
    if (shown === undefined) {
      let rendered = Promise.resolve();
      const pace = new Pace(() => void (rendered = this.render(uri)), () => rendered, ofTranscript);
      this.shown.set(key, (shown = { length: 0, lines: [], pace }));
    }
    return shown;
  }

  private forget(uri: vscode.Uri): void {
    const shown = this.shown.get(uri.toString());
    this.shown.delete(uri.toString());
    this.drop(uri);
    shown?.pace.dispose();
    shown?.taken?.();
  }

  private said(t: Turn): void {
    const uri = this.uri(t.session);
    const shown = this.shown.get(uri.toString());
    if (shown === undefined) return;
    if (!isOpen(uri)) shown.missed = true;
    else if (shown.length <= lively) shown.pace.soon();
    else if (shown.stale !== true) {
      shown.stale = true;
      this.stale.fire();
    }
  }

  /** The text is rendered anew; VS Code keeps the reader's place. Done when the window has it. */
  private render(uri: vscode.Uri): Promise<void> {
    const shown = this.of(uri);
    return new Promise((resolve) => {
      const before = shown.taken;
      const taken = (): void => {
        clearTimeout(late);
        if (shown.taken === taken) shown.taken = undefined;
        before?.();
        resolve();
      };
      const late = setTimeout(taken, patience);
      shown.taken = taken;
      this.load(uri).catch(() => undefined); // the daemon has gone: what was shown stays
    });
  }

  override dispose(): void {
    for (const s of this.shown.values()) s.pace.dispose();
    for (const s of this.subscriptions) s.dispose();
    this.stale.dispose();
    super.dispose();
  }
}

function isOpen(uri: vscode.Uri): boolean {
  return vscode.workspace.textDocuments.some((d) => d.uri.toString() === uri.toString());
}
