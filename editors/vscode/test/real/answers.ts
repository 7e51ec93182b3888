import assert from "node:assert/strict";
import { messages, place, read, scene, sceneIn } from "./scene";

// guards S1, S3, S4, S11, D1, D2, D3, P1
scene("an answer is stopped inline, kept word for word, and redirected in the same thread", async (project) => {
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.ask("Explain this program.");
  await w.answer(/one function, main/);
  await w.shot("01-streaming");
  const clicked = Date.now();
  await w.action("debug-stop").click();
  await w.thread().getByText(/stopping…|Stopped here/).first().waitFor();
  console.log(`   stop click to its word on screen: ${Date.now() - clicked} ms`);
  await w.label("Stopped here");
  await w.shot("02-stopped");
  const dimmed = await w.dimmed();
  await w.reply("Only one sentence.");
  await w.answer("It greets the world.");
  await w.idle();
  await w.shot("03-redirected");
  const raw = await place().fermata(project, "input", "--raw");
  const sent = messages(raw);
  assert.equal(sent[1]?.role, "assistant");
  assert.equal(dimmed, read(sent[1].content), "what was dimmed is what the model reads");
  assert.match(sent[2]?.content ?? "", /first attempt[^]*Only one sentence\.$/);
  assert.equal(place().bodies().at(-1), raw);
  const log = await place().log(project);
  const turns = log.filter((e) => e.kind === "turn.started").map((e) => e.entry);
  assert.equal(turns[1]?.["redirects"], turns[0]?.["turn"]);

  // The next question in the same thread is no redirect.
  await w.reply("And in one word?");
  await w.answer("Greeting.");
  await w.idle();
  assert.equal(await w.page.locator(".review-widget").count(), 1);
  assert.equal((await place().log(project)).findLast((e) => e.kind === "turn.started")?.entry["redirects"], undefined);
});

// guards S1: by the key, as VS Code's own chat
sceneIn("answers", "Ctrl+Escape stops what runs, and a silent stop offers the prompt back", async (w, project) => {
  await w.ask("Tell a long story.");
  await w.answer(/w12/);
  await w.page.keyboard.press("Control+Escape");
  await w.label("Stopped here");
  assert.equal((await place().log(project)).at(-1)?.entry["outcome"], "stopped");
  await w.action("close").click();
  await w.thread().waitFor({ state: "detached" });

  // guards S6
  await w.ask("Say nothing.");
  await w.action("debug-stop").click();
  const input = w.page.locator(".quick-input-widget:visible input").first();
  await input.waitFor();
  await w.until("the prompt in the lane", async () => (await input.inputValue()) === "Say nothing.");
  await w.shot("04-silent-stop");
  await input.press("Escape");
  await w.thread().getByText("Stopped before anything was said.").waitFor();
});

// guards F1, F3, F4
sceneIn("answers", "an answer that breaks off is an attempt, which can be kept", async (w, project) => {
  await w.ask("Break off.");
  await w.label("Broke off");
  await w.thread().getByText(/Attempt, not in the model input/).waitFor();
  await w.shot("05-broke-off");
  await w.action("pass").click();
  await w.notification(/Kept: the next model input holds these 4 words/).waitFor();
  await w.label("Kept: in the model input");
  assert.equal((await place().log(project)).at(-1)?.kind, "admission");
});

sceneIn("answers", "a selection is asked about by its code action, and the answer draws no picture and no HTML", async (w, project) => {
  await w.file("main.go", 6);
  await w.page.keyboard.press("Shift+End");
  const action = w.page.locator(".action-widget").getByText("Ask Fermata About This").first();
  await w.until("the action, once the daemon offers it", async () => {
    await w.page.keyboard.press("Control+.");
    return action.waitFor({ timeout: 3000 }).then(() => true, () => false);
  });
  await action.click();
  await w.quickInput("What is selected?");
  await w.answer("a picture");
  await w.idle();
  assert.equal(await w.thread().locator(".comment-body img").count(), 0);
  assert.match(await w.lastComment().innerText(), /!\[a picture\].*<b>it<\/b>|!a picture.*<b>it<\/b>/);
  const prompt = (await place().log(project)).findLast((e) => e.kind === "turn.started")?.entry["prompt"] as { type: string; text: string }[];
  assert.deepEqual(prompt.map((p) => p.type), ["text", "selection"]);
  assert.match(prompt[1]?.text ?? "", /Println/);
});

sceneIn("answers", "an answer of 4,000 words as fast as they come loses none", async (w) => {
  await w.ask("Count to four thousand.");
  await w.answer(/w4000/);
  await w.idle();
  assert.equal(read(await w.lastComment().locator(".comment-body").innerText()), Array.from({ length: 4000 }, (_, i) => `w${i + 1}`).join(" "));
});

// guards S10
sceneIn("answers", "a message that is queued says so, and is handed back by a stop", async (w, project) => {
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
