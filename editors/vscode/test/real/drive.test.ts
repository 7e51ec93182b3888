import assert from "node:assert/strict";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { Place } from "./place";

const main = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n";

let place: Place;
before(async () => {
  place = await Place.make(path.join(process.cwd(), "test/real/scenario.txt"));
});
after(() => place.close());

/** A test whose windows are closed behind it, and kept as a picture when it fails. */
function scene(name: string, play: () => Promise<void>): void {
  test(name, async () => {
    try {
      await play();
    } catch (err) {
      await place.failed(name);
      throw err;
    } finally {
      await place.closeWindows();
    }
  });
}

interface Message {
  role: string;
  content: string;
}

/** The messages of a request body, without the system's. */
function messages(body: string): Message[] {
  return (JSON.parse(body) as { messages: Message[] }).messages.filter((m) => m.role !== "system");
}

// guards S1, S3, S4, S11, D1, D2, D3, P1
scene("an answer is stopped inline, kept word for word, and redirected in the same thread", async () => {
  const project = place.project("stop", { "main.go": main });
  const w = await place.open(project);
  await w.file("main.go", 5);
  await w.ask("Explain this program.");
  await w.until("the answer to stream", async () => (await w.thread().isVisible()) && /one function, main/.test(await w.lastComment().innerText()));
  await w.shot("01-streaming");
  await w.action("debug-stop").click();
  await w.thread().getByText("Stopped here").waitFor();
  await w.shot("02-stopped");
  const dimmed = await w.lastComment().locator("span[style*=disabledForeground]").allInnerTexts();
  await w.reply("Only one sentence.");
  await w.thread().getByText("It greets the world.").waitFor();
  await w.until("the end", async () => !(await w.action("debug-stop").isVisible()));
  await w.shot("03-redirected");
  const sent = messages(await place.fermata(project, "input", "--raw"));
  assert.equal(sent[1]?.role, "assistant");
  assert.equal(dimmed.join("\n").replace(/\s+/g, " ").trim(), sent[1].content.trim());
  assert.equal(place.bodies().at(-1), await place.fermata(project, "input", "--raw"));
});
