import * as vscode from "vscode";
import { l10n } from "vscode";
import type { Daemon } from "./daemon";

// Which model new turns use: what was chosen in this workspace, else the setting, else (absent) the session's or the one
// that fermata is configured with. A choice is remembered by the window; no settings are written.

const key = "model";

interface Item extends vscode.QuickPickItem {
  model?: string;
  other?: true;
}

export class Models implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<void>();
  readonly onChange = this.changes.event;

  constructor(
    private readonly memento: vscode.Memento,
    private readonly daemon: Daemon,
  ) {}

  /** The model to name when a turn is started; "" is none. */
  get chosen(): string {
    return (this.memento.get<string>(key) ?? "") || vscode.workspace.getConfiguration("fermata").get<string>("model", "");
  }

  async select(): Promise<void> {
    const items = this.daemon.request("fermata/model/list", {}).then((r): Item[] => [
      { label: l10n.t("As configured"), description: r.model, picked: this.chosen === "", model: "" },
      ...r.models.map((m): Item => ({ label: m.name, description: m.name === this.chosen ? l10n.t("chosen") : "", detail: m.from ?? "", model: m.name })),
      { label: l10n.t("Another model…"), other: true, detail: r.unreached?.join(" · ") ?? "" },
    ]);
    const item = await vscode.window.showQuickPick(items, { title: l10n.t("The model for new turns in this workspace"), matchOnDetail: true });
    if (item === undefined) return;
    const model = item.other === true ? await vscode.window.showInputBox({ title: l10n.t("Another model…"), placeHolder: "provider/model", value: this.chosen }) : item.model;
    if (model === undefined) return;
    await this.memento.update(key, model.trim() === "" ? undefined : model.trim());
    this.changes.fire();
  }

  dispose(): void {
    this.changes.dispose();
  }
}
