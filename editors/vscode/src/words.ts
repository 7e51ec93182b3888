import { code, dim, escape, harmless, tail } from "./markdown";
import { live, type Message, type Step, type Tool, type Turn } from "./turns";

// What the inline conversation says of a turn, as markdown. Pure: the localiser is given.

export type Localise = (message: string, ...args: (string | number)[]) => string;

/** One comment of the thread. */
export interface Said {
  author: "you" | "fermata";
  label?: string;
  markdown: string;
}

/**
 * Whether a thread's reply box is the redirect lane (D1), or else asks for the next question. While the turn runs none is shown:
 * then it is the lane already, so that a stop finds all in place.
 */
export function lane(t: Turn): boolean {
  return t.phase !== "completed";
}

/** The state of the thread: what of its menus and its reply box there is. */
export type Control = "running" | "stopping" | "stopped" | "completed" | "failed" | "abandoned" | "kept" | "superseded";

/** The comments of a turn: what was asked, what came of it, and what waits behind it. */
export function comments(t: Turn, l: Localise): Said[] {
  const asked: Said = { author: "you", markdown: question(t) };
  if (t.redirects !== undefined) asked.label = l("Redirect");
  if (t.retries !== undefined) asked.label = l("Retry");
  if (t.queued === true) asked.label = l("Queued");
  const answer: Said = { author: "fermata", markdown: answerMarkdown(t, l) };
  const text = label(t, l);
  if (text !== "") answer.label = text;
  const waiting = t.messages.filter((m) => m.state !== "started"); // those that have are the next turn
  return [asked, answer, ...waiting.map((m): Said => ({ author: "you", label: messageLabel(m, l), markdown: escape(m.text) }))];
}

/** What became of a message that was sent while the turn ran (S10). */
function messageLabel(m: Message, l: Localise): string {
  switch (m.state) {
    case "queued":
      return l("Queued");
    case "delivered":
      return l("Delivered");
    case "started":
      return l("Queued");
    case "returned":
      return l("Handed back, not sent");
  }
}

function question(t: Turn): string {
  return t.prompt
    .map((p) => (p.type === "text" ? escape(p.text) : code(`${p.path ?? "?"}${p.start !== undefined ? `:${p.start}–${p.end ?? p.start}` : ""}`)))
    .join("\n\n");
}

/** The label beside the answer's author. */
export function label(t: Turn, l: Localise): string {
  if (t.adopted === true) return l("Kept: in the model input");
  switch (t.phase) {
    case "running":
      return t.retracted !== undefined ? l("trying again…") : t.steps.at(-1)?.thinking === true ? l("thinking…") : "";
    case "stopping":
      return l("stopping…");
    case "stopped":
      return l("Stopped here");
    case "failed":
      return t.withheld !== undefined ? l("Withheld by a check") : l("Broke off");
    case "abandoned":
      return l("Cut off: the daemon ended");
    case "completed":
      return "";
  }
}

export function control(t: Turn): Control {
  if (t.redirectedBy !== undefined) return "superseded";
  if (t.adopted === true) return "kept";
  return t.phase;
}

/**
 * How much of an answer is shown while it streams. VS Code draws all of a comment anew with each update, shows the first 14
 * lines or so of it, and is at its beginning again: what is being said would neither be seen nor be cheap.
 */
const window = { characters: 900, lines: 10 };

function answerMarkdown(t: Turn, l: Localise): string {
  if (live(t)) return streaming(t, l);
  const parts: string[] = [];
  const last = lastSpoken(t);
  const dims = t.phase === "stopped" || t.phase === "abandoned" || t.phase === "failed";
  for (const s of t.steps) {
    for (const a of s.attempts) parts.push(...attempt(a, l));
    if (s.text.trim() !== "") parts.push(dims && s === last ? dim(s.text) : harmless(s.text));
    if (s.tools.length > 0) parts.push(toolLine(s.tools, l));
  }
  const end = ending(t, l);
  if (parts.length === 0 && end === "") return `*${l("Nothing was said.")}*`;
  // Below an answer that fills its comment, what became of it would have to be scrolled to.
  const long = parts.join("\n\n").replace(/<[^>]*>/g, "").length > window.characters;
  return (end === "" ? parts : long ? [end, ...parts] : [...parts, end]).join("\n\n");
}

