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
  // The thread follows its line when lines are written above it.
  await w.page.keyboard.press("Escape");
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  await w.reload();
  await w.label(/Stopped here|Cut off/);
  await w.shot("30-reloaded");
  const log = await place().log(project);
  const answer = log.find((e) => e.kind === "answer")?.entry as { parts: { text: string }[] };
  assert.ok(read(answer.parts.map((p) => p.text).join("")).startsWith(shown), "what was on the screen is in the log");
  assert.ok(read(await w.lastComment().innerText()).includes(shown), "and is on the screen again");
});

// guards C1, C2
scene("a daemon that is killed is started again, and the turn is shown as cut off with its text", async (project) => {
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.ask("Tell another story.");
  await w.answer(/w15/);
  const [pid] = place().daemons();
  assert.ok(pid !== undefined);
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  process.kill(pid, "SIGKILL");
  await w.label("Cut off: the daemon ended");
  assert.ok(read(await w.lastComment().innerText()).includes(shown));
  await w.until("another daemon", () => place().daemons().some((p) => p !== pid));
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
  await w.command("Fermata: Open Transcript");
  await w.until("the answer in the transcript", async () => (await w.editorText()).includes("There is no workspace, and that is fine."));
  await w.shot("32-no-workspace");
});

scene("a workspace that is not trusted gets tools that only read", async (project) => {
  place().settings({ "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" });
  try {
    const w = await place().open(project);
    await w.file("main.go", 1);
    await w.page.getByText("Restricted Mode").first().waitFor();
    await w.ask("Run the tests.");
    await w.thread().getByText("I was not allowed to.").waitFor();
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
  const stopped = JSON.stringify({ jsonrpc: "2.0", id: 1, result: null });
  const frame = (s: string): string => `printf 'Content-Length: ${Buffer.byteLength(s)}\\r\\n\\r\\n%s' '${s}'\n`;
  fs.writeFileSync(old, `#!/bin/sh\n${frame(answer)}${frame(stopped)}cat >/dev/null\n`, { mode: 0o755 });
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
