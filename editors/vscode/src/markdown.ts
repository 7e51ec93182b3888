// Text that a model said, as markdown that shows all of it and does nothing else: no HTML of its own, no picture that would be
// fetched from somewhere (nothing leaves this machine because a model said so), no icon in place of characters.

const open = '<span style="color:var(--vscode-disabledForeground);">';

/** The longest run of words in one span, in UTF-16 units: VS Code breaks no line within one. */
const run = 24;

/** Markdown of what a model said; code stays as it is. */
export function harmless(text: string): string {
  return pieces(text)
    .map((p) => (p.code ? p.text : p.text.replace(/<(?=[A-Za-z/!?])/g, "&lt;").replace(/!(?=\[)/g, "!\\")))
    .join("");
}

/**
 * The same dimmed, but for blocks of code, which have colours of their own; also where it ends in the middle of one. Words
 * are dimmed a few at a time, between what marks lists, headings and emphasis, so that those stay what they are.
 */
export function dim(text: string): string {
  return pieces(closed(text)).map((p) => (p.code ? (/^`[^`\n]+`$/.test(p.text) ? `${open}${p.text}</span>` : p.text) : dimLines(harmless(p.text)))).join("");
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
      out.push(before, ...(inner.match(new RegExp(`[^]{1,${run}}`, "gu")) ?? []).map((part) => `${open}${part}</span>`), behind);
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

/** Text in which no character means anything. */
export function escape(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~$&]/g, "\\$&").replace(/\n/g, "  \n");
}

/** Text as inline code. */
export function code(text: string): string {
  const line = text.replace(/\s+/g, " ");
  const ticks = "`".repeat(Math.max(0, ...[...line.matchAll(/`+/g)].map((m) => m[0].length)) + 1);
  const pad = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return ticks + pad + line + pad + ticks;
}

interface Piece {
  text: string;
  code: boolean;
}

/** Cuts a text into code and what is none, in order and with nothing left out. */
function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let prose: string[] = [];
  let block: string[] = [];
  let fence = "";
  const flush = (): void => {
    if (prose.length > 0) out.push(...inline(prose.join("")));
    prose = [];
  };
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const mark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line.trimEnd())?.[1];
    if (fence !== "") {
      block.push(line);
      if (mark?.startsWith(fence) === true && line.trim() === mark) {
        out.push({ text: block.join(""), code: true });
        block = [];
        fence = "";
      }
    } else if (mark !== undefined) {
      flush();
      fence = mark;
      block = [line];
    } else prose.push(line);
  }
  flush();
  if (block.length > 0) out.push({ text: block.join(""), code: true });
  return out;
}

function inline(text: string): Piece[] {
  const out: Piece[] = [];
  let from = 0;
  // A span of code ends within its paragraph.
  for (const m of text.matchAll(/(?<!`)(`+)(?!`)((?:(?!\n\s*\n)[^])*?[^`])\1(?!`)/g)) {
    out.push({ text: text.slice(from, m.index), code: false }, { text: m[0], code: true });
    from = m.index + m[0].length;
  }
  out.push({ text: text.slice(from), code: false });
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
    const mark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1];
    if (mark === undefined) continue;
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = "";
  }
  return fence;
}
