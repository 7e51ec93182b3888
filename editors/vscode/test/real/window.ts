import * as fs from "node:fs";
import * as path from "node:path";
import type { Locator, Page } from "playwright-core";
import type { Place } from "./place";

// A window of real VS Code, driven as a person does: by keys, clicks and what stands on the screen.

export class Window {
  constructor(
    readonly page: Page,
    private readonly place: Place,
    private readonly url: string,
  ) {}

  async load(): Promise<void> {
    await this.page.goto(this.url);
    await this.ready();
  }

  /** Loads the window anew, as a person does with Developer: Reload Window. */
  async reload(): Promise<void> {
    await this.page.reload();
    await this.ready();
  }

  private async ready(): Promise<void> {
    await this.status().waitFor();
  }

  /** The status bar item. */
  status(): Locator {
    return this.page.locator('.statusbar-item[id*="fermata"]').first();
  }

  /** Opens a file by its name, and puts the cursor at the beginning of a line, from 1. */
  async file(name: string, line = 1): Promise<void> {
    await this.page.keyboard.press("Control+p");
    await this.quickInput(`${name}:${line}`, name);
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".editor-instance .view-line").first().waitFor();
  }

  /** Types into the input that has just opened, and sends it, with pick once a choice that holds it is at hand. */
  async quickInput(text: string, pick?: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible input[type=text], .quick-input-widget:visible input:not([type])").first();
    await input.waitFor();
    const before = await input.inputValue();
    await input.fill(before.startsWith(">") && !text.startsWith(">") ? `>${text}` : text);
    if (pick !== undefined) await this.page.locator(".quick-input-widget .monaco-list-row.focused", { hasText: pick }).first().waitFor();
    await input.press("Enter");
  }

  /** Runs a command from the palette, by the whole of its title. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget:visible input").first();
    await input.waitFor();
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-widget .monaco-list-row", { hasText: title }).first().click();
  }

  /** Asks at the cursor. */
  async ask(words: string): Promise<void> {
    await this.page.keyboard.press("Control+Alt+f");
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

  /** Waits until nothing runs. */
  async idle(): Promise<void> {
    await this.page.locator('.statusbar-item[id*="fermata"]', { hasText: "fermata" }).waitFor();
  }

  /** The dimmed words of the last comment. */
  async dimmed(): Promise<string> {
    const texts = await this.lastComment().locator("span[style*=disabledForeground]").allInnerTexts();
    return texts.join(" ").replace(/\s+/g, " ").trim();
  }

  /** Writes into the reply box and sends it. */
  async reply(words: string): Promise<void> {
    const closed = this.thread().locator(".review-thread-reply-button");
    const editor = this.thread().locator(".comment-form .monaco-editor").last();
    if (await closed.isVisible()) await closed.click();
    await editor.click();
    await this.page.keyboard.type(words);
    await this.thread().locator(".form-actions .monaco-button:not(.disabled)").first().click();
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

  /** Keeps how the window looks, in a dark and in a light theme. */
  async shot(name: string): Promise<void> {
    fs.mkdirSync(this.place.shots, { recursive: true });
    await this.page.screenshot({ path: path.join(this.place.shots, `${name}-dark.png`) });
    await this.page.emulateMedia({ colorScheme: "light" });
    await this.page.locator(".monaco-workbench.vs").waitFor();
    await this.page.screenshot({ path: path.join(this.place.shots, `${name}-light.png`) });
    await this.page.emulateMedia({ colorScheme: "dark" });
    await this.page.locator(".monaco-workbench.vs-dark").waitFor();
  }

  /** Puts away what the scene before has left: threads, messages, editors. */
  async clear(): Promise<void> {
    await this.page.keyboard.press("Escape");
    while (await this.thread().isVisible()) {
      await this.action("close").click();
      await this.page.waitForTimeout(50);
    }
    await this.command("Notifications: Clear All Notifications");
    await this.command("View: Close All Editors");
    await this.page.locator(".tab").first().waitFor({ state: "detached" });
  }

  /** Closes the window as a person does: VS Code hears of it, and ends what runs for it. */
  async close(): Promise<void> {
    if (this.page.isClosed()) return;
    this.page.on("dialog", (d) => void d.accept()); // what is unsaved
    await this.page.goto("about:blank").catch(() => undefined);
    await this.page.close();
  }
}
