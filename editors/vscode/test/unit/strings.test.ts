import assert from "node:assert/strict";
import * as fs from "node:fs";
import { test } from "node:test";
import { shown } from "./strings";

function json(file: string): Record<string, string> {
  return JSON.parse(fs.readFileSync(file, "utf8")) as Record<string, string>;
}

const placeholders = (s: string): string[] => [...s.matchAll(/\{\d+\}/g)].map((m) => m[0]).sort();

test("every string that is shown has its Simplified Chinese, and no other has", () => {
  const strings = shown("src");
  const bundle = json("l10n/bundle.l10n.zh-cn.json");
  const missing = [...strings].filter(([s]) => bundle[s] === undefined).map(([s, file]) => `${file}: ${s}`);
  assert.deepEqual(missing, [], "these lack an entry in l10n/bundle.l10n.zh-cn.json");
  assert.deepEqual(Object.keys(bundle).filter((s) => !strings.has(s)), [], "these entries are of no string");
  for (const [s, t] of Object.entries(bundle)) assert.deepEqual(placeholders(t), placeholders(s), `placeholders of ${s}`);
});

test("every title in package.json is in both languages", () => {
  const used = [...fs.readFileSync("package.json", "utf8").matchAll(/"%([^%"]+)%"/g)].map((m) => m[1]).sort();
  for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) {
    assert.deepEqual(Object.keys(json(file)).sort(), [...new Set(used)], file);
  }
});

test("every command in a menu or key is declared, and every one declared is registered", () => {
  const p = JSON.parse(fs.readFileSync("package.json", "utf8")) as { contributes: { commands: { command: string }[]; menus: Record<string, { command: string }[]>; keybindings: { command: string }[] } };
  const declared = new Set(p.contributes.commands.map((c) => c.command));
  for (const c of [...Object.values(p.contributes.menus).flat(), ...p.contributes.keybindings]) assert.ok(declared.has(c.command), c.command);
  const source = fs.readdirSync("src").map((f) => fs.readFileSync(`src/${f}`, "utf8")).join("\n").replaceAll("`fermata.permission.${choice}`", '"fermata.permission.once" "fermata.permission.session" "fermata.permission.deny"');
  for (const c of declared) assert.ok(source.includes(`"${c}"`), `${c} is registered nowhere`);
});
