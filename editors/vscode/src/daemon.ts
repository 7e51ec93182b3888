import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { CloseAction, ConnectionError, ErrorAction, ErrorCodes, LanguageClient, LSPErrorCodes, ResponseError, State, type LanguageClientOptions, type StaticFeature } from "vscode-languageclient/node";
import { isBrokenPipe } from "./pipe";
import { protocol, eventMethod, type DaemonRequests, type ErrorData, type Event, type Requests } from "./protocol";

// The connection to the daemon: started with the first thing that needs it, started again when it dies.

type Handlers = { [M in keyof DaemonRequests]: (params: DaemonRequests[M]["params"], token: vscode.CancellationToken) => Promise<DaemonRequests[M]["result"]> };

/** Waits before the daemon is started again, in milliseconds; after the last of them the user decides. */
const backOff = [0, 500, 2000, 5000];

/** A daemon that lived this long has not failed at its start. */
const settled = 30_000;

export class Daemon implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private starting: Promise<LanguageClient> | undefined;
  private failures = 0;
  private since = 0;
  private disposed = false;
  private readonly events = new vscode.EventEmitter<Event>();
  private readonly states = new vscode.EventEmitter<"running" | "stopped">();

  /** What happens in the sessions that are followed. */
  readonly onEvent = this.events.event;
  /** That the daemon has come or gone. A new one follows no session yet. */
  readonly onState = this.states.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
    private readonly handlers: Handlers,
  ) {}

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  /** Asks the daemon, which is started if need be. Errors are ResponseErrors; see {@link kindOf}. */
  async request<M extends keyof Requests>(method: M, params: Requests[M]["params"], token?: vscode.CancellationToken): Promise<Requests[M]["result"]> {
    const client = await this.start();
    // An absent token must not be given: it would become a second positional parameter.
    return token === undefined ? client.sendRequest<Requests[M]["result"]>(method, params) : client.sendRequest<Requests[M]["result"]>(method, params, token);
  }

  async start(): Promise<LanguageClient> {
    if (this.client !== undefined && this.client.state !== State.Stopped) {
      await this.starting;
      return this.client;
    }
    if (this.starting === undefined) {
      const starting = this.launch().finally(() => {
        if (this.starting === starting) this.starting = undefined;
      });
      this.starting = starting;
    }
    return this.starting;
  }

  private async launch(): Promise<LanguageClient> {
    const command = await this.binary();
    const config = vscode.workspace.getConfiguration("fermata");
    const args = ["lsp", ...config.get<string[]>("args", [])];
    const env = { ...process.env, ...config.get<Record<string, string>>("env", {}) };
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-remote" }],
      outputChannel: this.log,
      middleware: {
        // Between the daemon's end and the word of it what is written comes to nothing, which is nobody's fault: no alarm.
        sendRequest: (type, params, token, next) => next(type, params, token).catch((err: unknown) => {
          throw isBrokenPipe(err) ? new ResponseError(ErrorCodes.ConnectionInactive, messageOf(err)) : err;
        }),
        sendNotification: (type, next, params) => next(type, params).catch((err: unknown) => {
          if (!isBrokenPipe(err)) throw err;
        }),
        provideCodeLenses: (document, token, next) =>
          vscode.workspace.getConfiguration("fermata").get("inline") === "codelens" ? next(document, token) : [],
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: CloseAction.DoNotRestart, handled: true }), // it is started again here, see died
      },
      initializationFailedHandler: () => false,
    };
    const client = new Client("fermata", "Fermata", { command, args, options: { env } }, options);
    client.registerFeature(announce);
    client.onNotification(eventMethod, (e: Event) => this.events.fire(e));
    for (const [method, handler] of Object.entries(this.handlers)) client.onRequest(method, handler);
    client.onDidChangeState((e) => {
      if (e.newState === State.Stopped && e.oldState === State.Running) this.died(client);
    });
    this.client = client;
    try {
      await client.start();
    } catch (err) {
      if (this.client !== client && !this.disposed) return this.start(); // it was given up by a restart: whoever waits, waits for that
      this.client = undefined;
      throw new Error(vscode.l10n.t("The fermata daemon did not start: {0}", messageOf(err)), { cause: err });
    }
    const theirs: unknown = client.initializeResult?.capabilities.experimental;
    const version = protocolOf(theirs);
    if (version !== protocol) {
      const its = client.initializeResult?.serverInfo?.version ?? "?";
      this.client = undefined; // before its end, which is not to start it again
      await client.stop().catch(() => undefined); // an old one may not know how
      throw new Error(vscode.l10n.t("{0} (version {1}) speaks another protocol ({2}) than this extension ({3}): update the older of the two.", command, its, String(version ?? "none"), protocol));
    }
    this.since = Date.now();
    this.log.info(`the daemon runs: ${command}, version ${client.initializeResult?.serverInfo?.version ?? "?"}`);
    this.states.fire("running");
    return client;
  }

  /** Restarts on the user's word. */
  async restart(): Promise<void> {
    this.failures = 0;
    const client = this.client;
    this.client = undefined;
    this.starting = undefined; // one that does not come is not waited for
    await client?.stop().catch(() => undefined);
    await this.start();
  }

  private died(client: LanguageClient): void {
    this.states.fire("stopped");
    if (this.disposed || this.client !== client) return;
    this.client = undefined;
    if (Date.now() - this.since > settled) this.failures = 0;
    const wait = backOff[this.failures++];
    if (wait === undefined) {
      const again = vscode.l10n.t("Restart Daemon");
      const show = vscode.l10n.t("Show Log");
      void vscode.window.showErrorMessage(vscode.l10n.t("The fermata daemon keeps ending. Nothing that was said is lost."), again, show).then((choice) => {
        if (choice === again) return this.restart();
        if (choice === show) this.log.show();
        return undefined;
      });
      return;
    }
    this.log.warn(`the daemon ended; starting it again in ${wait} ms`);
    setTimeout(() => {
      if (!this.disposed && this.client === undefined) this.start().catch((err: unknown) => this.log.error(messageOf(err))); // the next request tries again, and says why not
    }, wait);
  }

  /** Where the daemon's program is: the setting, else on PATH, else the one that came with the extension. */
  private async binary(): Promise<string> {
    const name = process.platform === "win32" ? "fermata.exe" : "fermata";
    const setting = vscode.workspace.getConfiguration("fermata").get<string>("path", "");
    if (setting !== "") {
      const full = /^~[\\/]/.test(setting) ? path.join(os.homedir(), setting.slice(2)) : setting;
      if (await executable(full)) return full;
      throw new MissingBinary(vscode.l10n.t("fermata.path is {0}, and there is no such program.", full));
    }
    for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
      // A relative entry would mean a program of whatever folder is open.
      if (path.isAbsolute(folder) && (await executable(path.join(folder, name)))) return path.join(folder, name);
    }
    const packaged = this.context.asAbsolutePath(path.join("bin", name));
    if (await executable(packaged)) return packaged;
    throw new MissingBinary(vscode.l10n.t("The fermata program is not on PATH. Install it, or set fermata.path to where it is."));
  }

  dispose(): void {
    this.disposed = true;
    this.events.dispose();
    this.states.dispose();
    void this.client?.dispose().catch(() => undefined);
  }
}

