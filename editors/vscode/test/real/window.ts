import * as fs from "node:fs";
import * as path from "node:path";
import type { Locator, Page } from "playwright-core";
import type { Place } from "./place";

// A window of real VS Code, driven as a person does: by keys, clicks and what stands on the screen.

/** The key that the place binds to putting all away. */
export const putAway = "Control+Alt+Shift+k";

let settings = 0;

export class Window {
  constructor(
    readonly page: Page,
    private readonly place: Place,
    private readonly url: string,
  ) {}

  async load(): Promise<void> {
    const begun = Date.now();
    await this.page.goto(this.url);
    await this.ready();
    console.log(`   a window was loaded in ${Date.now() - begun} ms`);
  }

  /**
   * Loads the window anew, as a person does with Developer: Reload Window. What was open before is open again; VS Code at times
   * does not get to write that down, and then it is opened as a person would.
   */
  async reload(open?: string): Promise<void> {
    await this.page.reload();
    await this.ready();
    if (open === undefined) return;
    const tab = this.page.locator(".tab.active", { hasText: open });
    if (await tab.waitFor({ timeout: 10_000 }).then(() => true, () => false)) return;
    console.log(`   the window came back without ${open}: it is opened again`);
    await this.file(open);
  }

  /**
   * Waits until VS Code has written down that an editor is open whose address holds some text, in the window of a folder. In a
   * browser it does so every 5 seconds while it has the focus; at a reload there is no time for it.
   */
  async written(root: string, text: string): Promise<void> {
    await this.until(`${text} to be written down`, () => this.page.evaluate(async ([root, text]) => {
      const request = <T>(r: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
        r.onsuccess = () => resolve(r.result);
        r.onerror = () => reject(new Error(String(r.error)));
      });
      for (const { name } of await indexedDB.databases()) {
        if (name?.startsWith("vscode-web-state-db-") !== true) continue;
        const db = await request(indexedDB.open(name));
        const state = db.objectStoreNames.contains("ItemTable") ? await request<unknown>(db.transaction("ItemTable").objectStore("ItemTable").get("memento/workbench.parts.editor")) : "";
        db.close();
        if (typeof state === "string" && state.includes(root) && state.includes(text)) return true;
      }
      return false;
    }, [root, text] as const));
  }

  private async ready(): Promise<void> {
    await this.status().waitFor();
  }

  /** Waits for the folders of a workspace. VS Code at times opens one without them, until it is loaded anew. */
  async folders(names: string[]): Promise<void> {
    await this.until("the folders", async () => {
      for (const name of names) {
        const row = this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first();
        if (await row.waitFor({ timeout: 10_000 }).then(() => true, () => false)) continue;
        console.log(`   the workspace came without ${name}: it is loaded anew`);
        await this.reload();
        return false;
      }
      return true;
    });
  }

  /** The status bar item. */
  status(): Locator {
    return this.page.locator('.statusbar-item[id*="fermata"]').first();
  }

  /** Opens a file by its name, and puts the cursor at the beginning of a line, from 1. */
  async file(name: string, line = 1): Promise<void> {
    // A file that has just been made can be missing from what VS Code finds, until it is asked again.
    await this.until(`${name} among the files`, async () => {
      await this.opened("Control+p", (v) => !v.startsWith(">"));
      await this.quick().fill(`${name}:${line}`);
      const found = this.page.locator(".quick-input-widget .monaco-list-row.focused", { hasText: name }).first();
      const there = await found.waitFor({ timeout: 5000 }).then(() => true, () => false);
      await this.quick().press(there ? "Enter" : "Escape");
      return there;
    });
    await this.left(`${name}:${line}`);
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".editor-instance .view-line").first().waitFor();
    await this.page.locator(".statusbar-item", { hasText: `Ln ${line}, Col 1` }).waitFor();
  }

  /** The input that stands above all. */
  private quick(): Locator {
    return this.page.locator(".quick-input-widget:visible input[type=text], .quick-input-widget:visible input:not([type])").first();
  }

  /** Presses a key that opens the input, again when the window has not heard it: one that has just come may not. */
  private async opened(key: string, expected: (value: string) => boolean, patience = 3000): Promise<void> {
    await this.until(`the input that ${key} opens`, async () => {
      await this.page.keyboard.press(key);
      const end = Date.now() + patience;
      while (Date.now() < end) {
        const value = await this.quick().inputValue({ timeout: 500 }).catch(() => undefined);
        if (value !== undefined && expected(value)) return true;
      }
      console.log(`   ${key} was not heard within ${patience} ms`);
      return false;
    });
  }

  /** Types into the input that has just opened, and sends it. */
  async quickInput(text: string): Promise<void> {
    const input = this.quick();
    await input.waitFor();
    await input.fill(text);
    await input.press("Enter");
    await this.left(text);
  }

  /** Waits until the input has gone, or is another one: what comes next may open it too, and must not find the old one. */
  private async left(text: string): Promise<void> {
    await this.until("the input to go", async () => (await this.quick().isHidden()) || (await this.quick().inputValue({ timeout: 500 }).catch(() => "")) !== text);
  }

  /** Runs a command from the palette, by the whole of its title; from a new one when something has closed the first. */
  async command(title: string): Promise<void> {
    await this.until(`the command ${title}`, async () => {
      await this.opened("F1", (v) => v.startsWith(">"));
      try {
        await this.quick().fill(`>${title}`, { timeout: 5000 });
        await this.page.locator(".quick-input-widget .monaco-list-row", { hasText: title }).first().click({ timeout: 5000 });
        return true;
      } catch {
        return false;
      }
    });
    await this.left(`>${title}`);
  }

  /** Sets some settings, and those that were set before back, and waits until the window knows. */
  async settings(set: Record<string, unknown> = {}): Promise<void> {
    const mark = `settings ${String(++settings)}`;
    this.place.machineSettings({ ...set, "window.title": `\${activeEditorShort}\${separator}\${rootName}\${separator}${mark}` });
    await this.until("the settings", async () => (await this.page.title()).includes(mark));
  }

  /** Asks at the cursor. */
  async ask(words: string): Promise<void> {
    // An extension's command waits for the window's hosts: one that is given again then takes the place of the first.
    await this.opened("Control+Alt+f", (v) => v === "", 30_000);
    await this.quickInput(words);
  }

  /** The inline conversation. */
  thread(): Locator {
    return this.page.locator(".review-widget").first();
  }

  /** A button in the thread's title, by its icon. */
  action(icon: string): Locator {
    return this.thread().locator(`.codicon-${icon}`).first();
  }

  /** The last comment of the conversation. */
  lastComment(): Locator {
    return this.thread().locator(".review-comment").last();
  }

  /** Waits until the last answer holds some text. */
  async answer(text: string | RegExp): Promise<void> {
    await this.thread().locator(".review-comment", { hasText: text }).last().waitFor();
  }

  /** Waits until the last comment has a label. */
  async label(text: string | RegExp): Promise<void> {
    await this.thread().locator(".review-comment .isPending, .review-comment .comment-title, .review-comment", { hasText: text }).last().waitFor();
  }

  /** Waits until the reply box has the keyboard, as it has after a stop. */
  async lane(): Promise<void> {
    await this.thread().locator(".comment-form .monaco-editor.focused").waitFor();
  }

  /** Waits until nothing runs. */
  async idle(): Promise<void> {
    await this.page.locator('.statusbar-item[id*="fermata"]', { hasText: "fermata" }).waitFor();
  }

  /** The dimmed words of the last comment. */
  async dimmed(): Promise<string> {
    const texts = await this.lastComment().locator("span[style*=disabledForeground]").allInnerTexts();
    return texts.join(" ").replace(/\s+/g, " ").trim();
  }

  /** Writes into the reply box, which asks for something, and sends it. */
  async reply(words: string, asks: string): Promise<void> {
    const form = this.thread().locator(".comment-form-container").last();
    const closed = form.locator(".review-thread-reply-button", { hasText: asks }).first(); // VS Code can make it twice
    const open = form.locator(".monaco-editor.focused");
    await this.until("the reply box", async () => {
      if (await closed.isVisible()) await closed.click({ timeout: 1000 }).catch(() => undefined); // it may open by itself
      return open.isVisible();
    });
    await form.getByText(asks).first().waitFor({ state: "attached" });
    await this.page.keyboard.type(words);
    await form.locator(".form-actions .monaco-button:not(.disabled)").first().click();
  }

  /** Chooses from a list that has just opened. */
  async quickPick(text: string): Promise<void> {
    await this.page.locator(".quick-input-widget:visible .monaco-list-row", { hasText: text }).first().click();
  }

  /** Confirms what is ticked in a list that has just opened, once it holds some text. */
  async confirmPicked(text: string): Promise<void> {
    await this.page.locator(".quick-input-widget:visible .monaco-list-row", { hasText: text }).first().waitFor();
    await this.page.locator(".quick-input-widget:visible .quick-input-action .monaco-button").first().click();
  }

  /** A notification that holds some text. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notification-toast", { hasText: text }).first();
  }

  /** The question about a call. */
  permission(text: string | RegExp): Locator {
    return this.notification(text);
  }

  /** The text of the editor that is active, as far as it is on the screen. */
  async editorText(): Promise<string> {
    const lines = await this.page.locator(".editor-group-container.active .editor-instance .view-line").evaluateAll((all) =>
      all.map((l) => ({ top: Number.parseFloat((l as HTMLElement).style.top), text: l.textContent })));
    return lines.sort((a, b) => a.top - b.top).map((l) => l.text.replaceAll("\u00a0", " ")).join("\n");
  }

  /** Waits until something holds. */
  async until(what: string, holds: () => Promise<boolean> | boolean, patience = 60_000): Promise<void> {
    const end = Date.now() + patience;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`waited ${patience / 1000} s for ${what}`);
      await this.page.waitForTimeout(25);
    }
  }

  /** Keeps how the window looks; in a light theme too where its colours tell something, or with FERMATA_THEMES=both. */
  async shot(name: string, themes: "dark" | "both" = "dark"): Promise<void> {
    fs.mkdirSync(this.place.shots, { recursive: true });
    await this.page.screenshot({ path: path.join(this.place.shots, `${name}-dark.png`) });
    if (themes === "dark" && process.env["FERMATA_THEMES"] !== "both") return;
    await this.page.emulateMedia({ colorScheme: "light" });
    await this.page.locator(".monaco-workbench.vs").waitFor();
    await this.page.screenshot({ path: path.join(this.place.shots, `${name}-light.png`) });
    await this.page.emulateMedia({ colorScheme: "dark" });
    await this.page.locator(".monaco-workbench.vs-dark").waitFor();
  }

  /** Puts away what the scene before has left: what runs, messages, editors. Its threads go with its file. */
  async clear(): Promise<void> {
    await this.until("a clean window", async () => {
      await this.page.keyboard.press("Escape");
      if ((await this.status().innerText()).includes("Stop")) await this.page.keyboard.press("Control+Escape");
      await this.page.keyboard.press(putAway);
      const unsaved = this.page.locator(".monaco-dialog-box").getByRole("button", { name: "Don't Save" });
      if (await unsaved.isVisible()) await unsaved.click();
      await this.page.waitForTimeout(100);
      return (await this.page.locator(".tab, .notification-toast, .quick-input-widget:visible, .monaco-dialog-box").count()) === 0;
    });
    await this.idle();
  }

  /**
   * Clicks the stop of the thread, with the button held as long as a hand does, and returns what stood on the screen after how
   * many milliseconds, as the page itself saw it: from the click's own time until what its text was changed to has been painted.
   */
  async stopClick(): Promise<Record<string, number>> {
    await this.page.evaluate(() => {
      const seen: Record<string, number> = {};
      const shown = (selector: string, text: RegExp): boolean => [...document.querySelectorAll(selector)].some((e) => text.test(e.textContent));
      const marks: [string, string, RegExp][] = [
        ["status", '.statusbar-item[id*="fermata"]', /stopping…/], ["title", ".review-widget .review-actions", /stopping…/],
        ["answer", ".review-widget .isPending", /stopping…|Stopped here/], ["stopped", ".review-widget .isPending", /Stopped here/],
      ];
      Object.assign(globalThis, { fermataSeen: seen });
      document.addEventListener("click", (e) => {
        const from = e.timeStamp;
        const look = (): void => {
          for (const [name, selector, text] of marks) {
            if (name in seen || !shown(selector, text)) continue;
            seen[name] = 0;
            requestAnimationFrame(() => {
              const { port1, port2 } = new MessageChannel();
              port1.onmessage = () => (seen[name] = Math.round(performance.now() - from)); // the first task behind the frame
              port2.postMessage(undefined);
            });
          }
        };
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
      }, { capture: true, once: true });
    });
    await this.action("debug-stop").click({ delay: 80 });
    await this.label("Stopped here");
    const seen = (): Promise<Record<string, number>> => this.page.evaluate(() => (globalThis as unknown as { fermataSeen: Record<string, number> }).fermataSeen);
    await this.until("the paint", async () => ((await seen())["stopped"] ?? 0) > 0);
    return seen();
  }

  /** Counts from now on how often the last comment is drawn anew; the result says how often it was, and over how long. */
  async countDrawn(): Promise<() => Promise<{ drawn: number; millis: number }>> {
    await this.page.evaluate(() => {
      const count = { drawn: 0, first: 0, last: 0 };
      Object.assign(globalThis, { fermataDrawn: count });
      new MutationObserver((all) => {
        const last = [...document.querySelectorAll(".review-widget .comment-body")].at(-1);
        if (last === undefined || !all.some((m) => [...m.addedNodes].some((n) => last.contains(n) || n.contains(last)))) return;
        count.drawn++;
        count.first ||= performance.now();
        count.last = performance.now();
      }).observe(document.body, { subtree: true, childList: true });
    });
    return () => this.page.evaluate(() => {
      const c = (globalThis as unknown as { fermataDrawn: { drawn: number; first: number; last: number } }).fermataDrawn;
      return { drawn: c.drawn, millis: Math.round(c.last - c.first) };
    });
  }

  /** Closes the window as a person does: VS Code hears of it, and ends what runs for it. */
  async close(): Promise<void> {
    await this.page.goto("about:blank").catch(() => undefined);
  }
}
