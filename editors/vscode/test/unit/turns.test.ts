import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Entry, Event } from "../../src/protocol";
import { keepable, saying, Turns, type Turn } from "../../src/turns";
import { comments, control, label, lane } from "../../src/words";

const session = "s_1";
let seq = 0; // of the last entry that was made
beforeEach(() => {
  seq = 0;
});
const entry = (kind: string, body: object): Event => ({ session, seq: ++seq, kind, at: "", entry: body });
const delta = (turn: string, offset: number, text: string, part: "text" | "reasoning" = "text"): Event => ({ session, kind: "delta", turn, step: 1, part, offset, text });
const anchor = { uri: "file:///a.go", start_line: 4, start_char: 0, end_line: 4, end_char: 0 };
const started = (turn: string, more: object = {}): Event => entry("turn.started", { turn, prompt: [{ type: "text", text: `ask ${turn}` }], ...more });
const english = (m: string, ...a: (string | number)[]): string => m.replace(/\{(\d)\}/g, (_, i: string) => String(a[Number(i)]));

function folded(...events: Event[]): Turns {
  const turns = new Turns();
  for (const e of events) turns.event(e);
  return turns;
}

function get(turns: Turns, id: string): Turn {
  const t = turns.get(id);
  assert.ok(t !== undefined, id);
  return t;
}

const answerOf = (t: Turn): string => comments(t, english)[1]?.markdown ?? "";

// guards S4, D1
test("a stopped answer is shown dimmed, as it was said, with what was kept", () => {
  const t = get(folded(
    started("t1"), delta("t1", 0, "mm", "reasoning"), delta("t1", 0, "One "), delta("t1", 4, "twö "),
    entry("answer", { turn: "t1", step: 1, request: "r1", state: "stopped", parts: [{ type: "reasoning", text: "mm" }, { type: "text", text: "One twö " }] }),
    entry("turn.ended", { turn: "t1", outcome: "stopped", cause: "user", kept: { bytes: 11, words: 2, sha256: "" } }),
  ), "t1");
  assert.equal(label(t, english), "Stopped here");
  assert.equal(answerOf(t), '<span style="color:var(--vscode-disabledForeground);">One twö</span> \n\n*2 words kept: the model will see exactly this.*');
});

const words = (n: number): string => Array.from({ length: n }, (_, i) => `w${String(i + 1)}`).join(" ");

// guards P4
test("a long answer shows its end while it streams, and all of it when it ends", () => {
  const turns = folded(started("t1"), delta("t1", 0, words(1000)));
  const streaming = answerOf(get(turns, "t1"));
  assert.match(streaming, /^\*… \d+ words before this; [^]*w1000$/);
  assert.ok(streaming.length < 1100);
  turns.event(entry("turn.ended", { turn: "t1", outcome: "completed" }));
  assert.equal(answerOf(get(turns, "t1")), words(1000));
});

test("what became of a long answer stands above it, where it is seen", () => {
  const t = get(folded(
    started("t1"), delta("t1", 0, words(1000)),
    entry("turn.ended", { turn: "t1", outcome: "stopped", cause: "user", kept: { bytes: 4893, words: 1000, sha256: "" } }),
  ), "t1");
  assert.match(answerOf(t), /^\*1000 words kept: the model will see exactly this\.\*\n\n<span/);
});

test("the tools of a turn with many steps leave room for what is being said", () => {
  const tool = (_: unknown, i: number): Event => entry("tool.started", { turn: "t1", step: i + 1, call: `c${String(i)}`, name: "run", summary: `run ${String(i)}` });
  const turns = folded(started("t1"), ...Array.from({ length: 30 }, tool), { session, kind: "delta", turn: "t1", step: 31, part: "text", offset: 0, text: words(40) });
  const shown = answerOf(get(turns, "t1"));
  assert.ok(shown.endsWith("w40") && shown.includes("run 29") && !shown.includes("run 1`"), shown);
});

test("the reply box is the lane, also while the turn runs, and asks for the next question after a complete answer", () => {
  const turns = folded(started("t1"));
  const t = get(turns, "t1");
  assert.equal(lane(t), true);
  turns.event(entry("turn.ended", { turn: "t1", outcome: "stopped", cause: "user" }));
  assert.equal(lane(t), true);
  turns.event(started("t2"));
  turns.event(entry("turn.ended", { turn: "t2", outcome: "completed" }));
  assert.equal(lane(get(turns, "t2")), false);
});

