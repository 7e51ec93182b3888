import * as vscode from "vscode";
import { l10n } from "vscode";
import { Asking } from "./asking";
import { Changes } from "./changes";
import { Conversation } from "./conversation";
import { Daemon, MissingBinary, messageOf } from "./daemon";
import { Inputs, Transcripts, inputScheme, transcriptScheme } from "./documents";
import { Permissions } from "./permission";
import type { CommandArgs } from "./protocol";
import { Sessions } from "./sessions";
import { Status } from "./status";
import { Turns } from "./turns";

type About = vscode.CommentThread | CommandArgs | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Fermata", { log: true });
  const permissions = new Permissions();
  const daemon = new Daemon(context, log, { "fermata/permission": (q, token) => permissions.ask(q, token) });
  const turns = new Turns();
  const sessions = new Sessions(context.workspaceState, daemon, turns);
  const conversation = new Conversation(turns);
  const transcripts = new Transcripts(daemon, turns);
  const inputs = new Inputs(daemon);
  const changes = new Changes(daemon);
  const status = new Status(turns);
  const report = (err: unknown): void => void told(err, log);
  const asking = new Asking(daemon, sessions, turns, conversation, report);

  const session = (about: About): string | undefined => {
    const active = vscode.window.activeTextEditor?.document.uri;
    if (active?.scheme === transcriptScheme) return transcripts.sessionOf(active);
    const named = about !== undefined && "session" in about ? about.session : undefined;
    return asking.turnOf(about)?.session ?? named ?? sessions.current(sessions.rootOf(active)) ?? turns.last()?.session;
  };
  const turn = (about: About) => asking.turnOf(about) ?? (about === undefined ? undefined : turns.last(session(about)));

  const commands: Record<string, (about?: About) => unknown> = {
    "fermata.ask": (about) => asking.ask(about !== undefined && !("comments" in about) ? about : undefined),
    "fermata.stop": (about) => asking.stop(about),
    "fermata.redirect": (about) => asking.redirect(about),
    "fermata.queue": () => asking.queue(),
    "fermata.keep": (about) => asking.keep(about),
    "fermata.retry": (about) => asking.retry(about),
    "fermata.openTranscript": async (about) => {
      const id = session(about);
      if (id === undefined) return void vscode.window.showInformationMessage(l10n.t("Nothing was asked here yet."));
      await sessions.follow(id);
      await transcripts.open(id);
    },
    "fermata.showModelInput": (about) => inputs.open(about !== undefined && "request" in about ? about.request : undefined, session(about)),
    "fermata.compareModelInput": () => {
      const uri = vscode.window.activeTextEditor?.document.uri;
      return uri?.scheme === inputScheme ? inputs.compare(uri) : undefined;
    },
    "fermata.showChanges": (about) => changes.show(turn(about)),
    "fermata.revert": (about) => changes.revert(turn(about)),
    "fermata.closeThread": (about) => (about !== undefined && "comments" in about ? conversation.close(about) : undefined),
    "fermata.restart": () => daemon.restart(),
    "fermata.showLog": () => log.show(),
  };
  const guarded = Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (about?: About) => {
      try {
        await run(about);
      } catch (err) {
        report(err);
      }
    }),
  );
  const reply = vscode.commands.registerCommand("fermata.reply", (r: vscode.CommentReply) => asking.reply(r).catch(report));

  context.subscriptions.push(
    log, permissions, daemon, sessions, conversation, transcripts, inputs, changes, status, reply, ...guarded,
    daemon.onEvent((e) => turns.event(e)),
    daemon.onState((state) => {
      if (state === "stopped") turns.lost();
    }),
  );
}

async function told(err: unknown, log: vscode.LogOutputChannel): Promise<void> {
  log.error(messageOf(err));
  if (err instanceof MissingBinary) {
    const settings = l10n.t("Open Settings");
    if ((await vscode.window.showErrorMessage(err.message, settings)) === settings) await vscode.commands.executeCommand("workbench.action.openSettings", "fermata.path");
    return;
  }
  const show = l10n.t("Show Log");
  if ((await vscode.window.showErrorMessage(messageOf(err), show)) === show) log.show();
}
