import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import { Spoken } from "./markdown";
import type { Models } from "./models";
import type { TurnStarted } from "./protocol";
import type { Sessions } from "./sessions";

// @fermata in VS Code's own chat, where there is one. Its stop is a stop: what was said is kept.

/** The participant, or nothing where this VS Code has no chat. */
export function participant(daemon: Daemon, sessions: Sessions, models: Models): { dispose(): unknown }[] {
  // Editors that are built from VS Code's source can lack it, whatever its types say.
  const chat = (vscode as { chat?: typeof vscode.chat }).chat;
  if (typeof chat?.createChatParticipant !== "function") return [];
  const handler: vscode.ChatRequestHandler = async (request, _context, response, token) => {
    const root = sessions.rootOf(vscode.window.activeTextEditor?.document.uri);
    const session = await sessions.forQuestion(root);
    const clientId = randomUUID();
    let turn: string | undefined;
    const spoken = new Spoken();
    const listening = daemon.onEvent((e) => {
      if (e.session !== session) return;
      if (e.kind === "turn.started" && "entry" in e && (e.entry as TurnStarted).client_id === clientId) turn = (e.entry as TurnStarted).turn;
      if (e.kind === "delta" && "text" in e && e.turn === turn && e.part === "text") response.markdown(spoken.add(e.text));
      if (e.kind === "retracted" && "why" in e && e.turn === turn) response.progress(l10n.t("trying again…"));
    });
    // Cancelling the request is a stop, and its reply a result.
    const model = models.chosen;
    try {
      const r = await daemon.request("fermata/turn/start", { session, prompt: [{ type: "text", text: request.prompt }], clientId, ...(model !== "" && { model }) }, token);
      if (r.outcome === "failed") return { errorDetails: { message: r.error ?? r.cause ?? l10n.t("It failed.") } };
      if (r.outcome === "stopped" && r.kept !== undefined) response.markdown(`\n\n*${l10n.t("{0} words kept: the model will see exactly this.", r.kept.words)}*`);
      return {};
    } finally {
      response.markdown(spoken.rest());
      listening.dispose();
    }
  };
  return [chat.createChatParticipant("fermata.chat", handler)];
}
