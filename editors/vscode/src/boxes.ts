import * as vscode from "vscode";
import { l10n } from "vscode";

// The comment controllers: VS Code takes what a reply box asks from the controller of its thread, so there is one for each
// of the two boxes that a thread can have.
//
// A window can have several hosts of extensions, in the browser and beside the workspace. Each of them, as it comes, takes
// away the comment controllers of those that were there before (MainThreadComments), and no word of it reaches their
// extensions: all threads stay unseen from then on. So the controllers are made when they are needed, and once more when the
// window's hosts have all come after that.

/** The scheme of package.json's activation event: nothing has it, and asking for it is answered when all hosts have come. */
const nothing = vscode.Uri.from({ scheme: "fermata-window", path: "/" });

export class Boxes implements vscode.Disposable {
  private controllers: { lane: vscode.CommentController; ask: vscode.CommentController } | undefined;

  /** renewed is called when all threads are gone from the window and have to be made anew. */
  constructor(log: vscode.LogOutputChannel, renewed: () => void) {
    void vscode.workspace.fs.stat(nothing).then(undefined, () => undefined).then(() => {
      log.info("the window's hosts of extensions have come");
      if (this.controllers === undefined) return;
      this.dispose();
      renewed();
    });
  }

  /** A thread whose box is the redirect lane, or asks for the next question. */
  thread(uri: vscode.Uri, range: vscode.Range, comments: vscode.Comment[], lane: boolean): vscode.CommentThread {
    this.controllers ??= {
      lane: controller("fermata", l10n.t("What should it do instead?")),
      ask: controller("fermata.ask", l10n.t("Ask the next question")),
    };
    return (lane ? this.controllers.lane : this.controllers.ask).createCommentThread(uri, range, comments);
  }

  dispose(): void {
    this.controllers?.lane.dispose();
    this.controllers?.ask.dispose();
    this.controllers = undefined;
  }
}

function controller(id: string, prompt: string): vscode.CommentController {
  const c = vscode.comments.createCommentController(id, "Fermata");
  c.options = { prompt, placeHolder: prompt }; // a thread takes them when it is made
  return c;
}
