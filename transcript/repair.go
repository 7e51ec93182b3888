package transcript

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// The receipts that repair writes. A model reads them word for word.
const (
	receiptNotStarted = "Not run: fermata ended before this call was started."
	receiptUnchanged  = "Not done: fermata ended while this call ran. Unchanged: "
	receiptDone       = "Done: fermata ended before the result was recorded. The content is what this call was to write: "
	receiptPartly     = "Partly done: fermata ended while this call ran."
	receiptUnknown    = "Unknown: fermata ended while this call ran. How far it came is not known."
)

// Evidence tells what a file holds now: the SHA-256 of its content in hex, and whether it exists. path is as
// [FileChanged].Path gives it. An error makes the call's state unknown.
type Evidence = func(path string) (sha256 string, exists bool, err error)

// Repair closes the turn that a dead daemon left open (C2), and returns what it appended: nothing when no turn or revert
// is open and no message waits. The caller holds the lease. In one transaction, by additions only:
//
//   - a request without an end gets one, and what was journalled of its answer becomes a broken answer, withheld (C1, F4);
//   - the calls of an admitted answer that have no result get a receipt: `not_started` when they were never started;
//     else by evidence when they had told which files they would change (C3); else `unknown`;
//   - messages that waited behind the turn are handed back (S10);
//   - a revert that has no end gets one, each of its files settled by evidence;
//   - the turn ends `abandoned`.
//
// Evidence is asked before the transaction, so that hashing large files holds up nobody. Errors are those of [Log.Append].
func (l *Log) Repair(ctx context.Context, evidence Evidence) ([]Entry, error) {
	const op = "repair session"
	for {
		w, err := l.wreckage(ctx)
		if err != nil {
			return nil, l.st.fail(op, err)
		}
		if w == nil {
			return nil, nil
		}
		receipts := w.receipts(evidence)
		out, err := l.write(ctx, op, func(t *tx, h *head) ([]Entry, error) {
			if h.seq != w.last {
				return nil, errMoved
			}
			return t.repair(h, w, receipts)
		})
		if !errors.Is(err, errMoved) {
			return out, err
		}
	}
}

// errMoved: the session grew between looking and writing.
var errMoved = errors.New("the session moved on")

// wreckage is the open turn of a session, sorted by what repair has to do.
type wreckage struct {
	turn     TurnID         // "" when none is open
	last     int64          // seq of the session's newest entry
	requests []*RequestSent // without an end
	said     bool           // the turn holds an answer
	calls    []openCall
	waiting  []MessageID // queued, without an end
	reverts  []openRevert
}

// openCall is a call of an admitted answer that has no result.
type openCall struct {
	Call
	step    int
	started *ToolStarted
	changes []*FileChanged
}

// wreckage is nil when nothing is open and no message waits.
func (l *Log) wreckage(ctx context.Context) (*wreckage, error) {
	w := &wreckage{}
	var seq int64
	err := l.st.reads.QueryRowContext(ctx, `SELECT id, seq FROM turn WHERE sid = ? AND ended IS NULL`, l.sid).Scan(&w.turn, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return l.stranded(ctx)
	}
	if err != nil {
		return nil, err
	}
	entries, err := l.st.Entries(ctx, l.id, seq-1, 0)
	if err != nil {
		return nil, err
	}
	w.last = seq
	for _, e := range entries {
		w.last = e.Seq
	}
	w.sort(entries)
	return w, nil
}

// stranded is the wreckage of a daemon that died between two turns: messages that were to start the next one, which were
// queued after the last turn had started, and reverts.
func (l *Log) stranded(ctx context.Context) (*wreckage, error) {
	w := &wreckage{}
	var turn int64
	err := l.st.reads.QueryRowContext(ctx, `SELECT last_seq, (SELECT coalesce(max(seq), 0) FROM turn t WHERE t.sid = s.sid)
		FROM session s WHERE sid = ?`, l.sid).Scan(&w.last, &turn)
	if err != nil || w.last == turn {
		return nil, err
	}
	fates, err := l.st.messages(ctx, l.sid, turn)
	if err != nil {
		return nil, err
	}
	w.waiting = fates.waiting()
	if w.reverts, err = l.st.openReverts(ctx, l.sid, turn); err != nil || len(w.waiting)+len(w.reverts) == 0 {
		return nil, err
	}
	return w, nil
}

