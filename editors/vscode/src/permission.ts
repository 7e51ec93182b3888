import * as vscode from "vscode";
import { l10n } from "vscode";
import type { PermissionParams, PermissionResult } from "./protocol";
import { visible } from "./visible";

// The permission question: a notification that blocks nothing. Answering it, closing it and stopping the turn all settle it,
// and it goes with whichever comes first. That is why it is one with progress: VS Code lets an extension take no other away.
// Its answers are links for the same reason.

type Choice = "once" | "session" | "deny" | "show";

export class Permissions implements vscode.TextDocumentContentProvider, vscode.Disposable {
  static readonly scheme = "fermata-permission";
  private readonly diffs = new Map<string, string>();
  private readonly waiting = new Map<number, (choice: Choice) => void>();
  private count = 0;
  private readonly subscriptions = [
    vscode.workspace.registerTextDocumentContentProvider(Permissions.scheme, this),
    vscode.commands.registerCommand("fermata.answerPermission", (id: number, choice: Choice) => this.waiting.get(id)?.(choice)),
    // Keys and other extensions answer the oldest question.
    ...(["once", "session", "deny"] as const).map((choice) =>
      vscode.commands.registerCommand(`fermata.permission.${choice}`, () => this.waiting.values().next().value?.(choice))),
  ];

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.diffs.get(uri.path) ?? "";
  }

  /** Asks; token is cancelled when a stop has answered the question. */
  async ask(q: PermissionParams, token: vscode.CancellationToken): Promise<PermissionResult> {
    const id = ++this.count;
    const hasDiff = q.diff !== undefined && q.diff !== "";
    void vscode.commands.executeCommand("setContext", "fermata.asks", true);
    try {
      return await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, cancellable: true, title: message(q) }, async (progress, closed) => {
        progress.report({ message: links(id, hasDiff) });
        const settled = new Promise<PermissionResult>((resolve) => {
          token.onCancellationRequested(() => resolve({ answer: "deny" }));
          closed.onCancellationRequested(() => resolve({ answer: "deny", why: l10n.t("the question was closed without an answer") }));
        });
        for (;;) {
          const choice = await Promise.race([new Promise<Choice>((resolve) => this.waiting.set(id, resolve)), settled]);
          switch (choice) {
            case "once":
            case "session":
              return { answer: choice };
            case "show":
              await this.showDiff(q);
              continue;
            case "deny":
              return this.denied(token);
            default:
              return choice;
          }
        }
      });
    } finally {
      this.waiting.delete(id);
      void vscode.commands.executeCommand("setContext", "fermata.asks", this.waiting.size > 0);
    }
  }

  private async denied(token: vscode.CancellationToken): Promise<PermissionResult> {
    const why = await vscode.window.showInputBox({ prompt: l10n.t("Why not? The model is told. Leave it empty to say nothing."), ignoreFocusOut: true }, token);
    return why !== undefined && why.trim() !== "" ? { answer: "deny", why } : { answer: "deny" };
  }

  private async showDiff(q: PermissionParams): Promise<void> {
    const uri = vscode.Uri.from({ scheme: Permissions.scheme, path: `/${q.turn}/${q.step}/${q.call}.diff` });
    this.diffs.set(uri.path, q.diff ?? "");
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, "diff");
    await vscode.window.showTextDocument(document, { preview: true, preserveFocus: true });
  }

  dispose(): void {
    for (const s of this.subscriptions) s.dispose();
  }
}

function message(q: PermissionParams): string {
  const what = q.command !== undefined && q.command !== "" ? l10n.t("fermata wants to run: {0}", visible(q.command)) : l10n.t("fermata wants to: {0}", visible(q.summary));
  const sandbox = q.sandbox !== undefined && q.sandbox !== "" ? ` [${visible(q.sandbox)}]` : "";
  return q.why === "" ? what + sandbox : `${what} (${visible(q.why)})${sandbox}`;
}

function links(id: number, hasDiff: boolean): string {
  const link = (label: string, choice: Choice): string => `[${label}](command:fermata.answerPermission?${encodeURIComponent(JSON.stringify([id, choice]))})`;
  return [
    ...(hasDiff ? [link(l10n.t("Show Diff"), "show")] : []),
    link(l10n.t("Allow Once"), "once"), link(l10n.t("Allow for Session"), "session"), link(l10n.t("Deny…"), "deny"),
  ].join(" · ");
}
