import type { Admission, Answer, DeltaEvent, Entries, Event, EntryEvent, Entry, MessageState, Outcome, RetractedEvent, ToolSettled, ToolStarted, TurnEnded, TurnStarted, Verdict } from "./protocol";

// The turns of the sessions that the extension follows, folded from the daemon's events. Nothing here knows VS Code, and
// nothing here is the truth: that is the daemon's log, from which the same is folded again after a reload.

export type Phase = "running" | "stopping" | Outcome;

export interface Tool {
  call: string;
  name: string;
  summary: string;
  state: "running" | ToolSettled["state"];
  cause?: string;
}

/** One model request of a turn, and what came of it. */
export interface Step {
  step: number;
  text: string;
  /** How many bytes of UTF-8 text has: the daemon counts in those. */
  bytes: number;
  thinking: boolean;
  state?: Answer["state"];
  /** What was said in tries that failed, or what a check withholds: in no model input. */
  attempts: { text: string; why: string }[];
  answer?: number;
  /** The last request to the model of this step. */
  request?: string;
  tools: Tool[];
}

/** A message that was sent while a turn ran (S10), and what became of it. */
export interface Message {
  message: string;
  text: string;
  state: MessageState;
}

export interface Turn {
  session: string;
  turn: string;
  phase: Phase;
  prompt: TurnStarted["prompt"];
  anchor?: NonNullable<TurnStarted["anchor"]>;
  redirects?: string;
  retries?: string;
  /** The turn before it in the same thread, of a question that was asked there in its reply box. */
  follows?: string;
  /** It was asked by messages that had waited behind the turn before. */
  queued?: true;
  /** The turn that replaces this one's course. */
  redirectedBy?: string;
  steps: Step[];
  changed: string[];
  /** How many changes that were. */
  edits: number;
  messages: Message[];
  ended?: TurnEnded;
  /** Why the last answer is withheld, a line for each check. */
  verdicts: Verdict[];
  withheld?: string;
  retracted?: string;
  /** The user has kept the answer that broke off: the next model input holds it (F4). */
  adopted?: true;
}

export type Listener = (turn: Turn) => void;

export class Turns {
  private readonly turns = new Map<string, Turn>();
  private readonly newest = new Map<string, string>();
  private readonly seen = new Map<string, number>();
  private readonly listeners = new Set<Listener>();
  private reading: Set<Turn> | undefined;
  private readonly joins = new Map<string, string>();

  /** Calls the listener for each turn that has changed, at each event. */
  onChange(listener: Listener): { dispose(): void } {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  }

  get(turn: string): Turn | undefined {
    return this.turns.get(turn);
  }

  all(): Turn[] {
    return [...this.turns.values()];
  }

  /** The newest turn of a session, or of all. */
  last(session?: string): Turn | undefined {
    if (session !== undefined) return this.turns.get(this.newest.get(session) ?? "");
    return this.all().at(-1);
  }

  /** The newest turn that runs. */
  running(session?: string): Turn | undefined {
    return this.all().findLast((t) => live(t) && (session === undefined || t.session === session));
  }

  /** Has the turn that will be started with a client id stand in the thread of a turn. */
  join(clientId: string, turn: string): void {
    this.joins.set(clientId, turn);
  }

  /** The first turn of the chain of redirects, retries and replies that ends with this one: all of it is one thread. */
  root(turn: Turn): Turn {
    for (let t = turn; ; ) {
      const before = this.turns.get(t.redirects ?? t.retries ?? t.follows ?? "");
      if (before === undefined || before === t) return t;
      t = before;
    }
  }

  /** The chain from its first turn, oldest first. */
  chain(root: Turn): Turn[] {
    return this.all().filter((t) => this.root(t) === root);
  }

  /** The number of the last entry seen of a session, to ask for those after it. */
  seq(session: string): number {
    return this.seen.get(session) ?? 0;
  }

  /** Forgets a session that was deleted. */
  forget(session: string): void {
    for (const t of this.all()) if (t.session === session) this.turns.delete(t.turn);
    this.newest.delete(session);
    this.seen.delete(session);
  }

  /** The daemon is gone: what ran in it runs no more. The next daemon's log says how it ended. */
  lost(): void {
    for (const t of this.all()) {
      if (live(t)) {
        t.phase = "abandoned";
        this.tell(t);
      }
    }
  }

