import { spawn, execFile, type ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { Window } from "./window";

// A place to test in: a home of its own, the scripted model, real VS Code with the packaged extension, and a browser. All of
// it is ended by close, and none of it is outside of one temporary folder and of the ports that the kernel gave.

const exec = promisify(execFile);

/** What test/all.sh has set up, by environment variables. */
function given(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set: run the tests with make test-vscode`);
  return value;
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
  private readonly windows: Window[] = [];
  private browser: Browser | undefined;
  private context: BrowserContext | undefined;
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

  /** Writes the user's settings; VS Code sees them at once. */
  settings(more: Record<string, unknown> = {}): void {
    this.write("vscode/User/settings.json", JSON.stringify({
      "window.autoDetectColorScheme": true, "workbench.preferredDarkColorTheme": "Dark Modern", "workbench.preferredLightColorTheme": "Light Modern", "workbench.startupEditor": "none", "security.workspace.trust.enabled": false,
      "editor.minimap.enabled": false, "chat.commandCenter.enabled": false, "workbench.secondarySideBar.defaultVisibility": "hidden",
      "git.enabled": false, "files.autoSave": "off", "comments.openView": "never", "extensions.ignoreRecommendations": true, "telemetry.telemetryLevel": "off", "editor.accessibilitySupport": "off",
      "workbench.enableExperiments": false, "window.commandCenter": false, "workbench.reduceMotion": "on", "editor.cursorBlinking": "solid", ...more,
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
    fs.mkdirSync(path.join(root, ".git"), { recursive: true });
    return {
      root,
      file: (f) => path.join(root, f),
      read: (f) => fs.readFileSync(path.join(root, f), "utf8"),
    };
  }

  /** Opens a window of VS Code on a folder, or on none. */
  async open(project?: Project): Promise<Window> {
    // One context, so that VS Code's code is fetched and compiled once.
    this.context ??= await this.browser?.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
    if (this.context === undefined) throw new Error("there is no browser");
    const page = await this.context.newPage();
    page.setDefaultTimeout(60_000);
    const window = new Window(page, this, `${this.url}/?${project === undefined ? "ew=true" : `folder=${encodeURIComponent(project.root)}`}`);
    this.windows.push(window);
    await window.load();
    return window;
  }

  /** Keeps how each window looks, for whoever reads why a test failed. */
  async failed(name: string): Promise<void> {
    fs.mkdirSync(this.shots, { recursive: true });
    for (const [i, w] of this.windows.entries()) {
      if (w.page.isClosed()) continue;
      await w.page.screenshot({ path: path.join(this.shots, `FAILED-${name.replace(/\W+/g, "-").slice(0, 60)}-${String(i)}.png`) }).catch(() => undefined);
    }
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

  async closeWindows(): Promise<void> {
    for (const w of this.windows.splice(0)) await w.close();
  }

  /** Ends all that was started, and wants what fermata verify wants of the database that is left. */
  async close(): Promise<void> {
    await this.closeWindows();
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
