import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import { main, place, read, scene, sceneApart } from "./scene";
import type { Window } from "./window";

// guards C1, C2
scene("a daemon that is killed is started again, and the turn is shown as cut off with its text", async (w, project) => {
  await w.ask("Tell another story.");
  await w.answer(/w15/);
  const [pid, ...others] = place().daemons();
  assert.ok(pid !== undefined && others.length === 0, "a window has one daemon");
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  process.kill(pid, "SIGKILL");
  await w.label("Cut off: the daemon ended");
  assert.ok(read(await w.lastComment().innerText()).includes(shown));
  await w.until("another daemon", () => place().daemons().some((p) => p !== pid));
  await w.until("the log's word", async () => (await place().log(project)).at(-1)?.entry["outcome"] === "abandoned");
  await w.shot("31-daemon-killed");
  assert.equal(await w.notification(/error|disposed|closed/i).count(), 0, "no alarm beside the thread");
  await w.reply("Only one sentence.", "What should it do instead?");
  await w.answer("It greets the world.");
});

scene("a daemon that keeps ending is given up, until the user has it started again", async (w) => {
  const given = w.notification("The fermata daemon keeps ending. Nothing that was said is lost.");
  // It is started again at once, after 0.5 s, after 2 s and after 5 s.
  const runs = (): number => place().logged(/the daemon runs/).length;
  const first = runs();
  await w.command("Fermata: Restart Daemon"); // forgets earlier ends
  await w.until("the daemon", () => runs() === first + 1);
  const restarts = place().logged(/starting it again/).length;
  for (const more of [1, 1, 1, 1, 0]) {
    const before = runs();
    for (const pid of place().daemons()) process.kill(pid, "SIGKILL");
    await w.until("the next daemon", () => runs() === before + more);
  }
  await given.waitFor();
  assert.equal(place().logged(/starting it again/).length, restarts + 4);
  await w.shot("36-given-up");
  await given.getByText("Restart Daemon").click();
  await w.page.locator(".view-line", { hasText: "func main" }).click(); // the keyboard can be in another message
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
});

scene("a program that is not there is said to be missing, with what to do", async (w) => {
  await w.settings({ "fermata.path": "/nowhere/fermata" });
  await w.command("Fermata: Restart Daemon");
  const missing = w.notification(/fermata\.path is \/nowhere\/fermata, and there is no such program/);
  await missing.waitFor();
  await missing.locator(".codicon-notifications-clear").click();
  await missing.waitFor({ state: "detached" });
  await w.ask("Only one sentence.");
  await missing.getByText("Open Settings").waitFor();
  await w.shot("34-missing");
});

scene("a daemon that does not answer is given up by a restart, which is no reason for an alarm", async (w) => {
  const dumb = path.join(place().home, "dumb-fermata");
  fs.writeFileSync(dumb, `#!/bin/sh\necho $$ > ${dumb}.pid\nexec sleep 1000\n`, { mode: 0o755 });
  await w.settings({ "fermata.path": dumb });
  await w.command("Fermata: Restart Daemon");
  await w.until("its start", () => fs.existsSync(`${dumb}.pid`) && fs.readFileSync(`${dumb}.pid`, "utf8").endsWith("\n"));
  await w.settings();
  await w.command("Fermata: Restart Daemon");
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.until("its end", () => !fs.existsSync(`/proc/${fs.readFileSync(`${dumb}.pid`, "utf8").trim()}`));
  assert.equal(await w.page.locator(".notification-toast").count(), 0);
});

