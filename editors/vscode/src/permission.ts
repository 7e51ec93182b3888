import * as vscode from "vscode";
import { l10n } from "vscode";
import type { PermissionParams, PermissionResult } from "./protocol";

// The permission question: a notification that blocks nothing. Answering it, closing it and stopping the turn all settle it.

export class Permissions implements vscode.TextDocumentContentProvider, vscode.Disposable {
  static readonly scheme = "fermata-permission";
  private readonly diffs = new Map<string, string>();
  private readonly subscription = vscode.workspace.registerTextDocumentContentProvider(Permissions.scheme, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.diffs.get(uri.path) ?? "";
  }

  /** Asks; token is cancelled when a stop has answered the question. */
  async ask(q: PermissionParams, token: vscode.CancellationToken): Promise<PermissionResult> {
    const once = l10n.t("Allow Once");
    const session = l10n.t("Allow for Session");
    const deny = l10n.t("Deny…");
    const show = l10n.t("Show Diff");
    const stopped = new Promise<undefined>((resolve) => token.onCancellationRequested(() => resolve(undefined)));
    const buttons = [once, session, deny];
    if (q.diff !== undefined && q.diff !== "") buttons.unshift(show);
    for (;;) {
      const choice = await Promise.race([vscode.window.showInformationMessage(message(q), ...buttons), stopped]);
      if (token.isCancellationRequested) return { answer: "deny" };
      switch (choice) {
        case once:
          return { answer: "once" };
        case session:
          return { answer: "session" };
        case show:
          await this.showDiff(q);
          continue;
        case deny: {
          const why = await Promise.race([
            vscode.window.showInputBox({ prompt: l10n.t("Why not? The model is told. Leave it empty to say nothing."), ignoreFocusOut: true }),
            stopped,
          ]);
          return why ? { answer: "deny", why } : { answer: "deny" };
        }
        default:
          return { answer: "deny", why: l10n.t("the question was closed without an answer") };
      }
    }
  }

  private async showDiff(q: PermissionParams): Promise<void> {
    const uri = vscode.Uri.from({ scheme: Permissions.scheme, path: `/${q.turn}/${q.step}/${q.call}.diff` });
    this.diffs.set(uri.path, q.diff ?? "");
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, "diff");
    await vscode.window.showTextDocument(document, { preview: true, preserveFocus: true });
  }

  dispose(): void {
    this.subscription.dispose();
  }
}

function message(q: PermissionParams): string {
  const what = q.command !== undefined && q.command !== "" ? l10n.t("fermata wants to run: {0}", visible(q.command)) : l10n.t("fermata wants to: {0}", visible(q.summary));
  return q.why === "" ? what : `${what} (${q.why})`;
}

/** Control characters as such, so that nothing is hidden in a command. */
export function visible(text: string): string {
  const shown = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u{${c.codePointAt(0)?.toString(16) ?? ""}}`);
  return shown.length > 600 ? shown.slice(0, 600) + "…" : shown;
}
