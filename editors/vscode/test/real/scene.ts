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
  made = await Place.make(path.join(process.cwd(), "test/real/scenario.txt"));
});
after(() => made?.close());

/** A test with a project of its own that holds main.go, whose windows are closed behind it. */
export function scene(name: string, play: (project: Project) => Promise<void>): void {
  test(name, () => twice(name, async () => {
    await place().closeWindows(); // that of a run of scenes
    stage = undefined;
    try {
      await watched(name, () => play(newProject(name)));
    } finally {
      await place().closeWindows();
    }
  }));
}

/** Plays a scene, and once more in a new window when it failed: a browser loses a key or a click now and then. It is told. */
async function twice(name: string, play: () => Promise<void>): Promise<void> {
  try {
    await play();
  } catch {
    console.log(`   ${name}: once more, in a new window`);
    await play();
  }
}

let stage: { act: string; window: Window; project: Project } | undefined;

/** A test in the window and project that it shares with the others of its act: loading a window takes the longest. */
export function sceneIn(act: string, name: string, play: (w: Window, project: Project) => Promise<void>): void {
  test(name, () => twice(name, async () => {
    // A window that cannot be tidied up is left for a new one: that is the stage's matter, and not what is tested.
    if (stage?.act !== act || !(await stage.window.clear().then(() => true, () => false))) {
      await place().closeWindows();
      const project = newProject(act);
      stage = { act, project, window: await place().open(project) };
    }
    const { window, project } = stage;
    await watched(name, async () => {
      await window.file("main.go", 1);
      await play(window, project);
    }).catch(async (err: unknown) => {
      stage = undefined; // the next one begins anew
      await place().closeWindows();
      throw err;
    });
  }));
}

function newProject(name: string): Project {
  return place().project(name.replace(/\W+/g, "-").slice(0, 40), { "main.go": main });
}

async function watched(name: string, play: () => Promise<void>): Promise<void> {
  try {
    await play();
  } catch (err) {
    console.log(`   ${name}: ${err instanceof Error ? (err.stack ?? err.message) : String(err)}`); // at once, not at the end of all
    await place().failed(name);
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