// guards F2
test("text of a try that failed is taken back before the next one speaks", () => {
  const turns = folded(started("t1"), delta("t1", 0, "Wrong "), { session, kind: "retracted", turn: "t1", step: 1, try: 1, why: "503" });
  assert.equal(label(get(turns, "t1"), english), "trying again…");
  turns.event(delta("t1", 0, "Right"));
  assert.equal(answerOf(get(turns, "t1")), "Right");
});

test("text that was missed is never shown out of order", () => {
  const turns = folded(started("t1"), delta("t1", 0, "One "), delta("t1", 8, "three "));
  assert.equal(answerOf(get(turns, "t1")), "One ");
});

// guards F1, F3, F4
test("an answer that broke off is an attempt until it is kept", () => {
  const turns = folded(
    started("t1"), delta("t1", 0, "Half"),
    entry("answer", { turn: "t1", step: 1, request: "r1", state: "broken", cause: "truncated", parts: [{ type: "text", text: "Half" }] }),
    entry("turn.ended", { turn: "t1", outcome: "failed", error: "the stream ended early" }),
  );
  const t = get(turns, "t1");
  assert.match(answerOf(t), /^\*Attempt, not in the model input: truncated\*/);
  turns.event(entry("admission", { turn: "t1", step: 1, answer: 2, admitted: true, by: "user" }));
  assert.equal(t.steps[0]?.text, "Half");
  assert.equal(t.steps[0].attempts.length, 0);
  assert.equal(label(t, english), "Kept: in the model input");
});

// guards D2, D5
test("a redirect stands in the thread of what it redirects, to any depth", () => {
  const turns = folded(
    started("t1", { anchor }), entry("turn.ended", { turn: "t1", outcome: "stopped", cause: "user" }),
    started("t2", { anchor, redirects: "t1" }), entry("turn.ended", { turn: "t2", outcome: "stopped", cause: "user" }),
    started("t3", { anchor, redirects: "t2" }),
  );
  assert.deepEqual(turns.chain(turns.root(get(turns, "t3"))).map((t) => t.turn), ["t1", "t2", "t3"]);
  assert.equal(control(get(turns, "t1")), "superseded");
});

test("what is asked in the reply box after an answer stands in the same thread, and what is asked at the same line does not", () => {
  const turns = new Turns();
  turns.join("c9", "t1");
  for (const e of [started("t1", { anchor }), entry("turn.ended", { turn: "t1", outcome: "completed" }), started("t2", { anchor, client_id: "c9" }), started("t3", { anchor })]) turns.event(e);
  assert.equal(turns.root(get(turns, "t2")).turn, "t1");
  assert.equal(turns.root(get(turns, "t3")).turn, "t3");
});

// guards S10
test("a message that waits says whether it was delivered or handed back", () => {
  const turns = folded(started("t1"), entry("message.queued", { message: "m1", prompt: [{ type: "text", text: "also *this*" }] }), entry("message.queued", { message: "m2", prompt: [{ type: "text", text: "and that" }] }));
  const said = (): (string | undefined)[] => comments(get(turns, "t1"), english).slice(2).map((c) => `${c.label ?? ""}: ${c.markdown}`);
  assert.deepEqual(said(), ["Queued: also \\*this\\*", "Queued: and that"]);
  turns.event(entry("message.delivered", { message: "m1", turn: "t1", step: 2, prompt: [] }));
  turns.event(entry("message.returned", { message: "m2", cause: "stopped_by_user" }));
  assert.deepEqual(said(), ["Delivered: also \\*this\\*", "Handed back, not sent: and that"]);
});

// guards S7, S8
test("the tools' fates stand in one line", () => {
  const tool = (call: string, state: string, cause?: string): Event => entry("tool.settled", { turn: "t1", step: 1, call, name: call, state, cause, output: "" });
  const t = get(folded(
    started("t1"), entry("tool.started", { turn: "t1", step: 1, call: "c1", name: "read_file", summary: "read_file `a`" }),
    tool("c1", "done"), tool("c2", "stopped"), tool("c3", "not_started", "permission_denied"), tool("c4", "not_started", "stopped_by_user"), tool("c5", "unknown"), tool("c6", "failed"),
  ), "t1");
  assert.equal(answerOf(t), "✓ `` read_file `a` `` · ■ `c2` stopped, its output so far is kept · ∅ `c3` not allowed · ∅ `c4` not run · ? `c5` result unknown · ✗ `c6` failed");
});