  event(e: Event): void {
    const passing = isPassing(e);
    if (!passing) {
      this.entry(e.session, e);
      return;
    }
    switch (e.kind) {
      case "delta":
        this.delta(e);
        break;
      case "retracted":
        this.retract(e);
        break;
      case "stopping": {
        const t = this.turns.get(e.turn);
        if (t?.phase === "running") {
          t.phase = "stopping";
          this.tell(t);
        }
        break;
      }
      case "tool.output":
      case "warning":
      case "resend":
        break; // nothing of them is shown here
    }
  }

  /** Entries of the log that are read again: what they come to is told once, so that what is over never seems to run. */
  read(session: string, entries: Entry[]): void {
    this.reading = new Set();
    for (const e of entries) this.entry(session, e);
    const touched = this.reading;
    this.reading = undefined;
    for (const t of touched) this.tell(t);
  }

  /** A new entry of the log. */
  entry(session: string, e: Entry | EntryEvent): void {
    if (e.seq <= this.seq(session)) return;
    this.seen.set(session, e.seq);
    if (e.entry === undefined) return;
    const t = this.fold(session, e);
    if (t !== undefined) this.tell(t);
  }

  private fold(session: string, e: Entry | EntryEvent): Turn | undefined {
    switch (e.kind) {
      case "turn.started":
        return this.started(session, body(e, e.kind));
      case "answer":
        return this.answer(body(e, e.kind), e.seq);
      case "admission":
        return this.admission(body(e, e.kind));
      case "verdict": {
        const v = body(e, e.kind);
        const t = this.turns.get(v.turn);
        t?.verdicts.push(v);
        return t;
      }
      case "tool.started":
        return this.toolStarted(body(e, e.kind));
      case "tool.settled":
        return this.toolSettled(body(e, e.kind));
      case "file.changed": {
        const c = body(e, e.kind);
        const t = this.turns.get(c.turn);
        if (t === undefined) break;
        t.edits++;
        if (!t.changed.includes(c.path)) t.changed.push(c.path);
        return t;
      }
      case "request.sent": {
        const r = body(e, e.kind);
        const at = this.step(r.turn, r.step);
        if (at !== undefined) at[1].request = r.request;
        return at?.[0];
      }
      case "message.queued": {
        const q = body(e, e.kind);
        const t = this.last(session);
        t?.messages.push({ message: q.message, text: promptText(q.prompt), state: "queued" });
        return t;
      }
      case "message.delivered":
        return this.message(session, body(e, e.kind).message, "delivered");
      case "message.returned":
        return this.message(session, body(e, e.kind).message, "returned");
      case "turn.ended": {
        const end = body(e, e.kind);
        const t = this.turns.get(end.turn);
        if (t === undefined) return undefined;
        t.phase = end.outcome;
        t.ended = end;
        return t;
      }
    }
    return undefined;
  }

  private message(session: string, message: string, state: MessageState): Turn | undefined {
    const t = this.all().findLast((x) => x.session === session && x.messages.some((m) => m.message === message));
    for (const m of t?.messages ?? []) if (m.message === message) m.state = state;
    return t;
  }

  private started(session: string, s: TurnStarted): Turn {
    const t: Turn = { session, turn: s.turn, phase: "running", prompt: s.prompt, steps: [], changed: [], edits: 0, messages: [], verdicts: [] };
    if (s.anchor !== undefined) t.anchor = s.anchor;
    if (s.client_id !== undefined) {
      const before = this.joins.get(s.client_id);
      if (before !== undefined) t.follows = before;
    }
    for (const m of s.queued ?? []) {
      const waited = this.message(session, m, "started");
      if (waited !== undefined) t.follows = waited.turn;
      t.queued = true;
    }
    if (s.retries !== undefined) t.retries = s.retries;
    if (s.redirects !== undefined) {
      t.redirects = s.redirects;
      const before = this.turns.get(s.redirects);
      if (before !== undefined) {
        before.redirectedBy = s.turn;
        this.tell(before);
      }
    }
    this.turns.set(t.turn, t);
    this.newest.set(session, t.turn);
    return t;
  }

  private step(turn: string, step: number): [Turn, Step] | undefined {
    const t = this.turns.get(turn);
    if (t === undefined) return undefined;
    let s = t.steps.find((x) => x.step === step);
    if (s === undefined) {
      s = { step, text: "", bytes: 0, thinking: false, attempts: [], tools: [] };
      t.steps.push(s);
    }
    return [t, s];
  }