// sort reads the entries of the turn. Damaged ones say nothing.
func (w *wreckage) sort(entries []Entry) {
	type key struct {
		step int
		call CallID
	}
	answers := map[int64]*Answer{}
	started := map[key]*ToolStarted{}
	changes := map[key][]*FileChanged{}
	settled := map[key]bool{}
	var admitted []*Answer
	var fates messageFates
	for _, e := range entries {
		fates.add(e.Body)
		switch b := e.Body.(type) {
		case *RequestSent:
			w.requests = append(w.requests, b)
		case *RequestEnded:
			for i, r := range w.requests {
				if r.Request == b.Request {
					w.requests = append(w.requests[:i], w.requests[i+1:]...)
					break
				}
			}
		case *Answer:
			w.said = true
			answers[e.Seq] = b
		case *Admission:
			if a := answers[b.Answer]; a != nil && b.Admitted {
				admitted = append(admitted, a)
				delete(answers, b.Answer) // admitted twice is admitted once
			}
		case *ToolStarted:
			started[key{b.Step, b.Call}] = b
		case *FileChanged:
			changes[key{b.Step, b.Call}] = append(changes[key{b.Step, b.Call}], b)
		case *ToolSettled:
			// A late one is of a turn before, whose calls may have had the same ids (S7).
			if !b.Late && b.Turn == w.turn {
				settled[key{b.Step, b.Call}] = true
			}
		}
	}
	for _, a := range admitted {
		for _, c := range a.Calls() {
			if k := (key{a.Step, c.ID}); !settled[k] {
				w.calls = append(w.calls, openCall{c, a.Step, started[k], changes[k]})
			}
		}
	}
	w.waiting = fates.waiting()
}

func (w *wreckage) receipts(evidence Evidence) []Body {
	var out []Body
	for _, o := range w.reverts {
		out = append(out, o.settle(evidence))
	}
	for _, c := range w.calls {
		r := &ToolSettled{Turn: w.turn, Step: c.step, Call: c.ID, Name: c.Name, Cause: CauseDaemonDied}
		if c.started == nil {
			r.State, r.Output = ToolNotStarted, receiptNotStarted
		} else {
			r.State, r.Output = c.settle(evidence)
		}
		out = append(out, r)
	}
	return out
}

// settle decides by evidence what became of a call that was started (C3).
func (c openCall) settle(evidence Evidence) (ToolState, string) {
	if len(c.changes) == 0 || c.started.ReadOnly || evidence == nil {
		return ToolUnknown, receiptUnknown
	}
	// A call can change a file more than once: what counts is how it was first and how it was to be in the end.
	type change struct {
		before, after string
		buffer        bool
	}
	var paths []string
	byPath := map[string]change{}
	for _, f := range c.changes {
		ch, again := byPath[f.Path]
		if !again {
			paths = append(paths, f.Path)
			ch.before = f.Before
		}
		ch.after = f.After
		ch.buffer = ch.buffer || f.Buffer
		byPath[f.Path] = ch
	}
	var done, unchanged, unknown []string
	for _, path := range paths {
		ch := byPath[path]
		now, exists, err := evidence(path)
		if !exists {
			now = ""
		}
		switch {
		case err != nil:
			unknown = append(unknown, path)
		case now == ch.after:
			done = append(done, path)
		case now == ch.before && !ch.buffer: // of a change in an editor's document the disk proves nothing
			unchanged = append(unchanged, path)
		default:
			unknown = append(unknown, path)
		}
	}
	switch len(paths) {
	case len(done):
		return ToolDone, receiptDone + strings.Join(done, ", ") + "."
	case len(unchanged):
		return ToolNotStarted, receiptUnchanged + strings.Join(unchanged, ", ") + "."
	case len(unknown):
		return ToolUnknown, receiptUnknown
	}
	var text strings.Builder
	text.WriteString(receiptPartly)
	for _, part := range []struct {
		fate  string
		paths []string
	}{{"As it was to be: ", done}, {"Unchanged: ", unchanged}, {"Not known: ", unknown}} {
		if len(part.paths) > 0 {
			text.WriteString(" " + part.fate + strings.Join(part.paths, ", ") + ".")
		}
	}
	return ToolUnknown, text.String()
}

func (t *tx) repair(h *head, w *wreckage, receipts []Body) ([]Entry, error) {
	var out []Entry
	said := w.said
	for _, r := range w.requests {
		parts, err := t.journalled(h.sid, r.Request)
		if err != nil {
			return nil, err
		}
		c := Conclusion{Ended: RequestEnded{Request: r.Request, Outcome: string(Broken), Error: "the daemon died"}}
		if saidAnything(parts) {
			said = true
			c.Answer = &Answer{Turn: r.Turn, Step: r.Step, Request: r.Request, State: Broken, Cause: CauseDaemonDied, Parts: parts}
		}
		entries, err := t.conclude(h, c)
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
	}
	for _, m := range w.waiting {
		receipts = append(receipts, &MessageReturned{Message: m, Cause: CauseDaemonDied})
	}
	if w.turn != "" {
		receipts = append(receipts, &TurnEnded{Turn: w.turn, Outcome: TurnAbandoned, Cause: CauseDaemonDied, Silent: !said})
	}
	entries, err := t.append(h, receipts...)
	return append(out, entries...), err
}
