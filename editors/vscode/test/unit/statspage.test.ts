import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stats } from "../../src/protocol";
import { page } from "../../src/statspage";

const stats: Stats = {
  workspace: "/home/<me>", at: "", sessions: 3, turns: 40, outcomes: { completed: 30, stopped: 10 }, damaged: 0,
  redirectRate: { part: 15, of: 20, undecided: 0, others: 0 }, followUps: { redirects: { part: 3, of: 4 }, linked: 3, quoting: 0, goingOn: 0, newTopics: 1 },
  returns: { stopAndLeft: { part: 0, of: 0 }, stopAndWentOn: { part: 0, of: 0 }, neverStopped: { part: 0, of: 0 }, young: 0 },
  stopLatency: { n: 10, medianMs: 1, p95Ms: 5, maxMs: 9, buckets: [{ upToMs: 10, n: 10 }] }, kept: { answers: 9, bytes: 4000, medianBytes: 400, silent: 1 },
  tools: [{ name: "run<script>", calls: 2, states: { done: 2 }, late: 0 }], tokens: { requests: 40, counted: 40, input: 1000, cached: 900, output: 50, reasoning: 0, triangle: 9000 },
  minCases: 20, definitions: { redirectRate: "Of the turns that the user stopped, the share …" },
};
const english = (m: string, ...a: (string | number)[]): string => m.replace(/\{(\d)\}/g, (_, i: string) => String(a[Number(i)]));

// guards X1, X2
test("shares of too few cases are said to be that, and definitions stand beside the figures", () => {
  const html = page(stats, "n", english);
  assert.match(html, /75 % \(15 \/ 20\)/);
  assert.match(html, /too few to tell: 4 of at least 20/);
  assert.match(html, /Of the turns that the user stopped, the share …/);
});

test("the page runs no script, fetches nothing and shows names as text", () => {
  const html = page(stats, "n0nce", english);
  assert.match(html, /content="default-src 'none'; style-src 'nonce-n0nce'"/);
  assert.ok(!/<script|<run|<me>|https?:| on\w+=| style=/.test(html));
});

test("how turns and calls ended is said in the user's language", () => {
  const html = page({ ...stats, tools: [{ name: "run", calls: 3, states: { done: 2, not_started: 1 }, late: 0 }] }, "n", (m, ...a) => `«${english(m, ...a)}»`);
  for (const word of ["completed", "stopped", "done", "not started"]) assert.ok(html.includes(`«${word}»`), word);
});