  private delta(e: DeltaEvent): void {
    const at = this.step(e.turn, e.step);
    if (at === undefined) return;
    const [t, s] = at;
    delete t.retracted;
    s.thinking = e.part === "reasoning";
    if (e.part === "text") {
      // Text that was missed comes with the answer's entry; out of order it would be a lie until then.
      if (e.offset === s.bytes) {
        s.text += e.text;
        s.bytes += Buffer.byteLength(e.text);
      }
    }
    this.tell(t);
  }

  private retract(e: RetractedEvent): void {
    const at = this.step(e.turn, e.step);
    if (at === undefined) return;
    const [t, s] = at;
    s.text = "";
    s.bytes = 0;
    s.thinking = false;
    t.retracted = e.why;
    this.tell(t);
  }

  private answer(a: Answer, seq: number): Turn | undefined {
    const at = this.step(a.turn, a.step);
    if (at === undefined) return undefined;
    const [t, s] = at;
    const text = a.parts.filter((p) => p.type === "text").map((p) => p.text ?? "").join("");
    s.thinking = false;
    s.state = a.state;
    s.answer = seq;
    if (a.state === "broken") {
      s.attempts.push({ text, why: a.cause ?? "it broke off" });
      s.text = "";
      s.bytes = 0;
    } else {
      s.text = text;
      s.bytes = Buffer.byteLength(text);
    }
    return t;
  }

  private admission(a: Admission): Turn | undefined {
    const at = this.step(a.turn, a.step);
    if (at === undefined) return undefined;
    const [t, s] = at;
    if (a.answer !== s.answer) return t;
    const attempt = s.attempts.at(-1);
    if (a.admitted && a.by === "user" && attempt !== undefined) {
      s.attempts.pop(); // Keep: it is part of the conversation now (F4)
      s.text = attempt.text;
      s.bytes = Buffer.byteLength(attempt.text);
      t.adopted = true;
    }
    if (a.by === "checks") {
      if (a.admitted) delete t.withheld;
      else t.withheld = a.withheld ?? "unverified";
    }
    return t;
  }

  private toolStarted(b: ToolStarted): Turn | undefined {
    const at = this.step(b.turn, b.step);
    if (at === undefined) return undefined;
    at[1].tools.push({ call: b.call, name: b.name, summary: b.summary ?? b.name, state: "running" });
    return at[0];
  }

  private toolSettled(b: ToolSettled): Turn | undefined {
    const at = this.step(b.turn, b.step);
    if (at === undefined) return undefined;
    const [t, s] = at;
    let tool = s.tools.find((x) => x.call === b.call);
    if (tool === undefined) {
      tool = { call: b.call, name: b.name, summary: b.name, state: b.state };
      s.tools.push(tool);
    }
    tool.state = b.state;
    if (b.cause !== undefined) tool.cause = b.cause;
    return t;
  }

  private tell(t: Turn): void {
    if (this.reading !== undefined) {
      this.reading.add(t);
      return;
    }
    for (const listener of this.listeners) listener(t);
  }
}

/** Whether the turn still runs. */
export function live(t: Turn): boolean {
  return t.phase === "running" || t.phase === "stopping";
}

/** Whether something of the turn was said: what a redirect goes on from. */
export function spoke(t: Turn): boolean {
  return t.steps.some((s) => s.text.trim() !== "");
}

/** Whether there is an attempt that the user can keep (F4). */
export function keepable(t: Turn): boolean {
  return t.withheld === undefined && t.steps.at(-1)?.attempts.some((a) => a.text.trim() !== "") === true;
}

/** What the turn is saying now, which is in no answer of the log yet. */
export function saying(t: Turn | undefined): string {
  const step = t?.steps.at(-1);
  return step === undefined || step.answer !== undefined ? "" : step.text;
}

/** What the user said, without the files that went with it. */
export function promptText(prompt: TurnStarted["prompt"]): string {
  return prompt.filter((p) => p.type === "text").map((p) => p.text).join("\n\n");
}

/** The body of an entry of a known kind. The daemon's types are generated: what it says of its kind is believed. */
function body<K extends keyof Entries>(e: Entry | EntryEvent, kind: K): Entries[K] {
  if (e.kind !== kind) throw new Error(`entry ${e.seq} is a ${e.kind}, and no ${kind}`);
  return e.entry as Entries[K];
}

function isPassing(e: Event): e is Exclude<Event, EntryEvent> {
  return !("seq" in e);
}
