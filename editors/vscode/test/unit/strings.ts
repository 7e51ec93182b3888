import * as fs from "node:fs";
import * as ts from "typescript";

// The strings that are shown to people, read from the sources: the first argument of l10n.t(…), and of l(…) where the
// localiser is given.

export function shown(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of fs.readdirSync(folder).filter((f) => f.endsWith(".ts") && f !== "protocol.ts")) {
    const source = ts.createSourceFile(file, fs.readFileSync(`${folder}/${file}`, "utf8"), ts.ScriptTarget.Latest, true);
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && /^(l|l10n\.t|vscode\.l10n\.t)$/.test(node.expression.getText())) {
        const first = node.arguments[0];
        if (first !== undefined && ts.isStringLiteralLike(first)) found.set(first.text, file);
        else if (first === undefined || first.getText() !== "m") throw new Error(`${file}: ${node.getText()}: a shown string must be a literal, to be found here`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return found;
}
