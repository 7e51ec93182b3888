import * as vscode from "vscode";
import type { Daemon } from "./daemon";
import type { RequestInputResult } from "./protocol";
import type { Turn, Turns } from "./turns";

// The transcript and the model input as read-only documents.

export const transcriptScheme = "fermata-transcript";
export const inputScheme = "fermata-input";
export const blobScheme = "fermata-change";

/** Between two renderings of an open transcript while its turn runs, in milliseconds. */
const interval = 400;

export class Transcripts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changes.event;
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly subscriptions: { dispose(): void }[];
  private readonly lines = new Map<string, { line: number; seq: number }[]>();

  constructor(
    private readonly daemon: Daemon,
    turns: Turns,
  ) {
    this.subscriptions = [turns.onChange((t) => this.changed(t)), vscode.workspace.registerTextDocumentContentProvider(transcriptScheme, this)];
  }

  uri(session: string): vscode.Uri {
    return vscode.Uri.from({ scheme: transcriptScheme, path: `/${session}/Transcript.md` });
  }

  sessionOf(uri: vscode.Uri): string {
    return uri.path.split("/")[1] ?? "";
  }

  /** The entry that a line of a transcript comes from. */
  entryAt(uri: vscode.Uri, line: number): number | undefined {
    return this.lines.get(uri.toString())?.findLast((l) => l.line <= line + 1)?.seq;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const r = await this.daemon.request("fermata/transcript/render", { session: this.sessionOf(uri), format: "markdown" });
    this.lines.set(uri.toString(), r.lines);
    return r.text;
  }

  async open(session: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.uri(session));
    const editor = await vscode.window.showTextDocument(document, { preview: true });
    const last = document.lineCount - 1;
    editor.revealRange(new vscode.Range(last, 0, last, 0));
  }

  private changed(t: Turn): void {
    const uri = this.uri(t.session);
    const key = uri.toString();
    if (this.timers.has(key) || !vscode.workspace.textDocuments.some((d) => d.uri.toString() === key)) return;
    this.timers.set(key, setTimeout(() => {
      this.timers.delete(key);
      this.changes.fire(uri);
    }, interval));
  }

  dispose(): void {
    for (const t of this.timers.values()) clearTimeout(t);
    for (const s of this.subscriptions) s.dispose();
    this.changes.dispose();
  }
}

export class Inputs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly known = new Map<string, RequestInputResult>();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly daemon: Daemon) {
    this.subscription = vscode.workspace.registerTextDocumentContentProvider(inputScheme, this);
  }

  uri(request: string): vscode.Uri {
    return vscode.Uri.from({ scheme: inputScheme, path: `/${request}/Model input.json` });
  }

  /** What is known of the input that a document shows. */
  of(uri: vscode.Uri): RequestInputResult | undefined {
    return this.known.get(requestOf(uri));
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const r = await this.fetch(requestOf(uri));
    return indented(r);
  }

  /** Opens an input, the newest of a session unless it is named. */
  async open(request: string | undefined, session: string | undefined): Promise<void> {
    const r = await this.fetch(request, session);
    const document = await vscode.workspace.openTextDocument(this.uri(r.request.request));
    await vscode.languages.setTextDocumentLanguage(document, "json");
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Shows in the native diff what the request before it held. */
  async compare(uri: vscode.Uri): Promise<void> {
    const r = this.of(uri);
    if (r?.previous === undefined) {
      void vscode.window.showInformationMessage(vscode.l10n.t("This is the session's first request: there is none before it."));
      return;
    }
    await this.fetch(r.previous);
    await vscode.commands.executeCommand("vscode.diff", this.uri(r.previous), uri, vscode.l10n.t("Model input: previous request ↔ this one"));
  }

  private async fetch(request?: string, session?: string): Promise<RequestInputResult> {
    const params = { ...(request !== undefined && { request }), ...(session !== undefined && { session }) };
    const r = await this.daemon.request("fermata/request/input", params);
    this.known.set(r.request.request, r);
    return r;
  }

  dispose(): void {
    this.subscription.dispose();
  }
}

function requestOf(uri: vscode.Uri): string {
  return uri.path.split("/")[1] ?? "";
}

/** The body indented for reading; what is not JSON is shown as it is. */
function indented(r: RequestInputResult): string {
  if (r.body === undefined) return r.bodyBase64 ?? "";
  try {
    return JSON.stringify(JSON.parse(r.body), null, 2) + "\n";
  } catch {
    return r.body;
  }
}
