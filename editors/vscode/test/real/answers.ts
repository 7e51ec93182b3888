import assert from "node:assert/strict";
import { messages, place, read, scene } from "./scene";

// guards S1, S3, S4, S11, D1, D2, D3, P1
scene("an answer is stopped inline, kept word for word, and redirected in the same thread", async (w, project) => {
  await w.ask("Explain this program.");
  await w.answer(/one function, main/);
  await w.shot("01-streaming");
  const stop = await w.action("debug-stop").boundingBox();
  console.log(`   stop click to its paint, ms: ${JSON.stringify(await w.stopClick())}`);
  await w.lane();
  await w.shot("02-stopped", "both");
  const retry = await w.action("refresh").boundingBox();
  assert.ok(stop !== null && retry !== null && retry.x + retry.width <= stop.x, "a second click at the same place is no retry");
  const dimmed = await w.dimmed();
  await w.reply("Only one sentence.", "What should it do instead?");
  await w.answer("It greets the world.");
  await w.idle();
  await w.shot("03-redirected");
  const raw = await place().fermata(project, "input", "--raw");
  const sent = messages(raw).slice(-2);
  assert.equal(sent[0]?.role, "assistant");
  assert.equal(dimmed, read(sent[0].content), "what was dimmed is what the model reads");
  assert.match(sent[1]?.content ?? "", /first attempt[^]*Only one sentence\.$/);
  assert.equal(place().bodies().at(-1), raw);
  const turns = async () => (await place().log(project)).filter((e) => e.kind === "turn.started").map((e) => e.entry);
  const [first, second] = (await turns()).slice(-2);
  assert.equal(second?.["redirects"], first?.["turn"]);

  // The next question in the same thread is no redirect, and its box does not say that it is one.
  await w.reply("And in one word?", "Ask the next question");
  await w.answer("Greeting.");
  await w.idle();
  await w.until("one thread, and no other", async () => (await w.page.locator(".review-widget").count()) === 1);
  assert.equal((await turns()).at(-1)?.["redirects"], undefined);
});

scene("asking leaves the keyboard in the editor, and a stop has the next words go into the lane", async (w) => {
  await w.ask("Tell a long story.");
  await w.answer(/w4/);
  await w.page.keyboard.type("x");
  await w.until("what is typed while it streams, in the document", async () => (await w.editorText()).includes("xfunc main"));
  await w.page.keyboard.press("Control+Escape");
  await w.label("Stopped here");
  await w.lane();
  await w.page.keyboard.type("Only one sentence.");
  await w.page.keyboard.press("Control+Enter");
  await w.answer("It greets the world.");
});

// guards S1: by the key, as VS Code's own chat
scene("Ctrl+Escape stops what runs, and a silent stop offers the prompt back", async (w, project) => {
  await w.ask("Tell a long story.");
  await w.answer(/w12/);
  await w.page.keyboard.press("Control+Escape");
  await w.label("Stopped here");
  assert.equal((await place().log(project)).at(-1)?.entry["outcome"], "stopped");
  await w.action("close").click();
  await w.thread().waitFor({ state: "detached" });
  await w.page.locator(".view-line", { hasText: "func main" }).click(); // the key was in the lane that has gone

  // guards S6
  await w.ask("Say nothing.");
  await w.action("debug-stop").click();
  const input = w.page.locator(".quick-input-widget:visible input").first();
  await input.waitFor();
  await w.until("the prompt in the lane", async () => (await input.inputValue()) === "Say nothing.");
  await w.thread().locator(".review-thread-reply-button", { hasText: "What should it do instead?" }).waitFor();
  await w.shot("04-silent-stop");
  await w.page.keyboard.press("Escape"); // the keyboard is in the input, and not in the box of the thread
  await input.waitFor({ state: "hidden" });
  await w.thread().getByText("Stopped before anything was said.").waitFor();
});

// guards F1, F3, F4
scene("an answer that breaks off is an attempt, which can be kept", async (w, project) => {
  await w.ask("Break off.");
  await w.label("Broke off");
  await w.thread().getByText(/Attempt, not in the model input/).waitFor();
  await w.shot("05-broke-off");
  await w.action("pass").click();
  await w.notification(/Kept: the next model input holds these 4 words/).waitFor();
  await w.label("Kept: in the model input");
  assert.equal((await place().log(project)).at(-1)?.kind, "admission");
});

