import * as vscode from "vscode";

// Documents that are shown and not written, as files of a scheme of their own. Of a file that has changed VS Code takes what has
// changed, so that its reader stays where he was; of what a document provider gives it takes all, from 100,000 characters on. And
// it waits for files when it opens again what was open before a reload.

/** By it VS Code knows UTF-8, whatever encoding the user has files read in. */
const mark = "\ufeff";

export abstract class ReadonlyFiles implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly files = new Map<string, { bytes: Uint8Array; version: number }>();
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  private readonly registration: vscode.Disposable;

  constructor(scheme: string) {
    this.registration = vscode.workspace.registerFileSystemProvider(scheme, this, { isReadonly: true, isCaseSensitive: true });
  }

  /** Puts the text of a file that is opened. */
  protected abstract load(uri: vscode.Uri): Promise<void>;

  /** Sets the text of a file: false when it is what it was. What is open is shown anew. */
  protected put(uri: vscode.Uri, text: string): boolean {
    const bytes = Buffer.from(mark + text);
    const known = this.files.get(uri.toString());
    if (known !== undefined && bytes.equals(known.bytes)) return false;
    this.files.set(uri.toString(), { bytes, version: (known?.version ?? 0) + 1 });
    if (known !== undefined) this.changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    return true;
  }

  /** Lets go of a file's text. It is loaded again when it is opened again. */
  protected drop(uri: vscode.Uri): void {
    this.files.delete(uri.toString());
  }

  private async file(uri: vscode.Uri): Promise<{ bytes: Uint8Array; version: number }> {
    if (!this.files.has(uri.toString())) await this.load(uri);
    const file = this.files.get(uri.toString());
    if (file === undefined) throw vscode.FileSystemError.FileNotFound(uri);
    return file;
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    return (await this.file(uri)).bytes;
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { bytes, version } = await this.file(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: version, size: bytes.length, permissions: vscode.FilePermission.Readonly };
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.FileNotADirectory(uri);
  }

  createDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): never {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
