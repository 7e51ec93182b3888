import { spawn, execFile, type ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { chromium, type Browser, type Page } from "playwright-core";
import { putAway, Window } from "./window";

// A place to test in: a home of its own, the scripted model, real VS Code with the packaged extension, and a browser. All of
// it is ended by close, and none of it is outside of one temporary folder and of the ports that the kernel gave.

const exec = promisify(execFile);

/** What test/all.sh has set up, by environment variables. */
function given(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set: run the tests with make test-vscode`);
  return value;
}

/** How long a window's host of extensions is given to end with it, in milliseconds. */
const patience = 15_000;

/** Ends the process that has started another one. */
function endParent(pid: number): void {
  try {
    const parent = Number(/^PPid:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    if (parent > 1) process.kill(parent, "SIGKILL");
  } catch {
    // one of the two has just ended
  }
}

/** One project in the place, with its own folder. */
export interface Project {
  root: string;
  file(name: string): string;
  read(name: string): string;
}

export class Place {
  readonly shots = given("FERMATA_SHOTS");
  private readonly children: ChildProcess[] = [];
  private browser: Browser | undefined;
  private page: Page | undefined;
  private window: Window | undefined;
  private url = "";

  private constructor(
    readonly home: string,
    readonly env: NodeJS.ProcessEnv,
  ) {}

  static async make(scenario: string): Promise<Place> {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "fermata-vscode-"));
    const binary = given("FERMATA_BINARY");
    const env: NodeJS.ProcessEnv = {
      HOME: home, TMPDIR: home, PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", SHELL: "/bin/sh",
      XDG_CONFIG_HOME: path.join(home, "config"), XDG_DATA_HOME: path.join(home, "data"), XDG_STATE_HOME: path.join(home, "state"),
      XDG_CACHE_HOME: path.join(home, "cache"), XDG_RUNTIME_DIR: home,
    };
    const place = new Place(home, env);
    try {
      await place.start(scenario, binary);
    } catch (err) {
      await place.close();
      throw err;
    }
    return place;
  }

  private async start(scenario: string, binary: string): Promise<void> {
    fs.mkdirSync(this.recorded, { recursive: true });
    const model = await this.line(binary, ["model", "--scenario", scenario, "--record", this.recorded], /^http\S+/);
    this.write("config/fermata/config.toml", `model = "scripted/model"\n[providers.scripted]\nkind = "deepseek"\nbase_url = "${model}"\n[limits]\ntries = 1\n`);
    // VS Code asks a login shell for the PATH, as after an installation of fermata in a folder of the user's.
    this.write(".profile", `PATH="${path.dirname(binary)}:$PATH"\n`);
    this.settings();
    this.write("vscode/User/keybindings.json", JSON.stringify([{
      key: putAway.toLowerCase().replace("control", "ctrl"), command: "runCommands",
      args: { commands: ["workbench.action.closeAuxiliaryBar", "workbench.view.explorer", "notifications.clearAll", "workbench.action.closeAllEditors"] },
    }]));
    const node = given("FERMATA_NODE");
    const entry = given("FERMATA_CODE_SERVER");
    const data = ["--user-data-dir", path.join(this.home, "vscode"), "--extensions-dir", path.join(this.home, "extensions")];
    await exec(node, [entry, ...data, "--install-extension", given("FERMATA_VSIX")], { env: this.env });
    const args = [entry, ...data, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"];
    this.url = await this.line(node, args, /http:\/\/127\.0\.0\.1:\d+/);
    const chromiumPath = given("FERMATA_BROWSER");
    this.browser = await chromium.launch({
      executablePath: chromiumPath,
      env: { HOME: this.home, TMPDIR: this.home, LD_LIBRARY_PATH: given("FERMATA_LIBRARIES"), FONTCONFIG_PATH: path.join(path.dirname(chromiumPath), "fonts") },
      args: [
        "--headless=shell", "--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
      ],
    });
  }

  /** The folder with the bodies that the model was sent, as 0001.json and so on. */
  get recorded(): string {
    return path.join(this.home, "recorded");
  }

  /** The bodies of all requests so far. */
  bodies(): string[] {
    return fs.readdirSync(this.recorded).sort().map((f) => fs.readFileSync(path.join(this.recorded, f), "utf8"));
  }

  /** Writes the settings of this machine, which go before the user's; VS Code sees them while it runs. */
  machineSettings(settings: Record<string, unknown>): void {
    this.write("vscode/Machine/settings.json", JSON.stringify(settings));
  }

  /** Writes the user's settings, for windows that are opened from now on. */
  settings(more: Record<string, unknown> = {}): void {
    this.write("vscode/User/settings.json", JSON.stringify({
      "window.autoDetectColorScheme": true, "workbench.preferredDarkColorTheme": "Dark Modern", "workbench.preferredLightColorTheme": "Light Modern", "workbench.startupEditor": "none", "security.workspace.trust.enabled": false,
      "editor.minimap.enabled": false, "chat.commandCenter.enabled": false, "workbench.secondarySideBar.defaultVisibility": "hidden",
      "git.enabled": false, "files.autoSave": "off", "comments.openView": "never", "extensions.ignoreRecommendations": true, "telemetry.telemetryLevel": "off", "editor.accessibilitySupport": "off",
      "workbench.enableExperiments": false, "window.commandCenter": false, "remote.autoForwardPorts": false, "workbench.reduceMotion": "on", "editor.cursorBlinking": "solid", ...more,
    }, null, 1));
  }

  private write(name: string, text: string): void {
    const file = path.join(this.home, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }

  /** Makes a project with some files. */
  project(name: string, files: Record<string, string>): Project {
    const root = path.join(this.home, "projects", name);
    for (const [file, text] of Object.entries(files)) this.write(path.join("projects", name, file), text);
    fs.mkdirSync(path.join(root, ".git"), { recursive: true }); // makes it a root of its own
    return {
      root,
      file: (f) => path.join(root, f),
      read: (f) => fs.readFileSync(path.join(root, f), "utf8"),
    };
  }

  /**
   * Opens a window of VS Code on a folder, on several, or on none. A language is that of what extensions say: VS Code's own
   * words stay English, for those of other languages come from an extension that is not here.
   */
  async open(project?: Project | Project[], language?: string): Promise<Window> {
    await this.closeWindow();
    const page = await this.openPage(language);
    let query = "ew=true";
    if (Array.isArray(project)) {
      this.write("projects/several.code-workspace", JSON.stringify({ folders: project.map((p) => ({ path: p.root })) }));
      query = `workspace=${encodeURIComponent(path.join(this.home, "projects/several.code-workspace"))}`;
    } else if (project !== undefined) query = `folder=${encodeURIComponent(project.root)}`;
    this.window = new Window(page, this, `${this.url}/?${query}`);
    await this.window.load();
    if (Array.isArray(project)) await this.window.folders(project.map((p) => path.basename(p.root)));
    return this.window;
  }

  /** One page for all windows, one after the other: VS Code's code is fetched and compiled once. A language stays with a page. */
  private async openPage(language?: string): Promise<Page> {
    if (this.browser === undefined) throw new Error("there is no browser");
    if (this.page === undefined || this.page.isClosed() || language !== undefined) {
      const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
      this.page = await context.newPage();
      this.page.setDefaultTimeout(60_000);
      this.page.on("dialog", (d) => void d.accept()); // what is unsaved
      if (language !== undefined) await this.page.addInitScript((l) => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: l }), language);
    }
    return this.page;
  }

  /** Has the next windows wait for a part of VS Code, until the result is called; that says whether it was asked for. */
  async hold(part: string): Promise<() => Promise<boolean>> {
    const page = await this.openPage();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const asked: Promise<void>[] = [];
    await page.route(part, (route) => void asked.push(held.then(() => route.continue())));
    return async () => {
      release();
      await Promise.all(asked);
      await page.unroute(part);
      return asked.length > 0;
    };
  }

  /** Keeps how the window looks, and prints what is known, for whoever reads why a test failed. */
  async failed(name: string): Promise<void> {
    fs.mkdirSync(this.shots, { recursive: true });
    await this.window?.page.screenshot({ path: path.join(this.shots, `FAILED-${name.replace(/\W+/g, "-").slice(0, 60)}.png`) }).catch(() => undefined);
    for (const part of [".tabs-container", ".statusbar", ".notification-toast", ".quick-input-widget:visible", ".review-widget"]) {
      for (const text of (await this.window?.page.locator(part).allInnerTexts().catch(() => [])) ?? []) console.log(`   on the screen, ${part}: ${JSON.stringify(text.slice(0, 500))}`);
    }
    console.log(`   the model was sent ${this.bodies().length} requests; the extension's log ends with:\n${this.logged(/.*\S.*/).slice(-25).map((l) => `     ${l}`).join("\n")}`);
  }

  /** What fermata prints, run by the same user in a folder. */
  async fermata(project: Project, ...args: string[]): Promise<string> {
    const r = await exec(given("FERMATA_BINARY"), args, { env: this.env, cwd: project.root, maxBuffer: 1 << 26 });
    return r.stdout;
  }

  /** The entries of a project's newest session, as the log has them. */
  async log(project: Project): Promise<{ seq: number; kind: string; entry: Record<string, unknown> }[]> {
    const entries = JSON.parse(await this.fermata(project, "transcript", "--json")) as { seq: number; kind: string; body: Record<string, unknown> }[];
    return entries.map((e) => ({ seq: e.seq, kind: e.kind, entry: e.body }));
  }

  /** The process ids of the daemons that run. */
  daemons(): number[] {
    return fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)).flatMap((pid) => {
      try {
        const args = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        const ours = fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`HOME=${this.home}`);
        return ours && args[0]?.endsWith("/fermata") === true && args[1] === "lsp" ? [Number(pid)] : [];
      } catch {
        return []; // it has ended, or is another user's
      }
    });
  }

  /** What the extension has logged that matches, in all windows so far. */
  logged(pattern: RegExp): string[] {
    const logs = fs.readdirSync(path.join(this.home, "vscode/logs"), { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith("Fermata.log"));
    return logs.flatMap((f) => fs.readFileSync(path.join(this.home, "vscode/logs", f), "utf8").split("\n")).flatMap((l) => pattern.exec(l) ?? []);
  }

  /** Starts a program that lives as long as the place, and returns what its output matches first. */
  private line(program: string, args: string[], pattern: RegExp): Promise<string> {
    const child = spawn(program, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"], cwd: this.home });
    this.children.push(child);
    const said: string[] = [];
    return new Promise((resolve, reject) => {
      const hear = (l: string): void => {
        said.push(l);
        const found = pattern.exec(l);
        if (found !== null) resolve(found[0]);
      };
      createInterface({ input: child.stdout }).on("line", hear);
      createInterface({ input: child.stderr }).on("line", hear);
      child.on("error", reject);
      child.on("exit", (code) => {
        reject(new Error(`${program} ${args.join(" ")} ended with ${String(code)}:\n${said.join("\n")}`));
      });
    });
  }

  /** Closes the window, if there is one, and waits for its daemon to end. */
  async closeWindow(): Promise<void> {
    const w = this.window;
    this.window = undefined;
    if (w === undefined) return;
    await w.close();
    const begun = Date.now();
    await w.until("the daemon's end", () => {
      const left = this.daemons();
      // VS Code keeps a host of extensions whose window has gone without a word, for hours: it waits for it to come back.
      if (left.length > 0 && Date.now() - begun > patience) for (const pid of left) endParent(pid);
      return left.length === 0;
    });
  }

  /** Ends all that was started, and wants what fermata verify wants of the database that is left. */
  async close(): Promise<void> {
    await this.closeWindow();
    await this.browser?.close();
    for (const child of this.children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(late);
    }
    if (fs.existsSync(path.join(this.home, "data/fermata/fermata.db"))) await exec(given("FERMATA_BINARY"), ["verify"], { env: this.env });
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}
