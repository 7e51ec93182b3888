import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { place, read, scene, sceneApart } from "./scene";

// guards M7, P3
scene("the transcript and the model input are opened from the palette", async (w, project) => {
  await w.ask("Explain this program.");
  await w.answer(/one function, main/);
  await w.page.keyboard.press("Control+Escape");
  await w.label("Stopped here");
  await w.reply("Only one sentence.", "What should it do instead?");
  await w.answer("It greets the world.");
  await w.idle();

  await w.command("Fermata: Open Transcript");
  await w.page.locator(".tab.active", { hasText: "Transcript.md" }).waitFor();
  await w.until("the transcript", async () => (await w.editorText()).includes("It greets the world."));
  await w.page.locator(".codelens-decoration:visible", { hasText: "Model Input" }).first().waitFor();
  await w.shot("10-transcript", "both");

  await w.command("Fermata: Show Model Input");
  await w.page.locator(".tab.active", { hasText: "Model input.jsonc" }).waitFor();
  await w.until("the verified line", async () => (await w.editorText()).includes("✓ as sent"));
  await w.page.locator(".codelens-decoration:visible", { hasText: "Compare with Previous Request" }).first().waitFor();
  await w.shot("11-model-input");

  await w.page.locator(".codelens-decoration:visible a", { hasText: "Exact Bytes" }).first().click();
  await w.page.locator(".tab.active", { hasText: "Exact bytes.json" }).waitFor();
  const raw = await place().fermata(project, "input", "--raw");
  await w.until("the exact bytes", async () => read(await w.editorText()).startsWith(read(raw).slice(0, 60)));

  // The outline names the parts.
  await w.command("Fermata: Show Model Input");
  await w.page.locator(".tab.active", { hasText: "Model input.jsonc" }).waitFor();
  await w.command("Go to Symbol in Editor");
  await w.page.locator(".quick-input-widget:visible input").first().fill("@assistant");
  await w.page.locator(".quick-input-widget .monaco-list-row", { hasText: /assistant · entry \d+/ }).first().waitFor();
  await w.shot("12-outline");
  await w.page.keyboard.press("Escape");

  await w.command("Fermata: Compare with Previous Request");
  await w.page.locator(".monaco-diff-editor").first().waitFor();
  await w.page.locator(".line-insert, .insert-sign").first().waitFor();
  await w.shot("13-compare");
});

scene("a transcript that grows keeps its reader's place and is previewed, and a click in the status bar stops the turn", async (w, project) => {
  await w.ask("Tell a story to be read.");
  await w.command("Fermata: Open Transcript");
  await w.page.locator(".tab.active", { hasText: "Transcript.md" }).waitFor();
  const newest = async (): Promise<number> => Number([...(await w.editorText()).matchAll(/\bw(\d+)\b/g)].at(-1)?.[1] ?? 0);
  await w.until("the question", async () => (await w.editorText()).includes("Tell a story to be read."));
  for (let i = 0; i < 12; i++) await w.page.keyboard.press("Control+ArrowDown"); // so that there is room below for what comes
  await w.until("some of the answer", async () => (await newest()) > 20);
  const top = async (): Promise<string | undefined> => (await w.editorText()).split("\n").find((l) => l.trim() !== "");
  const before = { top: await top(), newest: await newest() };
  await w.until("more of the answer", async () => (await newest()) > before.newest + 20);
  assert.equal(await top(), before.top);

  await w.command("Markdown: Open Preview");
  const preview = w.page.frameLocator("iframe.webview").frameLocator("iframe");
  await preview.getByText("Tell a story to be read.").first().waitFor();
  await w.shot("16-transcript-preview", "both");
  await w.status().filter({ hasText: "Stop" }).click();
  await w.idle(); // turns before it were stopped too, and say so in the preview
  await preview.getByText("Stopped here").last().waitFor();
  assert.equal((await place().log(project)).at(-1)?.entry["outcome"], "stopped");
});

// From 100,000 characters on VS Code does not look for what has changed in a document that a provider gives: the lenses above
// the reader went and came with each update, and the text crept.
sceneApart("a long transcript that grows keeps its reader's place too", async (project) => {
  for (let i = 1; i <= 16; i++) await place().fermata(project, "ask", ...(i > 1 ? ["--continue"] : []), i <= 10 ? `Only one sentence, ${i}.` : `Count to four thousand, ${i}.`);
  const w = await place().open(project);
  await w.command("Fermata: Use Session");
  await w.quickPick("Only one sentence, 1.");
  await w.file("main.go", 5);
  await w.ask("Tell a story to be read.");
  await w.command("Fermata: Open Transcript");
  await w.page.locator(".tab.active", { hasText: "Transcript.md" }).waitFor();
  await w.until("its end", async () => (await w.editorText()).includes("Tell a story to be read.")); // where it is opened
  await w.page.keyboard.press("Control+Home");
  await w.until("its beginning", async () => (await w.editorText()).startsWith("# Only one sentence, 1."));
  for (let i = 0; i < 2; i++) await w.page.keyboard.press("PageDown");
  await w.page.locator(".codelens-decoration:visible", { hasText: "Model Input" }).first().waitFor();
  const newest = (text: string): number => Number([...text.matchAll(/\bw(\d+)\b/g)].at(-1)?.[1] ?? 0);
  const said = async (): Promise<number> => newest(await place().fermata(project, "transcript"));
  await w.until("some of the answer", async () => (await said()) > 10);
  const before = await w.editorText();
  assert.doesNotMatch(before, /Tell a story/);
  const begun = await said();
  await w.until("more of the answer", async () => (await said()) > begun + 25);
  assert.equal(await w.editorText(), before);
  await w.page.keyboard.press("Control+End");
  await w.until("what was said meanwhile", async () => newest(await w.editorText()) > begun + 20);
  await w.page.keyboard.press("Control+Escape");
  await w.idle();
});