scene("a selection is asked about by its code action, and the answer draws no picture and no HTML", async (w, project, file) => {
  await w.file(file, 6);
  await w.page.keyboard.press("Shift+End");
  const action = w.page.locator(".action-widget").getByText("Ask Fermata About This").first();
  await w.until("the action, once the daemon offers it", async () => {
    await w.page.keyboard.press("Control+.");
    return action.waitFor({ timeout: 3000 }).then(() => true, () => false);
  });
  await action.click();
  await w.quickInput("What is selected? (See https://go.dev/ref/spec#Method_sets.)");
  await w.answer("a picture");
  await w.idle();
  assert.equal(await w.thread().locator(".comment-body img").count(), 0);
  assert.equal(await w.thread().getByText("https://go.dev/ref/spec#Method_sets", { exact: true }).count(), 1, "an address is a link, and nothing but itself");
  await w.shot("05-no-picture");
  assert.match(await w.lastComment().innerText(), /!\[a picture\].*<b>it<\/b>|!a picture.*<b>it<\/b>/);
  const prompt = (await place().log(project)).findLast((e) => e.kind === "turn.started")?.entry["prompt"] as { type: string; text: string }[];
  assert.deepEqual(prompt.map((p) => p.type), ["text", "selection"]);
  assert.match(prompt[1]?.text ?? "", /Println/);
});

scene("what is selected in a document that is no file goes with the question", async (w, project) => {
  await w.command("File: New Untitled Text File");
  await w.page.locator(".tab.active", { hasText: "Untitled-1" }).waitFor();
  await w.page.keyboard.type("first line\nsecond line");
  await w.page.keyboard.press("Control+a");
  await w.ask("Only one sentence.");
  await w.until("the answer", async () => (await w.editorText()).includes("It greets the world.")); // in the transcript
  await w.idle();
  const prompt = (await place().log(project)).findLast((e) => e.kind === "turn.started")?.entry["prompt"] as { type: string; text: string; path?: string }[];
  assert.deepEqual(prompt.map((p) => [p.type, p.path, p.text]), [["text", undefined, "Only one sentence."], ["selection", "untitled:Untitled-1", "first line\nsecond line"]]);
});

scene("an answer of 4,000 words as fast as they come loses none", async (w) => {
  const drawn = await w.countDrawn();
  await w.ask("Count to four thousand.");
  await w.answer(/w4000/);
  await w.idle();
  const n = await drawn();
  console.log(`   4,000 words at full speed: their comment was drawn ${n.drawn} times in ${n.millis} ms`);
  assert.equal(read(await w.lastComment().locator(".comment-body").innerText()), Array.from({ length: 4000 }, (_, i) => `w${i + 1}`).join(" "));
});

scene("a long answer that streams shows its end, and all of it when it is stopped", async (w) => {
  const drawn = await w.countDrawn();
  await w.ask("Tell it quickly.");
  await w.thread().getByText(/words before this/).waitFor();
  await w.until("the newest words in sight", async () => w.lastComment().locator(".comment-body").evaluate((b) => b.scrollHeight <= b.clientHeight + 2));
  await w.shot("06-long-streaming");
  console.log(`   a long answer: stop click to its paint, ms: ${JSON.stringify(await w.stopClick())}`);
  const n = await drawn();
  console.log(`   a long answer: its comment was drawn ${n.drawn} times in ${n.millis} ms`);
  await w.lane();
  await w.shot("06-long-stopped");
  assert.match(await w.dimmed(), /^w1 w2 /);
});

// guards S10
scene("a message that is queued says so, and is handed back by a stop", async (w, project) => {
  await w.ask("Tell a long story.");
  await w.answer(/w2/);
  await w.command("Fermata: Queue Message");
  await w.quickInput("also the tests");
  await w.thread().getByText("Queued", { exact: true }).first().waitFor();
  await w.status().filter({ hasText: "1 queued" }).waitFor();
  await w.shot("07-queued");
  await w.action("debug-stop").click();
  await w.thread().getByText("Handed back, not sent").waitFor();
  await w.notification("Handed back, and sent to no model: also the tests").waitFor();
  assert.equal((await place().log(project)).filter((e) => e.kind === "message.returned").length, 1);
  assert.ok(!place().bodies().some((b) => b.includes("also the tests")));
});
