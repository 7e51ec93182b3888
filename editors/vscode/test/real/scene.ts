import * as path from "node:path";
import { after, before, test } from "node:test";
import { Place, type Project } from "./place";

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

/** A test with a project that holds main.go, whose windows are closed behind it. */
export function scene(name: string, play: (project: Project) => Promise<void>): void {
  test(name, async () => {
    const project = place().project(name.replace(/\W+/g, "-").slice(0, 40), { "main.go": main });
    try {
      await play(project);
    } catch (err) {
      console.log(`   ${name}: ${err instanceof Error ? (err.stack ?? err.message) : String(err)}`); // at once, not at the end of all
      await place().failed(name);
      throw err;
    } finally {
      await place().closeWindows();
    }
  });
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