scene("a daemon of another protocol is refused with what to update", async (w) => {
  const old = path.join(place().home, "old-fermata");
  fs.writeFileSync(old, `#!${process.execPath}
const say = (m) => { const text = JSON.stringify({ jsonrpc: "2.0", ...m }); process.stdout.write("Content-Length: " + Buffer.byteLength(text) + "\\r\\n\\r\\n" + text); };
let all = "";
process.stdin.on("data", (data) => {
  for (all += data; ;) {
    const [, head, size] = /^([^]*?Content-Length: (\\d+)[^]*?\\r\\n\\r\\n)/i.exec(all) ?? [];
    if (head === undefined || all.length < head.length + Number(size)) return;
    const m = JSON.parse(all.slice(head.length, head.length + Number(size)));
    all = all.slice(head.length + Number(size));
    if (m.method === "initialize") say({ id: m.id, result: { capabilities: { experimental: { fermata: { protocol: 0 } } }, serverInfo: { name: "fermata", version: "0.0.1" } } });
    if (m.method === "shutdown") say({ id: m.id, result: null });
    if (m.method === "exit") process.exit(0);
  }
});
`, { mode: 0o755 });
  await w.settings({ "fermata.path": old });
  const again = place().logged(/starting it again/).length;
  await w.command("Fermata: Restart Daemon");
  await w.notification(/\(version 0\.0\.1\) speaks another protocol \(0\) than this extension \(1\)/).waitFor();
  await w.shot("35-old-daemon");
  assert.equal(place().logged(/starting it again/).length, again, "that it ended, as it was told to, is no reason to start it again");
  await w.settings();
  const runs = (): number => place().logged(/the daemon runs/).length;
  const before = runs();
  await w.until("the right daemon, once the extension knows the setting too", async () => {
    await w.command("Fermata: Restart Daemon");
    await w.page.waitForTimeout(200);
    return runs() > before;
  });
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
});

scene("with fermata.inline on codelens the answer's state stands above its line, and a click there stops it", async (w, project) => {
  await w.settings({ "fermata.inline": "codelens" });
  await w.ask("Tell a long story.");
  const lens = (text: RegExp) => w.page.locator(".codelens-decoration a", { hasText: text }).first();
  await lens(/■ Stop · \d+ words/).waitFor();
  await w.shot("37-codelens-streaming");
  assert.equal(await w.page.locator(".review-widget").count(), 0);
  await lens(/■ Stop/).click();
  await lens(/Stopped here/).waitFor();
  await w.shot("37-codelens-stopped");
  assert.equal((await place().log(project)).at(-1)?.entry["outcome"], "stopped");
  await w.notification(/Stopped here: \d+ words kept/).getByText("Redirect…").click();
  await w.quickInput("Only one sentence.");
  await w.until("the answer in the log", async () => (await place().log(project)).at(-1)?.entry["outcome"] === "completed");
  await w.settings();
});

scene("a model that is chosen is the one that is asked, until the configured one is chosen again", async (w) => {
  await w.command("Fermata: Select Model");
  await w.page.locator(".quick-input-widget .monaco-list-row", { hasText: "As configured" }).first().waitFor();
  await w.shot("38-models");
  await w.quickPick("Another model…");
  await w.quickInput("scripted/another");
  await w.status().filter({ hasText: "scripted/another" }).waitFor();
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  assert.equal((JSON.parse(place().bodies().at(-1) ?? "") as { model: string }).model, "another");
  await w.command("Fermata: Select Model");
  await w.quickPick("As configured");
  await w.idle();
});

// VS Code asks no participant before its chat has a language model, which comes from another extension: so this goes no further.
scene("VS Code's own chat takes @fermata for who is asked", async (w) => {
  await w.page.keyboard.press("Control+Alt+i");
  const input = w.page.locator(".interactive-session .interactive-input-part .monaco-editor").first();
  await input.click();
  await w.page.keyboard.type("@fermata Only one sentence.");
  await input.locator(".view-line", { hasText: "@fermata Only one sentence." }).waitFor();
  await w.page.keyboard.press("Escape"); // the list of who can be asked
  await w.page.keyboard.press("Enter");
  await w.page.locator(".interactive-item-container.interactive-response", { hasText: "Fermata" }).waitFor();
  await w.shot("41-chat");
});

// guards C1: what was shown is in the transcript, also when the window goes away in the middle
scene("a window that is loaded anew in the middle of an answer shows the thread again", async (w, project, file) => {
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
  await w.until("the edit on disk", () => project.read(file).includes("two"));
  await w.answer(/w40/);
  await w.until("the thread below its line", belowItsLine);
  const shown = read(await w.lastComment().locator(".comment-body").innerText());
  await w.reload(file);
  await w.label(/Stopped here|Cut off/);
  await w.until("the thread below its line again", belowItsLine);
  await w.shot("30-reloaded");
  const log = await place().log(project);
  const answer = log.findLast((e) => e.kind === "answer")?.entry as { parts: { text: string }[] };
  assert.ok(read(answer.parts.map((p) => p.text).join("")).startsWith(shown), "what was on the screen is in the log");
  assert.ok(read(await w.lastComment().innerText()).includes(shown), "and is on the screen again");
});

