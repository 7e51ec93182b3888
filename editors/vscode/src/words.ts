import type { Step, Tool, Turn } from "./turns";

// What the inline conversation says of a turn, as markdown. Pure: the localiser is given.

export type Localise = (message: string, ...args: (string | number)[]) => string;

/** One comment of the thread. */
export interface Said {
  author: "you" | "fermata";
  label?: string;
  markdown: string;
}

/** The state of the thread: what of its menus and its reply box there is. */
export type Control = "running" | "stopping" | "stopped" | "completed" | "failed" | "abandoned" | "superseded";

const dimmed = '<span style="color:var(--vscode-disabledForeground);">';

/** The comments of a turn: what was asked, and what came of it. */
export function comments(t: Turn, l: Localise): Said[] {
  const asked: Said = { author: "you", markdown: escape(question(t)) };
  if (t.redirects !== undefined) asked.label = l("Redirect");
  if (t.retries !== undefined) asked.label = l("Retry");
  const answer: Said = { author: "fermata", markdown: answerMarkdown(t, l) };
  const text = label(t, l);
  if (text !== "") answer.label = text;
  return [asked, answer];
}

function question(t: Turn): string {
  return t.prompt
    .map((p) => (p.type === "text" ? p.text : `${p.path ?? "?"}${p.start ? `:${p.start}–${p.end ?? p.start}` : ""}`))
    .join("\n\n");
}

/** The label beside the answer's author. */
export function label(t: Turn, l: Localise): string {
  switch (t.phase) {
    case "running":
      return t.retracted !== undefined ? l("trying again…") : t.steps.at(-1)?.thinking ? l("thinking…") : "";
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
  return t.phase;
}

function answerMarkdown(t: Turn, l: Localise): string {
  const parts: string[] = [];
  const dim = t.phase === "stopped" || t.phase === "abandoned" || t.phase === "failed";
  for (const s of t.steps) {
    for (const a of s.attempts) parts.push(`*${l("Attempt, not in the model input: {0}", escape(a.why))}*`, paragraphs(a.text, true));
    if (s.text.trim() !== "") parts.push(paragraphs(s.text, dim && s === lastSpoken(t)));
    if (s.tools.length > 0) parts.push(toolLine(s.tools, l));
  }
  if (parts.length === 0) parts.push(t.phase === "running" ? "…" : `*${l("Nothing was said.")}*`);
  const end = ending(t, l);
  if (end !== "") parts.push(end);
  return parts.join("\n\n");
}

function lastSpoken(t: Turn): Step | undefined {
  return t.steps.findLast((s) => s.text.trim() !== "");
}

/** One line on what became of tools. */
export function toolLine(tools: Tool[], l: Localise): string {
  return tools.map((x) => `$(${icon(x)}) ${code(x.summary)}${fate(x, l)}`).join(" · ");
}

function icon(x: Tool): string {
  switch (x.state) {
    case "running":
      return "sync";
    case "done":
      return "check";
    case "failed":
      return "error";
    case "stopped":
      return "debug-stop";
    case "not_started":
      return "circle-slash";
    case "unknown":
      return "question";
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
  const e = t.ended;
  if (e === undefined) return t.phase === "abandoned" ? `*${l("The daemon ended. What was said is in the transcript.")}*` : "";
  switch (e.outcome) {
    case "stopped":
      if (e.silent === true) return `*${l("Stopped before anything was said.")}*`;
      return e.kept ? `*${l("{0} words kept: the model will see exactly this.", e.kept.words)}*` : "";
    case "failed":
      if (t.withheld !== undefined) {
        const why = t.verdicts.filter((v) => v.verdict !== "pass").map((v) => `${escape(v.check)}: ${escape(v.reason ?? v.verdict)}`);
        return `*${[l("Kept for you and from the model."), ...why].join(" ")}*`;
      }
      return `*${escape(e.error ?? l("It failed."))}*`;
    case "abandoned":
      return `*${l("The daemon ended. What was said is in the transcript.")}*`;
    case "completed":
      return "";
  }
}

/** Model text, dimmed or not. Code blocks stay as they are: a span around them would break them. */
function paragraphs(text: string, dim: boolean): string {
  if (!dim) return text;
  let fence = "";
  const blocks: string[] = [];
  let block: string[] = [];
  const flush = (asIs: boolean): void => {
    if (block.length > 0) blocks.push(asIs || !/^[^#>|\-*+\d\s]/.test(block[0] ?? "") ? block.join("\n") : `${dimmed}${block.join("\n")}</span>`);
    block = [];
  };
  for (const line of text.split("\n")) {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence !== "") {
      block.push(line);
      if (mark?.startsWith(fence)) {
        fence = "";
        flush(true);
      }
    } else if (mark !== undefined) {
      flush(false);
      fence = mark;
      block.push(line);
    } else if (line.trim() === "") {
      flush(false);
    } else block.push(line);
  }
  flush(fence !== "");
  return blocks.join("\n\n");
}

/** Text that is no markdown. */
export function escape(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~$&]/g, "\\$&");
}

function code(text: string): string {
  const ticks = "`".repeat(Math.max(0, ...[...text.matchAll(/`+/g)].map((m) => m[0].length)) + 1);
  const pad = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return ticks + pad + text.replace(/\s+/g, " ") + pad + ticks;
}
