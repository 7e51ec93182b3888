import * as vscode from "vscode";
import { l10n } from "vscode";
import { Asking } from "./asking";
import { Changes } from "./changes";
import { Conversation } from "./conversation";
import { Daemon, MissingBinary, messageOf } from "./daemon";
import { Inputs, inputScheme } from "./inputs";
import { InputLenses, TranscriptLenses } from "./lenses";
import { Models } from "./models";
import { participant } from "./participant";
import { Permissions } from "./permission";
import type { CommandArgs, Session, TurnChangesParams } from "./protocol";
import { makeReady, meant } from "./ready";
import { Sessions } from "./sessions";
import { SessionView } from "./sessionview";
import { StatsPage } from "./stats";
import { Status } from "./status";
import { Transcripts, transcriptScheme } from "./transcripts";
import { Turns } from "./turns";

type About = vscode.CommentThread | CommandArgs | vscode.Uri | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const begun = performance.now();
  const cpu = process.cpuUsage();
  const log = vscode.window.createOutputChannel("Fermata", { log: true });
  const report = (err: unknown): void => void told(err, log);
  const permissions = new Permissions();
  const daemon = new Daemon(context, log, { "fermata/permission": (q, token) => permissions.ask(q, token) });
  const turns = new Turns();
  const models = new Models(context.workspaceState, daemon);
  const status = new Status(turns, models); // before the conversation: that it is stopping is seen here first
  const conversation = new Conversation(turns, context.workspaceState, log);
  const sessions = new Sessions(context.workspaceState, daemon, turns, () => conversation.sessions);
  const transcripts = new Transcripts(daemon, turns);
  const inputs = new Inputs(daemon);
  const changes = new Changes(daemon, turns, report);
  const view = new SessionView(daemon, sessions, turns, (session) => conversation.forget(session));
  const stats = new StatsPage(daemon);
  const asking = new Asking(daemon, sessions, turns, conversation, models, report);

  const active = (): vscode.Uri | undefined => vscode.window.activeTextEditor?.document.uri;
  const session = async (about: About): Promise<string | undefined> => {
    const uri = active();
    const named = argsOf(about)?.session;
    if (named !== undefined) return named;
    if (about === undefined && uri?.scheme === transcriptScheme) return transcripts.sessionOf(uri);
    const root = sessions.rootOf(uri);
    return turnOf(about)?.session ?? sessions.current(root) ?? (await sessions.newest(root)) ?? turns.last()?.session;
  };
  const turnOf = (about: About) => (about instanceof vscode.Uri ? undefined : asking.turnOf(about));
  // The turn that a menu was opened on or whose changes are shown, else the last of the session that it is possible for.
  const turn = async (about: About): Promise<TurnChangesParams | undefined> => {
    const uri = active();
    const named = turnOf(about)?.turn ?? argsOf(about)?.turn ?? (about === undefined && uri !== undefined ? changes.turnOf(uri) : undefined);
    if (named !== undefined) return { turn: named };
    const of = await session(about);
    return of === undefined ? undefined : { session: of };
  };
  /** Does something with what was found, or says that there is nothing yet. */
  const withKnown = async <T>(found: Promise<T | undefined>, use: (of: T) => Promise<void>): Promise<void> => {
    const of = await found;
    if (of === undefined) void vscode.window.showInformationMessage(l10n.t("Nothing was asked here yet."));
    else await use(of);
  };
  const input = (about: About): vscode.Uri | undefined => (about instanceof vscode.Uri ? about : active());

  const commands: Record<string, (about?: About) => unknown> = {
    "fermata.ask": (about) => asking.ask(argsOf(about)),
    "fermata.stop": (about) => asking.stop(about instanceof vscode.Uri ? undefined : about),
    "fermata.stopping": (about) => asking.stop(about instanceof vscode.Uri ? undefined : about), // a second stop is the first
    "fermata.redirect": (about) => asking.redirect(about instanceof vscode.Uri ? undefined : about),
    "fermata.queue": () => asking.queue(),
    "fermata.keep": (about) => asking.keep(about instanceof vscode.Uri ? undefined : about),
    "fermata.retry": (about) => asking.retry(about instanceof vscode.Uri ? undefined : about),
    "fermata.selectModel": () => models.select(),
    "fermata.openTranscript": (about) => withKnown(session(about), async (id) => {
      await sessions.follow(id);
      await transcripts.open(id, turnOf(about)?.turn ?? argsOf(about)?.turn);
    }),
    "fermata.showWholeTranscript": (about) => {
      const uri = input(about);
      return uri?.scheme === transcriptScheme ? transcripts.showWhole(uri) : undefined;
    },
    "fermata.showModelInput": (about) => {
      const request = argsOf(about)?.request ?? turnOf(about)?.steps.at(-1)?.request;
      return request !== undefined ? inputs.open(request) : withKnown(session(about), (of) => inputs.open(undefined, of));
    },
    "fermata.compareModelInput": async (about) => {
      const uri = input(about);
      if (uri?.scheme === inputScheme) return inputs.compare(uri);
      await withKnown(session(undefined), (of) => inputs.open(undefined, of));
      const opened = active();
      return opened?.scheme === inputScheme ? inputs.compare(opened) : undefined;
    },
    "fermata.showExactInput": (about) => {
      const uri = input(about);
      return uri?.scheme === inputScheme ? inputs.exact(uri) : undefined;
    },
    "fermata.showChanges": (about) => withKnown(turn(about), (of) => changes.show(of)),
    "fermata.revert": (about) => withKnown(turn(about), (of) => changes.revert(of)),
    "fermata.revertFiles": (about) => withKnown(turn(about), (of) => changes.revertFiles(of)),
    "fermata.closeThread": (about) => (about !== undefined && "comments" in about ? conversation.close(about) : undefined),
    "fermata.showSessions": () => vscode.commands.executeCommand("fermata.sessions.focus"),
    "fermata.showStats": () => stats.show(sessions.rootOf(active())),
    "fermata.restart": () => daemon.restart(),
    "fermata.showLog": () => log.show(),
  };
  const viewCommands: Record<string, (s?: Session) => unknown> = {
    "fermata.newSession": () => view.begin(),
    "fermata.searchSessions": () => view.search(),
    "fermata.clearSearch": () => view.clear(),
    "fermata.refreshSessions": () => view.refresh(),
    "fermata.useSession": (s) => view.use(s),
    "fermata.renameSession": (s) => view.rename(s),
    "fermata.forkSession": (s) => view.fork(s),
    "fermata.deleteSession": (s) => view.delete(s),
  };
  const guarded = Object.entries({ ...commands, ...viewCommands } as Record<string, (about?: unknown) => unknown>).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (about?: unknown) => {
      try {
        if (meant(about)) await run(about);
      } catch (err) {
        report(err);
      }
    }),
  );
  const reply = (r: vscode.CommentReply): void => {
    try {
      asking.reply(r);
    } catch (err) {
      report(err);
    }
  };

  context.subscriptions.push(
    log, permissions, daemon, sessions, conversation, transcripts, inputs, changes, models, status, view, stats,
    new TranscriptLenses(transcripts, turns), new InputLenses(inputs),
    ...guarded,
    vscode.commands.registerCommand("fermata.reply", reply), vscode.commands.registerCommand("fermata.followUp", reply),
    ...participant(daemon, sessions, models),
    daemon.onEvent((e) => turns.event(e)),
    daemon.onState((state) => {
      if (state === "stopped") turns.lost();
    }),
  );
  makeReady(["fermata.stop", "fermata.ask"]).then(undefined, (err: unknown) => log.warn(messageOf(err)));
  // Code actions, and the threads that were open before a reload, need it; that it is missing is said when something is asked.
  daemon.start().catch((err: unknown) => log.warn(messageOf(err)));
  const { user, system } = process.cpuUsage(cpu); // other windows and extensions start at the same time
  log.info(`activated in ${(performance.now() - begun).toFixed(1)} ms, ${((user + system) / 1000).toFixed(1)} ms of CPU`);
}

function argsOf(about: About): CommandArgs | undefined {
  return about === undefined || about instanceof vscode.Uri || "comments" in about ? undefined : about;
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
