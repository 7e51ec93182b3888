import type { Outcome, Share, Stats, ToolState } from "./protocol";
import type { Localise } from "./words";

// The page with the metrics, as HTML without a script: it needs none, and so may run none. Beside each figure stands what
// was counted.

/** The page. nonce lets its one style sheet apply. */
export function page(s: Stats, nonce: string, l: Localise): string {
  const sections = [
    section(l("After a stop"), [
      row(l("Followed by a message within a minute"), share(s.redirectRate, s, l), s.definitions["redirectRate"]),
      row(l("Of those, redirects"), share(s.followUps.redirects, s, l), s.definitions["followUps"]),
      row(l("New topics"), String(s.followUps.newTopics), s.definitions["followUps"]),
    ]),
    section(l("Who came back within 7 days"), [
      row(l("Stopped and left"), share(s.returns.stopAndLeft, s, l), s.definitions["returns"]),
      row(l("Stopped and went on"), share(s.returns.stopAndWentOn, s, l), s.definitions["returns"]),
      row(l("Never stopped"), share(s.returns.neverStopped, s, l), s.definitions["returns"]),
    ]),
    section(l("How long a stop takes"), [
      row(l("Median"), few(s.stopLatency.n, s, l) ?? l("{0} ms", s.stopLatency.medianMs), s.definitions["stopLatency"]),
      row(l("95 of 100 within"), few(s.stopLatency.n, s, l) ?? l("{0} ms", s.stopLatency.p95Ms), s.definitions["stopLatency"]),
      row(l("Longest"), s.stopLatency.n === 0 ? "–" : l("{0} ms", s.stopLatency.maxMs), s.definitions["stopLatency"]),
      ...buckets(s, l),
    ]),
    section(l("What stops kept"), [
      row(l("Answers"), String(s.kept.answers), s.definitions["kept"]),
      row(l("Bytes"), String(s.kept.bytes), s.definitions["kept"]),
      row(l("Before anything was said"), String(s.kept.silent), s.definitions["kept"]),
    ]),
    section(l("Turns"), Object.entries(s.outcomes).map(([name, n]) => row(ended(name, l), bar(n, s.turns), s.definitions["outcomes"]))),
    section(l("Tool calls"), s.tools.map((t) => row(t.name || l("(others)"), `${t.calls}: ${Object.entries(t.states).map(([state, n]) => `${ended(state, l)} ${n}`).join(", ")}`, s.definitions["tools"], false))),
    section(l("Tokens"), [
      row(l("In"), String(s.tokens.input), s.definitions["tokens"]),
      row(l("Of those from a cache"), bar(s.tokens.cached, s.tokens.input), s.definitions["tokens"]),
      row(l("Out"), String(s.tokens.output), s.definitions["tokens"]),
      row(l("In, were there no caches"), String(s.tokens.triangle), s.definitions["triangle"]),
    ]),
  ];
  return `<!DOCTYPE html>
<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'">
<title>${escape(l("Fermata: Stats"))}</title>
<style nonce="${nonce}">
body { font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); color: var(--vscode-foreground); max-width: 60em; padding: 0 1.5em 2em; line-height: 1.5; }
h1 { font-weight: 400; } h2 { font-size: 1.15em; font-weight: 600; margin: 1.6em 0 .3em; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .3em .8em .3em 0; border-bottom: 1px solid var(--vscode-widget-border, transparent); font-weight: 400; }
th { width: 38%; } meter { width: 12em; vertical-align: middle; }
summary { cursor: pointer; } summary:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
details p { margin: .2em 0 .2em 1em; } .quiet, details p { color: var(--vscode-descriptionForeground); }
</style></head>
<body><main>
<h1>${escape(l("What stopping comes to"))}</h1>
<p class="quiet">${escape(s.workspace === "" ? l("All workspaces") : s.workspace)} · ${escape(l("Sessions: {0}, turns: {1}", s.sessions, s.turns))}. ${escape(l("Computed on this machine from the transcript; nothing is sent anywhere."))}</p>
${sections.join("\n")}
</main></body></html>`;
}

function section(title: string, rows: string[]): string {
  return rows.length === 0 ? "" : `<section><h2>${escape(title)}</h2><table>${rows.join("")}</table></section>`;
}

function row(name: string, value: string, definition: string | undefined, html = true): string {
  const what = definition === undefined ? escape(name) : `<details><summary>${escape(name)}</summary><p>${escape(definition)}</p></details>`;
  return `<tr><th scope="row">${what}</th><td>${html ? value : escape(value)}</td></tr>`;
}

/** How a turn or a call ended, in words; by its name where a newer daemon knows another way. */
function ended(name: string, l: Localise): string {
  switch (name as Outcome | ToolState) {
    case "completed":
      return l("completed");
    case "stopped":
      return l("stopped");
    case "failed":
      return l("failed");
    case "abandoned":
      return l("abandoned");
    case "done":
      return l("done");
    case "not_started":
      return l("not started");
    case "unknown":
      return l("unknown");
    default:
      return name;
  }
}

function share(x: Share, s: Stats, l: Localise): string {
  return few(x.of, s, l) ?? bar(x.part, x.of);
}

/** Of too few cases a share tells nothing. */
function few(n: number, s: Stats, l: Localise): string | undefined {
  return n < s.minCases ? `<span class="quiet">${escape(l("too few to tell: {0} of at least {1}", n, s.minCases))}</span>` : undefined;
}

function bar(part: number, of: number): string {
  if (of === 0) return "–";
  const percent = Math.round((1000 * part) / of) / 10;
  return `<meter min="0" max="${of}" value="${part}" aria-hidden="true"></meter> ${percent} % (${part} / ${of})`;
}

function buckets(s: Stats, l: Localise): string[] {
  return s.stopLatency.buckets.filter((b) => b.n > 0).map((b) => row(b.upToMs === undefined || b.upToMs === 0 ? l("longer") : l("up to {0} ms", b.upToMs), bar(b.n, s.stopLatency.n), undefined));
}

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