function attempt(a: Step["attempts"][number], l: Localise): string[] {
  return [`*${l("Attempt, not in the model input: {0}", escape(a.why.replaceAll("_", " ")))}*`, dim(a.text)];
}

/** The end of what is said so far. */
function streaming(t: Turn, l: Localise): string {
  const parts: string[] = [];
  let left = window.characters;
  let before = 0;
  const add = (part: string, length: number): void => {
    if (part !== "") parts.unshift(part);
    left -= length;
  };
  for (const s of t.steps.toReversed()) {
    if (s.tools.length > 0 && left > 0) add(toolLine(s.tools, l), s.tools.length * 40);
    if (s.text.trim() !== "") {
      const shown = left > 0 ? tail(s.text, left, window.lines) : { text: "", before: words(s.text) };
      before += shown.before;
      add(harmless(shown.text), s.text.length);
    }
    for (const a of s.attempts.toReversed()) {
      if (left > 0) add(attempt({ why: a.why, text: tail(a.text, left, window.lines).text }, l).join("\n\n"), a.text.length);
    }
  }
  if (before > 0) parts.unshift(`*${l("… {0} words before this; all of it when it ends, and in the transcript", before)}*`);
  return parts.length === 0 ? "…" : parts.join("\n\n");
}

function words(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

function lastSpoken(t: Turn): Step | undefined {
  return t.steps.findLast((s) => s.text.trim() !== "");
}

/** One line on what became of tools. */
export function toolLine(tools: Tool[], l: Localise): string {
  return tools.map((x) => `${sign(x)} ${code(x.summary)}${fate(x, l)}`).join(" · ");
}

function sign(x: Tool): string {
  switch (x.state) {
    case "running":
      return "…";
    case "done":
      return "✓";
    case "failed":
      return "✗";
    case "stopped":
      return "■";
    case "not_started":
      return "∅";
    case "unknown":
      return "?";
  }
}

function fate(x: Tool, l: Localise): string {
  switch (x.state) {
    case "running":
    case "done":
      return "";
    case "failed":
      return " " + l("failed");
    case "stopped":
      return " " + l("stopped, its output so far is kept");
    case "not_started":
      return " " + (x.cause === "permission_denied" ? l("not allowed") : l("not run"));
    case "unknown":
      return " " + l("result unknown");
  }
}

/** The last line: what was kept, or why it ended. */
export function ending(t: Turn, l: Localise): string {
  const abandoned = `*${l("The daemon ended. What was said is in the transcript.")}*`;
  const e = t.ended;
  if (e === undefined) return t.phase === "abandoned" ? abandoned : "";
  switch (e.outcome) {
    case "stopped":
      return `*${stopped(t, l)}*`;
    case "failed":
      if (t.withheld !== undefined) {
        const why = t.verdicts.filter((v) => v.verdict !== "pass").map((v) => `${escape(v.check)}: ${escape(v.reason ?? v.verdict)}`);
        return `*${[l("Kept for you and from the model."), ...why].join(" ")}*`;
      }
      return `*${escape(e.error ?? l("It failed."))}*`;
    case "abandoned":
      return abandoned;
    case "completed":
      return "";
  }
}

function stopped(t: Turn, l: Localise): string {
  const e = t.ended;
  const by = e?.cause === "client_gone" ? l("The window was closed.") : e?.cause === "shutdown" ? l("The daemon was told to end.") : "";
  const what = e?.silent === true ? l("Stopped before anything was said.") : e?.kept ? l("{0} words kept: the model will see exactly this.", e.kept.words) : l("Stopped.");
  return by === "" ? what : `${by} ${what}`;
}
