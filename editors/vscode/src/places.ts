// Where something stands in a document that is being edited. Lines and characters count from 0, characters in UTF-16 units.

export interface Place {
  readonly line: number;
  readonly character: number;
}

export interface Span {
  readonly start: Place;
  readonly end: Place;
}

/** The span behind an edit that replaces a part of the document by a text. What is deleted around it moves it to where that was. */
export function moved(span: Span, replaced: Span, text: string): Span {
  const lines = text.split("\n");
  const last = lines.at(-1)?.replace(/\r$/, "") ?? "";
  const end: Place = {
    line: replaced.start.line + lines.length - 1,
    character: lines.length === 1 ? replaced.start.character + last.length : last.length,
  };
  const place = (p: Place, sticks: boolean): Place => {
    if (before(p, replaced.start) || (sticks && same(p, replaced.start))) return p;
    if (before(p, replaced.end)) return sticks ? replaced.start : end;
    if (p.line > replaced.end.line) return { line: p.line + end.line - replaced.end.line, character: p.character };
    return { line: end.line, character: p.character - replaced.end.character + end.character };
  };
  // What is written right at an empty span, or at the beginning of one, pushes it on when it ends a line.
  const pushed = same(replaced.start, replaced.end) && same(span.start, replaced.start) && lines.length > 1;
  const start = place(span.start, !pushed);
  const stop = place(span.end, false);
  return before(stop, start) ? { start, end: start } : { start, end: stop };
}

function before(a: Place, b: Place): boolean {
  return a.line < b.line || (a.line === b.line && a.character < b.character);
}

function same(a: Place, b: Place): boolean {
  return a.line === b.line && a.character === b.character;
}
