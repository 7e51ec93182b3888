import * as vscode from "vscode";

// The first time that VS Code is to run a command of an extension, it asks all of the window's hosts of extensions whether one
// of theirs wants to hear of it before, and waits for the slowest. A stop is not to wait for that: so VS Code is had run it once
// before anybody needs it, about nothing.

/** What a command is about that is run only for this. */
const nothing = "nothing";

/** Whether a command is run for a person, and not only to be ready. */
export function meant(about: unknown): boolean {
  return about !== nothing;
}

/** Has the window run some commands about nothing: by its own command, since one of this host's is not run by way of the window. */
export function makeReady(commands: string[]): Thenable<unknown> {
  return vscode.commands.executeCommand("runCommands", { commands: commands.map((command) => ({ command, args: [nothing] })) });
}
