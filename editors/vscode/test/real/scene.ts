import * as path from "node:path";
import { after, before, test } from "node:test";
import { Place, type Project } from "./place";
import type { Window } from "./window";

// What the scenes share: one place, and a test that keeps a picture of what it saw when it fails.

export const main = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n";

let made: Place | undefined;

export function place(): Place {
  if (made === undefined) throw new Error("the place is not made yet");
  return made;
}

before(async () => {
  const begun = Date.now();
  made = await Place.make(path.join(process.cwd(), "test/real/scenario.txt"));
  console.log(`   VS Code and the browser started in ${Date.now() - begun} ms`);
});
after(() => made?.close());

/** A test in a window of its own, on a project of its own that holds main.go. */
export function sceneApart(name: string, play: (project: Project) => Promise<void>): void {
  test(name, () => watched(name, async () => {
    await leaveStage();
    await play(place().project(name.replace(/\W+/g, "-").slice(0, 40), { "main.go": main }));
    await place().closeWindow();
  }));
}

let stage: { window: Window; project: Project } | undefined;
const files: string[] = [];

/**
 * A test in the window and the project that the others have too, because loading a window takes the longest; in a file of its
 * own, which is open at its function. A scene that fails leaves a new window to the next.
 */
export function scene(name: string, play: (w: Window, project: Project, file: string) => Promise<void>): void {
  const file = `f${String(files.length + 1).padStart(2, "0")}.go`;
  files.push(file);
  test(name, () => watched(name, async () => {
    if (stage === undefined) {
      // All files are there from the start: what VS Code finds by its name can be some seconds old.
      const project = place().project(`project-${file}`, Object.fromEntries([...files, "german.go", "open.go"].map((f) => [f, main])));
      stage = { project, window: await place().open(project) };
    } else await stage.window.clear();
    const { window, project } = stage;
    await window.file(file, 5);
    await play(window, project, file);
  }));
}

async function leaveStage(): Promise<void> {
  stage = undefined;
  await place().closeWindow();
}

async function watched(name: string, play: () => Promise<void>): Promise<void> {
  try {
    await play();
  } catch (err) {
    console.log(`   ${name}: ${err instanceof Error ? (err.stack ?? err.message) : String(err)}`); // at once, not at the end of all
    await place().failed(name);
    await leaveStage();
    throw err;
  }
}

export interface Message {
  role: string;
  content: string;
}

/** The messages of a request body, without the system's. */
export function messages(body: string): Message[] {
  return (JSON.parse(body) as { messages: Message[] }).messages.filter((m) => m.role !== "system");
}

/** Text as it reads: runs of white space are one space. */
export function read(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
