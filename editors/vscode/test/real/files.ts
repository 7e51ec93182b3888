import assert from "node:assert/strict";
import * as fs from "node:fs";
import { main, messages, place, scene, sceneApart } from "./scene";

scene("what a turn changed is shown side by side, reverted, and put back", async (w, project) => {
  await w.file("german.go", 6);
  await w.ask("Greet in German.");
  await w.permission(/edit_file/).waitFor();
  await w.shot("20-permission", "both");
  await w.permission(/edit_file/).getByText("Show Diff").click();
  await w.page.locator(".tab", { hasText: ".diff" }).waitFor();
  await w.shot("21-permission-diff");
  await w.permission(/edit_file/).getByText("Allow Once").click();
  await w.permission(/write_file/).getByText("Allow Once").click();
  await w.file("german.go", 6);
  await w.answer("Done: it says hallo now.");
  await w.idle();
  await w.until("the edit in the open document", async () => (await w.page.locator(".view-line", { hasText: "hallo" }).count()) > 0);
  await w.shot("22-changed");

  await w.command("Fermata: Show Changes");
  await w.page.locator(".monaco-component.multiDiffEditor, .multiDiffEntry").first().waitFor();
  await w.page.locator(".multiDiffEntry", { hasText: "note.txt" }).first().waitFor();
  await w.shot("23-changes");
  await w.command("Fermata: Revert Turn");
  await w.notification(/2 files reverted/).waitFor();
  await w.until("the note to be gone", () => !fs.existsSync(project.file("note.txt")));
  await w.shot("24-reverted");
  await w.notification(/2 files reverted/).getByText("Undo").click();
  await w.notification(/2 files put back/).waitFor();
  assert.equal(project.read("note.txt"), "Es wird gegrüßt.\n");
  await w.file("german.go", 6);
  await w.until("the edit to be back", async () => (await w.page.locator(".view-line", { hasText: "hallo" }).count()) > 0);
  await w.command("Fermata: Revert Files of Turn");
  await w.confirmPicked("german.go"); // the one that is open is ticked
  await w.notification(/1 file reverted/).waitFor();
  await w.page.locator(".view-line", { hasText: '"hello"' }).first().waitFor();
  assert.equal(fs.existsSync(project.file("note.txt")), true);

  // A window that is loaded anew opens the changes again, and asks for their texts.
  await w.command("Fermata: Show Changes");
  await w.page.locator(".multiDiffEntry", { hasText: "note.txt" }).first().waitFor();
  await w.written(project.root, "fermata-change:");
  await w.reload();
  await w.page.locator(".tab.active", { hasText: "Changes of the turn" }).waitFor();
  await w.until("the texts of both files after a reload", async () => {
    const lines = (await w.page.locator(".multiDiffEntry .view-line").allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
    return lines.includes('"hello"') && lines.includes('"hallo"') && lines.includes("Es wird gegrüßt.");
  });
});

scene("an edit of an open unsaved document is one undo stop, and saves nothing", async (w, project) => {
  await w.file("open.go", 1);
  await w.page.keyboard.type("var mine = 1\n");
  await w.ask("Change the open file.");
  await w.permission(/edit_file/).getByText("Allow Once").click();
  await w.answer("Changed.");
  await w.until("the edit", async () => (await w.editorText()).includes('"dear reader"'));
  assert.equal(project.read("open.go"), main, "nothing was saved");
  await w.page.locator(".view-line", { hasText: "package main" }).click(); // the thread has an editor of its own
  await w.page.keyboard.press("Control+z");
  await w.until("one undo to take it back", async () => (await w.editorText()).includes('"hello"'));
  assert.match(await w.editorText(), /mine/);
});

scene("a denied call is not run, and the model is told why", async (w, project) => {
  await w.ask("Run the tests.");
  await w.permission(/echo ran >> ran\.txt/).getByText("Deny…").click();
  await w.quickInput("not on this machine");
  await w.answer("I was not allowed to.");
  await w.thread().getByText("not allowed", { exact: false }).first().waitFor();
  assert.equal(fs.existsSync(project.file("ran.txt")), false);
  const sent = messages(await place().fermata(project, "input", "--raw"));
  assert.match(sent.findLast((m) => m.role === "tool")?.content ?? "", /not on this machine/);
});

scene("a question that is closed is denied, and the model is told that nobody answered", async (w, project) => {
  await w.ask("Close the question.");
  const question = w.permission(/echo closed/);
  await question.waitFor();
  await question.getByRole("button", { name: "Cancel" }).click();
  await w.answer("Nobody answered.");
  assert.equal(fs.existsSync(project.file("closed.txt")), false);
  const sent = messages(await place().fermata(project, "input", "--raw"));
  assert.match(sent.findLast((m) => m.role === "tool")?.content ?? "", /the question was closed without an answer/);
});

// guards S7: a call that waits for permission has a receipt when the turn is stopped
scene("a stop answers the question, and its notification goes", async (w, project) => {
  await w.ask("Wait for me.");
  await w.permission(/echo waited/).waitFor();
  await w.page.keyboard.press("Control+Escape");
  await w.permission(/echo waited/).waitFor({ state: "detached" });
  await w.thread().getByText("not run", { exact: false }).first().waitFor();
  const settled = (await place().log(project)).findLast((e) => e.kind === "tool.settled")?.entry;
  assert.deepEqual([settled?.["state"], settled?.["cause"]], ["not_started", "stopped_by_user"]);
});

sceneApart("with several folders the turn that is reverted is of the folder of the open file", async () => {
  const [left, right] = ["left", "right"].map((name) => place().project(name, { [`${name}.go`]: main, "open.go": main }));
  assert.ok(left !== undefined && right !== undefined);
  const w = await place().open([left, right]);
  for (const name of ["left", "right"]) {
    await w.file(`${name}.go`, 5);
    await w.ask(`Change it on the ${name}.`);
    await w.permission(/edit_file/).getByText("Allow Once").click();
    await w.answer(`The ${name} is changed.`);
    await w.idle();
  }
  await w.file("left.go", 5);
  await w.command("Fermata: Revert Turn");
  await w.notification(/1 file reverted/).waitFor();
  assert.equal(left.read("open.go"), main);
  assert.match(right.read("open.go"), /"right"/, "the other folder's turn is left alone");
});

sceneApart("changes that are open follow a turn that goes on changing the file; where nothing was changed, that is said", async (project) => {
  place().settings({ "files.encoding": "windows1252" }); // what the changes show is ours, in whatever encoding files are
  try {
    const w = await place().open(project);
    await w.file("main.go", 5);
    for (const command of ["Open Transcript", "Show Model Input", "Show Changes", "Revert Turn", "Revert Files of Turn"]) {
      await w.command("Notifications: Clear All Notifications");
      await w.command(`Fermata: ${command}`);
      await w.notification("Nothing was asked here yet.").waitFor();
    }
    await w.ask("Change it twice.");
    await w.permission(/edit_file/).getByText("Allow for Session").click();
    await w.page.locator(".view-line", { hasText: "hallo" }).first().waitFor();
    await w.command("Fermata: Show Changes");
    const shown = w.page.locator(".multiDiffEntry .view-line");
    await shown.filter({ hasText: "hallo" }).first().waitFor();
    await shown.filter({ hasText: "sérvus" }).first().waitFor();
    await w.file("main.go", 5);
    await w.answer("Changed twice.");
    await w.idle();
    await w.command("Fermata: New Session");
    await w.file("main.go", 5);
    for (const command of ["Show Changes", "Revert Turn", "Revert Files of Turn"]) {
      await w.command("Notifications: Clear All Notifications");
      await w.command(`Fermata: ${command}`);
      await w.notification("No file was changed here.").waitFor();
    }
  } finally {
    place().settings();
  }
});

sceneApart("a thread goes with its file when that is renamed, also after a reload", async (project) => {
  const w = await place().open(project);
  await w.file("main.go", 5);
  await w.ask("Only one sentence.");
  await w.answer("It greets the world.");
  await w.idle();
  await w.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "main.go" }).click();
  await w.page.keyboard.press("F2");
  const name = w.page.locator(".explorer-folders-view input");
  await name.fill("greeting.go");
  await name.press("Enter");
  await w.page.locator(".tab.active", { hasText: "greeting.go" }).waitFor();
  await w.answer("It greets the world.");
  await w.shot("25-renamed");
  await w.reply("And in one word?", "Ask the next question");
  await w.answer("Greeting.");
  await w.idle();
  const asked = (await place().log(project)).findLast((e) => e.kind === "turn.started")?.entry;
  assert.match(JSON.stringify(asked?.["anchor"]), /greeting\.go/);
  await w.reload("greeting.go");
  await w.answer("Greeting.");
});
