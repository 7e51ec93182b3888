import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import { indent, type Indented } from "./indented";
import type { InputPart, RequestInputResult } from "./protocol";

// The model input as a read-only document.

export const inputScheme = "fermata-input";

/** How a model input is shown: indented under a line that says whether it is what was sent; so without that line; as it was. */
export type View = "Model input.jsonc" | "Model input.json" | "Exact bytes.json";

interface Read {
  result: RequestInputResult;
  indented: Indented;
}

export class Inputs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly known = new Map<string, Read>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly daemon: Daemon) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(inputScheme, this),
      vscode.workspace.onDidCloseTextDocument((d) => {
        // One whose language is changed is closed too, and is open all the time.
        if (d.uri.scheme === inputScheme && !vscode.workspace.textDocuments.some((o) => o.uri.scheme === inputScheme && requestOf(o.uri) === requestOf(d.uri))) this.known.delete(requestOf(d.uri));
      }),
    ];
  }

  uri(request: string, view: View = "Model input.jsonc"): vscode.Uri {
    return vscode.Uri.from({ scheme: inputScheme, path: `/${request}/${view}` });
  }

  /** What is known of the input that a document shows. */
  of(uri: vscode.Uri): RequestInputResult | undefined {
    return this.known.get(requestOf(uri))?.result;
  }

  /** The parts of the input that a document shows, with the first and the last line of each. */
  parts(uri: vscode.Uri): { part: InputPart; first: number; last: number }[] {
    const read = this.known.get(requestOf(uri));
    if (read === undefined || uri.path.endsWith("/Exact bytes.json")) return [];
    const above = uri.path.endsWith(".jsonc") ? 1 : 0;
    return read.result.parts.map((part) => {
      const from = part.length > 0 ? part.offset : part.offset + 1; // a message of which nothing is sent stands at what comes next
      const to = Math.max(from, part.offset + part.length - 1);
      return { part, first: read.indented.lineOf(from) + above, last: read.indented.lineOf(to) + above };
    });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const { result, indented } = this.known.get(requestOf(uri)) ?? (await this.fetch(requestOf(uri)));
    if (uri.path.endsWith("/Exact bytes.json")) return result.body ?? result.bodyBase64 ?? "";
    return uri.path.endsWith(".jsonc") ? `// ${verifiedLine(result)}\n${indented.text}` : indented.text;
  }

  /** Opens an input, the newest of a session unless it is named. */
  async open(request: string | undefined, session?: string): Promise<void> {
    const { result } = await this.fetch(request, session);
    await this.show(result.request.request, "Model input.jsonc");
  }

  /** Opens the very bytes of the input that a document shows. */
  async exact(uri: vscode.Uri): Promise<void> {
    await this.show(requestOf(uri), "Exact bytes.json");
  }

  private async show(request: string, view: View): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.uri(request, view));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Shows in the native diff what the request before it held. */
  async compare(uri: vscode.Uri): Promise<void> {
    const r = this.of(uri);
    if (r?.previous === undefined) {
      void vscode.window.showInformationMessage(l10n.t("This is the session's first request: there is none before it."));
      return;
    }
    await this.fetch(r.previous);
    await vscode.commands.executeCommand(
      "vscode.diff", this.uri(r.previous, "Model input.json"), this.uri(requestOf(uri), "Model input.json"),
      l10n.t("Model input: previous request ↔ this one"),
    );
  }

  private async fetch(request?: string, session?: string): Promise<Read> {
    const params = { ...(request !== undefined && { request }), ...(session !== undefined && { session }) };
    const result = await this.daemon.request("fermata/request/input", params);
    const read = { result, indented: indent(result.body ?? "") };
    this.known.set(result.request.request, read);
    return read;
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
  }
}

/** Whether these are the bytes that were sent, and of which request. */
export function verifiedLine(r: RequestInputResult): string {
  const verified = r.verified ? l10n.t("✓ as sent") : l10n.t("✗ NOT what was sent");
  return [verified, l10n.t("{0} bytes", r.bytes), r.request.model, r.request.request, `sha256 ${r.sha256}`].join(" · ");
}

function requestOf(uri: vscode.Uri): string {
  return uri.path.split("/")[1] ?? "";
}
