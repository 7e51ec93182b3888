// Text that a model said, as markdown that shows all of it and does nothing else: no HTML of its own, no picture that would be
// fetched from somewhere (nothing leaves this machine because a model said so), no icon in place of characters.
//
// What is code here need not be code to VS Code, which reads lists, quotes and backslashes too. So where something in it would do
// anything if it were none, it is written anew, as what is code wherever it stands.

const open = '<span style="color:var(--vscode-disabledForeground);">';

/** The longest run of words in one span, in UTF-16 units: VS Code breaks no line within one. */
const run = 24;

/** What begins HTML or a picture where it is not in code. */
const acts = /<(?=[A-Za-z/!?])|!(?=\[)/;

/** Markdown of what a model said; code stays as it is, and a block of code that it leaves open is ended. */
export function harmless(text: string): string {
  return pieces(closed(text)).map(shown).join("");
}

/**
 * The same dimmed, but for blocks of code, which have colours of their own; also where it ends in the middle of one. Words
 * are dimmed a few at a time, between what marks lists, headings and emphasis, so that those stay what they are.
 */
export function dim(text: string): string {
  return pieces(closed(text)).map((p) => {
    if (p.code === undefined) return dimLines(shown(p));
    return p.code === "block" || p.text.includes("\n") ? shown(p) : `${open}${shown(p)}</span>`;
  }).join("");
}

function shown(p: Piece): string {
  if (p.code === undefined) return p.text.replace(/<(?=[A-Za-z/!?])/g, "&lt;").replace(/!(?=\[)/g, "!\\");
  if (!acts.test(p.text)) return p.text;
  return p.code === "block" ? block(p.text) : `<code>${escape(p.text.replace(/^`+ ?| ?`+$/g, "").replace(/\s+/g, " "))}</code>`;
}

/** A block of code anew, outside of all lists and quotes; with a language, without which its mark could end another block. */
function block(text: string): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const [, indent = "", fence = "", language = ""] = /^(\s*)(`{3,}|~{3,})\s*([\w+#.-]*)/.exec(lines[0] ?? "") ?? [];
  const ended = lines.length > 1 && ends(lines.at(-1) ?? "", fence);
  const inner = lines.slice(1, ended ? -1 : undefined).map((l) => l.slice(Math.min(indent.length, l.length - l.trimStart().length)));
  const mark = "`".repeat(Math.max(2, ...[...inner.join("\n").matchAll(/`+/g)].map((m) => m[0].length)) + 1);
  return `\n${mark}${language || "text"}\n${inner.join("\n")}\n${mark}\n${ended ? "\n" : ""}`;
}

/** Whether a line ends a block that began with a mark. */
function ends(line: string, fence: string): boolean {
  const mark = line.trim();
  return mark.startsWith(fence) && /^(`+|~+)$/.test(mark);
}

function dimLines(text: string): string {
  return text.split("\n").map((line) => (/^(\s{4,}|\t)/.test(line) ? line : dimLine(line))).join("\n");
}

function dimLine(line: string): string {
  const [mark = ""] = /^\s*(?:(?:#{1,6}|>|[-+*]|\d+[.)])\s+)*/.exec(line) ?? [];
  const out: string[] = [];
  let words = "";
  const flush = (): void => {
    if (words.trim() !== "") {
      const [, before = "", inner = "", behind = ""] = /^(\s*)([^]*?)(\s*)$/.exec(words) ?? [];
      out.push(before, ...(inner.match(new RegExp(`(?:&lt;|[^]){1,${run}}`, "gu")) ?? []).map((part) => `${open}${part}</span>`), behind);
    } else out.push(words);
    words = "";
  };
  for (const word of line.slice(mark.length).match(/\s+|[^\s]+/g) ?? []) {
    // What can mean something in markdown beyond the word stays outside of the span.
    if (/[*_`~[\]|\\]/.test(word) || (!/[\p{L}\p{N}]/u.test(word) && word.trim() !== "")) {
      flush();
      out.push(word);
    } else {
      if (words.length + word.length > run && word.trim() !== "") flush();
      words += word;
    }
  }
  flush();
  return mark + out.join("");
}

/**
 * The end of a text that is still growing, and how many words stand before it. It begins where a line or a word does, and
 * stays there for a while, so that what is being read does not move with each word.
 */