// guards K1, K2
// guards F4
test("only an answer that broke off with words can be kept", () => {
  const broke = (text: string): Event => entry("answer", { turn: "t1", step: 1, request: "r1", state: "broken", cause: "truncated", parts: [{ type: "text", text }] });
  const cases: [string, boolean, () => Event[]][] = [
    ["with words", true, () => [broke("Half an ans")]],
    ["with white space", false, () => [broke(" \n")]],
    ["before any", false, () => []],
    ["withheld", false, () => [
      entry("answer", { turn: "t1", step: 1, request: "r1", state: "complete", parts: [{ type: "text", text: "All" }] }),
      entry("admission", { turn: "t1", step: 1, answer: 2, admitted: false, by: "checks", withheld: "rejected" }),
    ]],
  ];
  for (const [name, can, events] of cases) {
    seq = 0;
    const t = get(folded(started("t1"), ...events(), entry("turn.ended", { turn: "t1", outcome: "failed", cause: "x" })), "t1");
    assert.equal(keepable(t), can, name);
  }
});

test("a withheld answer says by which check", () => {
  const t = get(folded(
    started("t1"),
    entry("answer", { turn: "t1", step: 1, request: "r1", state: "complete", parts: [{ type: "text", text: "Key" }] }),
    entry("verdict", { turn: "t1", step: 1, answer: 2, check: "keys", verdict: "reject", reason: "an AWS key" }),
    entry("admission", { turn: "t1", step: 1, answer: 2, admitted: false, by: "checks", withheld: "rejected" }),
    entry("turn.ended", { turn: "t1", outcome: "failed", cause: "rejected", error: "withheld" }),
  ), "t1");
  assert.equal(label(t, english), "Withheld by a check");
  assert.match(answerOf(t), /keys: an AWS key/);
});

// guards C1
test("a turn whose daemon went away is cut off with its text, until the next daemon tells how it ended", () => {
  const turns = folded(started("t1"), delta("t1", 0, "So far "));
  turns.lost();
  assert.equal(label(get(turns, "t1"), english), "Cut off: the daemon ended");
  assert.match(answerOf(get(turns, "t1")), /So far/);
  turns.event(entry("answer", { turn: "t1", step: 1, request: "r1", state: "broken", cause: "daemon_died", parts: [{ type: "text", text: "So far " }] }));
  turns.event(entry("turn.ended", { turn: "t1", outcome: "abandoned" }));
  assert.match(answerOf(get(turns, "t1")), /So far/);
});

test("what is read again is told once, as it stands at the end", () => {
  const turns = new Turns();
  const told: string[] = [];
  turns.onChange((t) => told.push(`${t.turn} ${t.phase}`));
  turns.read(session, [started("t1"), entry("turn.ended", { turn: "t1", outcome: "completed" }), started("t2")] as Entry[]);
  assert.deepEqual(told, ["t1 completed", "t2 running"]);
});

test("entries that come twice count once", () => {
  const turns = folded(started("t1"));
  const end: Event = { session, seq: 2, kind: "turn.ended", at: "", entry: { turn: "t1", outcome: "completed" } };
  turns.event(end);
  turns.event(started("t1"));
  assert.equal(get(turns, "t1").phase, "completed");
  assert.equal(turns.all().length, 1);
});

test("what is being said is that until the log has it as an answer, and no longer", () => {
  const turns = folded(started("t1"), delta("t1", 0, "One "), delta("t1", 4, "two"));
  assert.equal(saying(turns.running(session)), "One two");
  turns.event(entry("answer", { turn: "t1", step: 1, request: "r1", state: "complete", parts: [{ type: "text", text: "One two" }] }));
  assert.equal(saying(turns.running(session)), "");
  turns.event({ ...delta("t1", 0, "Three"), step: 2 } as Event);
  assert.equal(saying(turns.running(session)), "Three");
  turns.event(entry("turn.ended", { turn: "t1", outcome: "completed" }));
  assert.equal(saying(turns.running(session)), "");
});