sceneApart("without a workspace a question is asked all the same", async () => {
  const w = await place().open();
  await w.command("Fermata: Ask");
  await w.quickInput("Without a workspace.");
  await w.until("the answer in the transcript", async () => (await w.editorText()).includes("There is no workspace, and that is fine."));
  await w.shot("32-no-workspace");
});

sceneApart("a workspace that is not trusted gets tools that only read", async (project) => {
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
    await w.idle();
    // Trust that is given counts for the session that there is.
    await w.command("Workspaces: Manage Workspace Trust");
    await w.page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click();
    await w.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor({ state: "detached" });
    await w.file("main.go", 3);
    await w.ask("Wait for me.");
    await w.permission(/echo waited/).waitFor();
    await w.page.keyboard.press("Control+Escape");
    await w.idle();
    assert.equal((await place().log(project)).filter((e) => e.kind === "turn.started").length, 2);
  } finally {
    place().settings();
  }
});

sceneApart("with several folders a question goes to the session of its file's folder", async () => {
  const [one, two] = ["one", "two"].map((name) => place().project(name, { [`${name}.go`]: main }));
  assert.ok(one !== undefined && two !== undefined);
  const w = await place().open([one, two]);
  await w.file("one.go", 5);
  await w.ask("Tell a long story.");
  await w.answer(/w3/);
  await w.file("two.go", 5);
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.shot("39-several-folders");
  await w.file("one.go", 5);
  await w.page.keyboard.press("Control+Escape");
  await w.lane();
  const asked = async (p: typeof one) => (await place().log(p)).filter((e) => e.kind === "turn.started" || e.kind === "turn.ended").map((e) => e.entry["outcome"] ?? (e.entry["prompt"] as { text: string }[])[0]?.text);
  assert.deepEqual(await asked(one), ["Tell a long story.", "stopped"]);
  assert.deepEqual(await asked(two), ["Only one sentence.", "completed"]);
  await w.command("Fermata: Show Sessions");
  for (const title of ["Tell a long story.", "Only one sentence."]) await w.page.locator(".pane-body .monaco-list-row", { hasText: title }).first().waitFor();
});

// VS Code's host of extensions in the browser takes away the comment controllers of the other one when it comes.
sceneApart("threads are seen in a window whose other host of extensions comes late", async (project) => {
  const started = (): number => place().logged(/the window's hosts of extensions have come/).length;
  const late = async (meanwhile: () => Promise<void>): Promise<void> => {
    const before = started();
    const release = await place().hold("**/webWorkerExtensionHostIframe.html*");
    await meanwhile();
    assert.equal(started(), before);
    assert.ok(await release(), "there is another host");
    await w.until("the other host", () => started() > before);
  };
  let w!: Window;
  await late(async () => {
    w = await place().open(project);
    await w.file("main.go", 5);
  });
  await w.ask("Tell a long story.");
  await w.answer(/w3/);
  await w.action("debug-stop").click();
  await w.label("Stopped here");
  await late(async () => {
    await w.reload("main.go");
    await w.label("Stopped here");
  });
  await w.label("Stopped here");
  await w.reply("Only one sentence.", "What should it do instead?");
  await w.answer("It greets the world.");
});

sceneApart("in Chinese all that the extension says is Chinese", async (project) => {
  const w = await place().open(project, "zh-cn");
  await w.file("main.go", 5);
  await w.ask("Tell a long story.");
  await w.answer(/w3/);
  await w.status().filter({ hasText: "停止" }).waitFor();
  await w.page.keyboard.press("Control+Escape");
  await w.label("已停止");
  await w.thread().getByText(/保留了 \d+ 个词/).waitFor();
  await w.shot("40-chinese");
  await w.reply("Only one sentence.", "它应该改做什么？");
  await w.answer("It greets the world.");
  await w.reply("And in one word?", "问下一个问题");
  await w.answer("Greeting.");
  await w.command("Fermata: 选择模型");
  await w.page.locator(".quick-input-widget .monaco-list-row", { hasText: "按配置" }).first().waitFor();
});

test("the log says how long the extension's own code took to be activated", async () => {
  await place().closeWindow();
  const times = place().logged(/(?<=activated in ).*(?= of CPU)/);
  assert.ok(times.length > 0, "it logs how long it took");
  console.log(`   activation of the extension's own code, and of it CPU: ${times.join("; ")}`);
});
