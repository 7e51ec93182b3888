import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";
import { page } from "./statspage";

// The page with the metrics. There is one, computed anew each time it is asked for.

export class StatsPage implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  constructor(private readonly daemon: Daemon) {}

  async show(root: string): Promise<void> {
    const stats = await this.daemon.request("fermata/stats", root === "" ? {} : { workspace: root });
    if (this.panel === undefined) {
      this.panel = vscode.window.createWebviewPanel("fermata.stats", l10n.t("Fermata: Stats"), vscode.ViewColumn.Active, { enableScripts: false, enableFindWidget: true, localResourceRoots: [] });
      this.panel.onDidDispose(() => (this.panel = undefined));
    }
    this.panel.webview.html = page(stats, randomBytes(16).toString("base64url"), (m, ...a) => l10n.t(m, ...a));
    this.panel.reveal();
  }

  dispose(): void {
    this.panel?.dispose();
  }
}