export function tail(text: string, characters: number, lines: number): { text: string; before: number } {
  let from = text.length <= characters ? 0 : step(text.length - characters, characters);
  const ends = [...text.matchAll(/\n/g)].map((m) => m.index);
  if (ends.length >= lines) from = Math.max(from, (ends[step(ends.length + 1 - lines, lines) - 1] ?? -1) + 1);
  if (from === 0) return { text, before: 0 };
  // At the next line if it is near, else at the next word, else at the next character.
  const line = text.indexOf("\n", from - 1);
  const word = text.slice(from - 1, from + 200).search(/\s/);
  if (line !== -1 && line < from + 80) from = line + 1;
  else if (word !== -1) from += word;
  else if (/[\udc00-\udfff]/.test(text[from] ?? "")) from++;
  const head = text.slice(0, from);
  const fence = openFence(head);
  return { text: (fence === "" ? "" : `${fence}\n`) + text.slice(from), before: head.match(/\S+/g)?.length ?? 0 };
}

/** The least multiple of half of a size that is not below a number. */
function step(least: number, size: number): number {
  const half = Math.ceil(size / 2);
  return Math.ceil(least / half) * half;
}

/** What is said piece by piece, as markdown without pictures, for where no HTML is drawn. */
export class Spoken {
  private held = "";

  /** What of it can be shown now. */
  add(text: string): string {
    const all = this.held + text;
    this.held = all.endsWith("!") ? "!" : ""; // a picture may begin with it
    return all.slice(0, all.length - this.held.length).replace(/!(?=\[)/g, "!\\");
  }

  /** What was held back until something else came. */
  rest(): string {
    const held = this.held;
    this.held = "";
    return held;
  }
}

/** Text in which no character means anything; addresses in it are links, as anywhere. */
export function escape(text: string): string {
  return text.split(/(https?:\/\/[\w./:?=&%#~+@,;-]*[\w/=%#~+@-])/).map((part, i) => (i % 2 === 1 ? `<${part}>` : plain(part))).join("").replace(/\n/g, "  \n");
}

function plain(text: string): string {
  // No backslash before what begins HTML: an address before it would take that as a part of itself.
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/[\\`*_{}[\]()#+\-.!|>~$]/g, "\\$&");
}

/** Text as inline code. */
export function code(text: string): string {
  const line = text.replace(/\s+/g, " ") || " ";
  const ticks = "`".repeat(Math.max(0, ...[...line.matchAll(/`+/g)].map((m) => m[0].length)) + 1);
  const pad = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return ticks + pad + line + pad + ticks;
}

interface Piece {
  text: string;
  code?: "block" | "span";
}

/** What begins a block of code, at whatever depth of a list. */
const begins = /^\s*(`{3,}(?=[^`]*$)|~{3,})/;

/** Cuts a text into code and what is none, in order and with nothing left out. */
function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let prose: string[] = [];
  let lines: string[] = [];
  let fence = "";
  const flush = (): void => {
    if (prose.length > 0) out.push(...inline(prose.join("")));
    prose = [];
  };
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    if (fence !== "") {
      lines.push(line);
      if (ends(line, fence)) {
        out.push({ text: lines.join(""), code: "block" });
        lines = [];
        fence = "";
      }
      continue;
    }
    fence = begins.exec(line.trimEnd())?.[1] ?? "";
    if (fence === "") prose.push(line);
    else {
      flush();
      lines = [line];
    }
  }
  flush();
  if (lines.length > 0) out.push({ text: lines.join(""), code: "block" });
  return out;
}

function inline(text: string): Piece[] {
  const out: Piece[] = [];
  let from = 0;
  // A span of code ends within its paragraph.
  for (const m of text.matchAll(/(?<!`)(`+)(?!`)((?:(?!\n\s*\n)[^])*?[^`])\1(?!`)/g)) {
    out.push({ text: text.slice(from, m.index) }, { text: m[0], code: "span" });
    from = m.index + m[0].length;
  }
  out.push({ text: text.slice(from) });
  return out;
}

/** The text with its last block of code ended. */
function closed(text: string): string {
  const fence = openFence(text);
  return fence === "" ? text : `${text.replace(/\n$/, "")}\n${fence}`;
}

/** The mark of the block of code that a text ends in, "" for none. */
function openFence(text: string): string {
  let fence = "";
  for (const line of text.split("\n")) {
    if (fence === "") fence = begins.exec(line)?.[1] ?? "";
    else if (ends(line, fence)) fence = "";
  }
  return fence;
}
