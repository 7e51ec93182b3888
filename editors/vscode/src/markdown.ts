// Text that a model said, as markdown that shows all of it and does nothing else: no HTML of its own, no picture that would be
// fetched from somewhere (nothing leaves this machine because a model said so), no icon in place of characters.

const dimmed = '<span style="color:var(--vscode-disabledForeground);">';

/** Markdown of what a model said; code stays as it is. */
export function harmless(text: string): string {
  return pieces(text)
    .map((p) => (p.code ? p.text : p.text.replace(/<(?=[A-Za-z/!?])/g, "&lt;").replace(/!(?=\[)/g, "!\\")))
    .join("");
}

/** The same dimmed, also where it ends in the middle of a block of code. */
export function dim(text: string): string {
  // The tag alone on a line is a block of its own, so that lists, headings and code stand in it as what they are.
  return `${dimmed}\n\n${closed(harmless(text))}\n\n</span>`;
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
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1];
    if (mark === undefined) continue;
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = "";
  }
  return fence === "" ? text : `${text.replace(/\n$/, "")}\n${fence}`;
}