/** What goes wrong is told once, by whoever has asked for something: the library's own word of it goes to the log. */
class Client extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** There is no daemon to start. */
export class MissingBinary extends Error {}

const announce: StaticFeature = {
  fillClientCapabilities(capabilities) {
    // ownCommands: VS Code knows the commands from package.json, and registering them twice is an error.
    // Nor progress: what runs stands in the thread and in the status bar, and another spinner there would tell nothing more.
    if (capabilities.window !== undefined) capabilities.window.workDoneProgress = false;
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), fermata: { protocol, ownCommands: true } };
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

async function executable(file: string): Promise<boolean> {
  try {
    await fs.promises.access(file, fs.constants.X_OK);
    return (await fs.promises.stat(file)).isFile();
  } catch {
    return false;
  }
}

function protocolOf(experimental: unknown): number | undefined {
  if (typeof experimental !== "object" || experimental === null || !("fermata" in experimental)) return undefined;
  const capability = experimental.fermata;
  if (typeof capability !== "object" || capability === null || !("protocol" in capability)) return undefined;
  return typeof capability.protocol === "number" ? capability.protocol : undefined;
}

/** The stable name of an error that the daemon answered. */
export function kindOf(err: unknown): ErrorData["kind"] | undefined {
  if (!(err instanceof ResponseError)) return undefined;
  const data: unknown = err.data;
  return typeof data === "object" && data !== null && "kind" in data ? (data as ErrorData).kind : undefined;
}

/** Whether an answer will not come because the daemon went away: what that means is told with its state. */
export function isGone(err: unknown): boolean {
  return err instanceof ResponseError && (err.code === LSPErrorCodes.ServerCancelled || err.code === ErrorCodes.PendingResponseRejected || err.code === ErrorCodes.ConnectionInactive)
    || (err instanceof ConnectionError);
}

export function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