sceneApart("a long conversation of the terminal's is shown by its newest part, and then whole, in a window that has asked nothing", async (project) => {
  const asks = 30; // of six entries each
  for (let i = 1; i <= asks; i++) await place().fermata(project, "ask", ...(i > 1 ? ["--continue"] : []), `Only one sentence, ${i}.`);
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.command("Fermata: Open Transcript");
  await w.page.locator(".tab.active", { hasText: "Transcript.md" }).waitFor();
  await w.until("its end", async () => (await w.editorText()).includes(`Only one sentence, ${asks}.`));
  await w.page.keyboard.press("Control+Home");
  await w.until("what is left out", async () => /^> The conversation began before this: its \d+ earlier entries are not shown\./.test(await w.editorText()));
  await w.shot("17-long-transcript");
  await w.page.locator(".codelens-decoration:visible a", { hasText: "Show Whole Transcript" }).click();
  await w.until("its beginning", async () => (await w.editorText()).includes("Only one sentence, 1."));
  await w.page.locator(".codelens-decoration:visible a", { hasText: "Show Whole Transcript" }).waitFor({ state: "detached" });
  await w.command("Fermata: Show Model Input");
  await w.until("the newest input", async () => (await w.editorText()).includes("✓ as sent"));
});

scene("sessions are listed, found, renamed, forked and deleted", async (w, project, file) => {
  await w.command("Fermata: New Session");
  await w.command("Fermata: Show Sessions");
  await w.page.locator(".pane-body .monaco-list-row", { hasText: "(no title)" }).first().waitFor();
  await w.file(file, 5);
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.idle();
  const row = (text: string) => w.page.locator(".pane-body .monaco-list-row", { hasText: text }).first();
  await row("Only one sentence.").waitFor();
  await w.command("Fermata: Rename Session");
  await w.quickPick("Only one sentence.");
  await w.quickInput("The greeting");
  await row("The greeting").waitFor();
  await w.command("Fermata: Fork Session");
  await w.quickPick("The greeting");
  await w.until("the fork in the view", async () => (await w.page.locator(".pane-body .monaco-list-row", { hasText: "The greeting" }).count()) === 2);
  await w.shot("14-sessions");
  await w.command("Fermata: Search Sessions");
  await w.quickInput("nothing has these words");
  await w.page.getByText(/Found by “nothing has these words”: 0/).waitFor();
  await w.command("Fermata: Search Sessions");
  await w.quickInput("");
  await row("The greeting").waitFor();
  await w.command("Fermata: Delete Session");
  await w.quickPick("The greeting");
  await w.page.locator(".monaco-dialog-box").getByText("Delete for Good").click();
  await w.until("one session left", async () => (await w.page.locator(".pane-body .monaco-list-row", { hasText: "The greeting" }).count()) === 1);
  assert.equal((await place().fermata(project, "sessions")).match(/The greeting/g)?.length, 1);
});

scene("a model input whose language is changed is still compared with the one before", async (w) => {
  await w.command("Fermata: New Session");
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.reply("And in one word?", "Ask the next question");
  await w.answer("Greeting.");
  await w.idle();
  await w.command("Fermata: Show Model Input");
  await w.page.locator(".codelens-decoration:visible", { hasText: "Compare with Previous Request" }).first().waitFor();
  await w.command("Change Language Mode");
  await w.quickInput("Plain Text");
  await w.page.locator(".statusbar-item", { hasText: "Plain Text" }).waitFor();
  await w.command("Fermata: Compare with Previous Request");
  await w.page.locator(".monaco-diff-editor").first().waitFor();
});

sceneApart("where nothing was asked the view offers to; of a folder that a link leads to a session is used again", async (project) => {
  const link = path.join(place().home, "projects", "linked");
  fs.symlinkSync(project.root, link);
  const w = await place().open({ ...project, root: link });
  await w.command("Fermata: Show Sessions");
  await w.page.locator(".welcome-view-content .monaco-button", { hasText: "Ask…" }).waitFor();
  await w.file("main.go", 5);
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.idle();
  await w.command("Fermata: New Session");
  await w.command("Fermata: Use Session");
  await w.quickPick("Only one sentence.");
  await w.page.locator(".pane-body .monaco-list-row", { hasText: "in use" }).filter({ hasText: "Only one sentence." }).waitFor();
  await w.file("main.go", 2);
  await w.ask("And in one word?");
  await w.until("the question", () => place().bodies().some((b) => b.includes("And in one word?")));
  await w.idle();
  assert.match(place().bodies().at(-1) ?? "", /Only one sentence\./);
});

// guards X1
scene("the stats are a page without a script", async (w) => {
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.command("Fermata: Show Stats");
  const page = w.page.frameLocator("iframe.webview").frameLocator("iframe");
  await page.getByText("What stopping comes to").waitFor();
  assert.match(await page.locator("body").innerText(), /too few to tell: \d+ of at least 20/);
  await page.locator("summary").first().click();
  await w.shot("15-stats", "both");
});
