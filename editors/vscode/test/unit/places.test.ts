import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, type Span } from "../../src/places";

const span = (a: number, b: number, c: number, d: number): Span => ({ start: { line: a, character: b }, end: { line: c, character: d } });

const cases: [name: string, at: Span, replaced: Span, text: string, want: Span][] = [
  ["lines above push it down", span(4, 0, 4, 4), span(0, 0, 0, 0), "a\nb\n", span(6, 0, 6, 4)],
  ["lines deleted above pull it up", span(4, 0, 4, 4), span(0, 0, 2, 0), "", span(2, 0, 2, 4)],
  ["what is below leaves it", span(4, 0, 4, 4), span(5, 0, 7, 2), "x", span(4, 0, 4, 4)],
  ["text before it in its line moves it along", span(4, 3, 4, 5), span(4, 0, 4, 1), "abc", span(4, 5, 4, 7)],
  ["text in it grows it", span(4, 0, 6, 0), span(5, 0, 5, 0), "one\ntwo\n", span(4, 0, 8, 0)],
  ["deleted around it, it stands where that was", span(4, 2, 4, 5), span(3, 1, 6, 0), "", span(3, 1, 3, 1)],
  ["a newline at its place pushes it on", span(4, 0, 4, 0), span(4, 0, 4, 0), "new\n", span(5, 0, 5, 0)],
  ["a line split before it", span(4, 6, 4, 9), span(4, 2, 4, 2), "\n", span(5, 4, 5, 7)],
  ["a document replaced", span(4, 2, 5, 5), span(0, 0, 9, 0), "all\nnew", span(0, 0, 1, 3)],
];

for (const [name, at, replaced, text, want] of cases) {
  test(`an edit moves a place: ${name}`, () => assert.deepEqual(moved(at, replaced, text), want));
}
