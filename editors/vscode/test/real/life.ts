import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { place, read, scene } from "./scene";

// guards C1: what was shown is in the transcript, also when the window goes away in the middle
scene("a window that is loaded anew in the middle of an answer shows the thread again", async (project) => {
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.ask("Tell a long story.");
  await w.answer(/w15/);
  // The thread follows its line when lines are written above it, also over the next updates and the reload.
  const belowItsLine = async (): Promise<boolean> => {
    const line = await w.page.locator(".view-line", { hasText: "func main" }).first().boundingBox();
    const thread = await w.thread().boundingBox();
    return line !== null && thread !== null && Math.abs(thread.y - line.y - line.height) < 12;
  };
  await w.page.locator(".view-line", { hasText: "package main" }).click();
  await w.page.keyboard.press("Home");
  await w.page.keyboard.type("var two = 2\n\n");
  await w.page.keyboard.press("Control+s");
  await w.until("the edit on disk", () => project.read("main.go").includes("two"));
  await w.answer(/w40/);
  await w.until("the thread below its line", belowItsLine);
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  await w.reload();
  await w.label(/Stopped here|Cut off/);
  await w.until("the thread below its line again", belowItsLine);
  await w.shot("30-reloaded");
  const log = await place().log(project);
  const answer = log.find((e) => e.kind === "answer")?.entry as { parts: { text: string }[] };
  assert.ok(read(answer.parts.map((p) => p.text).join("")).startsWith(shown), "what was on the screen is in the log");
  assert.ok(read(await w.lastComment().innerText()).includes(shown), "and is on the screen again");
});

// guards C1, C2
scene("a daemon that is killed is started again, and the turn is shown as cut off with its text", async (project) => {
  const before = place().daemons(); // of windows that are just being closed
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.ask("Tell another story.");
  await w.answer(/w15/);
  const [pid, ...others] = place().daemons().filter((p) => !before.includes(p));
  assert.ok(pid !== undefined && others.length === 0, "a window has one daemon");
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  process.kill(pid, "SIGKILL");
  await w.label("Cut off: the daemon ended");
  assert.ok(read(await w.lastComment().innerText()).includes(shown));
  await w.until("another daemon", () => place().daemons().some((p) => p !== pid && !before.includes(p)));
  await w.until("the log's word", async () => (await place().log(project)).at(-1)?.entry["outcome"] === "abandoned");
  await w.shot("31-daemon-killed");
  assert.equal(await w.notification(/error|disposed|closed/i).count(), 0, "no alarm beside the thread");
  await w.reply("Only one sentence.");
  await w.answer("It greets the world.");
});

scene("without a workspace a question is asked all the same", async () => {
  const w = await place().open();
  await w.command("Fermata: Ask");
  await w.quickInput("Without a workspace.");
  await w.until("the answer in the transcript", async () => (await w.editorText()).includes("There is no workspace, and that is fine."));
  await w.shot("32-no-workspace");
});

scene("a workspace that is not trusted gets tools that only read", async (project) => {
  place().settings({ "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" });
  try {
    const w = await place().open(project);
    await w.file("main.go", 1);
    await w.page.getByText("Restricted Mode").first().waitFor();
    await w.ask("Run it untrusted.");
    await w.answer("It only reads here.");
    await w.thread().getByText("not allowed", { exact: false }).first().waitFor();
    const settled = (await place().log(project)).find((e) => e.kind === "tool.settled")?.entry;
    assert.deepEqual([settled?.["state"], settled?.["cause"]], ["not_started", "permission_denied"]);
    assert.equal(fs.existsSync(project.file("ran.txt")), false);
    await w.shot("33-restricted");
  } finally {
    place().settings();
  }
});

scene("a program that is not there is said to be missing, with what to do", async (project) => {
  place().settings({ "fermata.path": "/nowhere/fermata" });
  try {
    const w = await place().open(project);
    await w.file("main.go", 1);
    await w.ask("Only one sentence.");
    await w.notification(/fermata\.path is \/nowhere\/fermata, and there is no such program/).waitFor();
    await w.shot("34-missing");
  } finally {
    place().settings();
  }
});

scene("a daemon of another protocol is refused with what to update", async (project) => {
  const old = path.join(place().home, "old-fermata");
  const answer = JSON.stringify({ jsonrpc: "2.0", id: 0, result: { capabilities: { experimental: { fermata: { protocol: 0 } } }, serverInfo: { name: "fermata", version: "0.0.1" } } });
  fs.writeFileSync(old, `#!/bin/sh\nread -r header\nprintf 'Content-Length: ${Buffer.byteLength(answer)}\\r\\n\\r\\n%s' '${answer}'\ncat >/dev/null\n`, { mode: 0o755 });
  place().settings({ "fermata.path": old });
  try {
    const w = await place().open(project);
    await w.file("main.go", 1);
    await w.ask("Only one sentence.");
    await w.notification(/\(version 0\.0\.1\) speaks another protocol \(0\) than this extension \(1\)/).waitFor();
    await w.shot("35-old-daemon");
  } finally {
    place().settings();
  }
});
