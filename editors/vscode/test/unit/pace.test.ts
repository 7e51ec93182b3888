import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Pace, ofThread, ofTranscript } from "../../src/pace";

// A comment thread of VS Code: what is set of it is sent once nothing was set for 100 ms, and the window takes some time for it.
function thread(takes: number) {
  const drawn: { at: number; text: string }[] = [];
  const shown: string[] = [];
  let said = "";
  let sending: NodeJS.Timeout | undefined;
  let busyUntil = 0;
  const pace = new Pace(
    () => {
      const text = said;
      drawn.push({ at: Date.now(), text });
      clearTimeout(sending);
      sending = setTimeout(() => {
        busyUntil = Date.now() + takes;
        shown.push(text);
      }, 100);
    },
    () => new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, busyUntil - Date.now()))),
    ofThread,
  );
  return { pace, drawn, shown, say: (text: string) => (said = text) };
}

/** Lets a while pass, and what is promised in it happen. */
async function pass(millis: number): Promise<void> {
  for (let i = 0; i < millis; i++) {
    mock.timers.tick(1);
    for (let j = 0; j < 3; j++) await Promise.resolve();
  }
}

async function timed(play: () => Promise<void>): Promise<void> {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  try {
    await play();
  } finally {
    mock.timers.reset();
  }
}

test("4,000 words in two seconds are at most 20 updates a second, and the last one holds them all", () => timed(async () => {
  const t = thread(5);
  let text = "";
  for (let i = 1; i <= 4000; i++) {
    text += `w${String(i)} `;
    t.say(text);
    t.pace.soon();
    if (i % 2 === 0) await pass(1);
  }
  await pass(1000);
  assert.equal(t.shown.at(-1), text);
  for (const d of t.drawn) assert.ok(t.drawn.filter((o) => o.at >= d.at && o.at < d.at + 1000).length <= 20);
  assert.ok(t.shown.length >= 12, `an answer is seen to stream: ${String(t.shown.length)} updates were shown`);
}));

test("a window that takes long is given no more than it can take, and as long for other things", () => timed(async () => {
  const t = thread(400);
  for (let i = 0; i < 4600; i++) {
    t.pace.soon();
    await pass(1);
  }
  assert.equal(t.drawn.length, 6, "one each 880 ms: 120 for it to be sent, 380 more until it is taken, 380 for other things");
}));

test("a transcript that takes long to be shown is rendered one at a time, and the window has four times as long for other things", () => timed(async () => {
  for (const [takes, each] of [[5, 405], [1000, 5000]] as const) {
    let shown = Promise.resolve();
    const begun: number[] = [];
    const pace = new Pace(() => {
      begun.push(Date.now());
      shown = new Promise((resolve) => setTimeout(resolve, takes));
    }, () => shown, ofTranscript);
    for (let i = 0; i < 3.5 * each; i++) {
      pace.soon();
      await pass(1);
    }
    pace.dispose();
    for (const [i, at] of begun.slice(1).entries()) assert.ok(Math.abs(at - (begun[i] ?? 0) - each) <= each / 100, `${String(takes)} ms: ${begun.map((b) => b - (begun[0] ?? 0)).join(", ")}`);
    assert.equal(begun.length, 4);
  }
}));

test("what cannot wait is drawn at once, and what waited goes with it", () => timed(async () => {
  const t = thread(5);
  t.say("one");
  t.pace.soon();
  await pass(50);
  t.say("two");
  t.pace.soon();
  t.say("stopping");
  t.pace.now();
  assert.deepEqual(t.drawn.map((d) => d.text), ["one", "stopping"]);
  await pass(2000);
  assert.deepEqual(t.drawn.map((d) => d.text), ["one", "stopping"]);
  assert.deepEqual(t.shown, ["stopping"]);
}));

test("nothing is drawn of what was closed", () => timed(async () => {
  const t = thread(5);
  t.pace.soon();
  t.pace.soon();
  t.pace.dispose();
  await pass(2000);
  t.pace.soon();
  t.pace.now();
  assert.equal(t.drawn.length, 1);
}));
