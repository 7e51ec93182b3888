import { code, dim, escape, harmless } from "./markdown";
import type { Message, Step, Tool, Turn } from "./turns";

// What the inline conversation says of a turn, as markdown. Pure: the localiser is given.

export type Localise = (message: string, ...args: (string | number)[]) => string;

/** One comment of the thread. */
export interface Said {
  author: "you" | "fermata";
  label?: string;
  markdown: string;
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

function answerMarkdown(t: Turn, l: Localise): string {
  const parts: string[] = [];
  const last = lastSpoken(t);
  const dims = t.phase === "stopped" || t.phase === "abandoned" || t.phase === "failed";
  for (const s of t.steps) {
    for (const a of s.attempts) parts.push(`*${l("Attempt, not in the model input: {0}", escape(a.why.replaceAll("_", " ")))}*`, dim(a.text));
    if (s.text.trim() !== "") parts.push(dims && s === last ? dim(s.text) : harmless(s.text));
    if (s.tools.length > 0) parts.push(toolLine(s.tools, l));
  }
  const end = ending(t, l);
  if (end !== "") parts.push(end);
  if (parts.length === 0) parts.push(t.phase === "running" || t.phase === "stopping" ? "…" : `*${l("Nothing was said.")}*`);
  return parts.join("\n\n");
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
