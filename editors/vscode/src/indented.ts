// JSON indented for reading, made from its very text: numbers, escapes and the order of members stay as they were sent, which
// JSON.parse would not keep.

export interface Indented {
  text: string;
  /** The line, from 0, on which a byte of the original stands; for those of white space that of what comes next. */
  lineOf(byte: number): number;
}

/** Indents a text. What is no JSON comes out in some way too, with every character but white space between tokens. */
export function indent(json: string): Indented {
  const out: string[] = [];
  const marks: { byte: number; line: number }[] = [];
  let depth = 0;
  let line = 0;
  let byte = 0;
  const newline = (): void => {
    out.push("\n", "  ".repeat(depth));
    line++;
  };
  const token = /"(?:[^"\\]|\\[^])*"?|[{}[\],:]|\s+|[^\s{}[\],:"]+/g;
  const tokens = json.match(token) ?? [];
  let opened = false; // nothing has come yet in what was opened last
  for (const t of tokens) {
    const bytes = Buffer.byteLength(t);
    if (/^\s/.test(t)) {
      byte += bytes;
      continue;
    }
    if (opened && t !== "}" && t !== "]") newline();
    if ((t === "}" || t === "]") && depth > 0) {
      depth--;
      if (!opened) newline();
    }
    opened = t === "{" || t === "[";
    marks.push({ byte, line });
    out.push(t);
    if (t === ":") out.push(" ");
    if (opened) depth++;
    if (t === ",") newline();
    byte += bytes;
  }
  return {
    text: out.join("") + "\n",
    lineOf: (at) => {
      let low = 0;
      let high = marks.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((marks[middle]?.byte ?? 0) <= at) low = middle + 1;
        else high = middle;
      }
      // Between two tokens stands white space: it belongs to the next one.
      return marks[Math.max(0, low - 1)]?.line ?? 0;
    },
  };
}
