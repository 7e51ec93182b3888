package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Journal records a delta of a running answer. When it returns the delta is committed, and may be shown (C1). It is called
// for every delta, so it is one prepared statement and takes no context: there is nothing to wait for but the lock. The
// rows live until [Log.Conclude] or [Log.Repair] has made an entry of them. turn and step are there for the reader of the
// call; the request says both. Errors: [ErrLeaseLost], and those of a write.
//
// Invariant: what a client was shown is in the journal or in an answer (TestWhatWasJournalledIsInTheRepairedAnswer).
func (l *Log) Journal(req RequestID, turn TurnID, step int, part PartType, text string) error {
	return l.journal(req, part, text)
}

// journalExtra is the part column of a row that says what goes back with a part of the answer. It is no type of a part, so
// that nobody takes the row's text for something that was said.
const journalExtra = "extra"

// carried is the text column of such a row; see [Spoken.Carry].
type carried struct {
	Part  int             `json:"part"`
	Type  PartType        `json:"type"`
	Extra json.RawMessage `json:"extra"`
}

// JournalExtra records what [Spoken.Carry] is told: what goes back with a part of a running answer (T3). extra is JSON, or nil.
// It is like [Log.Journal] otherwise.
func (l *Log) JournalExtra(req RequestID, part int, t PartType, extra json.RawMessage) error {
	if extra == nil {
		extra = json.RawMessage("null")
	}
	row := append(strconv.AppendInt([]byte(`{"part":`), int64(part), 10), `,"type":`...)
	row = append(append(append(AppendString(row, string(t)), `,"extra":`...), extra...), '}')
	if !json.Valid(row) {
		return fmt.Errorf("journal: what goes with part %d is not JSON", part)
	}
	return l.journal(req, journalExtra, string(row))
}

func (l *Log) journal(req RequestID, part PartType, text string) error {
	const op = "journal"
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.st.w
	if w == nil {
		return l.st.fail(op, errReadOnlyStore)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	owner := "" // of a log without a lease: nobody is in its way
	if l.leased {
		owner = l.st.opt.Owner
	}
	t := &tx{w}
	w.fault("before: " + op)
	n, err := t.exec(`INSERT INTO journal (sid, request, n, part, text)
		SELECT ?1, ?2, (SELECT coalesce(max(n), 0) + 1 FROM journal WHERE sid = ?1 AND request = ?2), ?3, ?4
		WHERE ?5 = '' OR EXISTS (SELECT 1 FROM lease WHERE sid = ?1 AND owner = ?5)`,
		l.sid, string(req), string(part), text, owner)
	if err == nil && n == 0 {
		err = ErrLeaseLost
	}
	if err == nil {
		w.fault("after: " + op)
	}
	return l.st.fail(op, err)
}

// journalled joins the journal of a request into the parts of an answer, in order.
func (t *tx) journalled(sid int64, req RequestID) ([]Part, error) {
	rows, err := t.rows(`SELECT part, text FROM journal WHERE sid = ? AND request = ? ORDER BY n`, sid, string(req))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var said Spoken
	for rows.Next() {
		var part PartType
		var text string
		if err := rows.Scan(&part, &text); err != nil {
			return nil, err
		}
		if part != journalExtra {
			said.Say(part, text)
			continue
		}
		var c carried
		if json.Unmarshal([]byte(text), &c) == nil { // a damaged row costs what it says, not the answer (C5)
			if string(c.Extra) == "null" {
				c.Extra = nil
			}
			said.Carry(c.Part, c.Type, c.Extra)
		}
	}
	return said.Parts(), rows.Err()
}

func (t *tx) clearJournal(sid int64, req RequestID) error {
	_, err := t.exec(`DELETE FROM journal WHERE sid = ? AND request = ?`, sid, string(req))
	return err
}

// Conclusion is the end of a request and all that is decided with it.
type Conclusion struct {
	Ended     RequestEnded
	Answer    *Answer        // nil: nothing was said (S6)
	Checked   bool           // the answer has checks: they admit it later, in an entry of their own (K1)
	Receipts  []*ToolSettled // of calls that will not run
	Messages  []Body         // message.queued and message.returned of what is handed back (S10)
	TurnEnded *TurnEnded     // nil: the turn goes on
}

// Conclude appends the second half of an exchange in one transaction: request.ended, the answer, its admission by rule (P5:
// complete and stopped answers are admitted, broken ones withheld), receipts, turn.ended; and it empties the request's
// journal. It is the only way to end a request, but for [Log.Repair], so a half-recorded exchange cannot be expressed.
// Errors are those of [Log.Append].
func (l *Log) Conclude(ctx context.Context, c Conclusion) ([]Entry, error) {
	const op = "conclude request"
	if c.Ended.Request == "" {
		return nil, fmt.Errorf("%s: no request", op)
	}
	if a := c.Answer; a != nil {
		if a.Request != c.Ended.Request {
			return nil, fmt.Errorf("%s: the answer is of %s, not of %s", op, a.Request, c.Ended.Request)
		}
		// Invariant: an answer that was cut holds no call (S5; TestACutAnswerHoldsNoCall).
		if a.State != Complete && len(a.Calls()) > 0 {
			return nil, fmt.Errorf("%s: a %s answer holds a call", op, a.State)
		}
	}
	return l.write(ctx, op, func(t *tx, h *head) ([]Entry, error) { return t.conclude(h, c) })
}

func (t *tx) conclude(h *head, c Conclusion) ([]Entry, error) {
	bodies := []Body{&c.Ended}
	if a := c.Answer; a != nil {
		bodies = append(bodies, a)
		if !c.Checked {
			// The answer's own seq is two behind: request.ended stands before it.
			bodies = append(bodies, &Admission{Turn: a.Turn, Step: a.Step, Answer: h.seq + 2, Admitted: a.State != Broken, By: "rule"})
		}
	}
	for _, r := range c.Receipts {
		bodies = append(bodies, r)
	}
	bodies = append(bodies, c.Messages...)
	if c.TurnEnded != nil {
		bodies = append(bodies, c.TurnEnded)
	}
	out, err := t.append(h, bodies...)
	if err != nil {
		return nil, err
	}
	return out, t.clearJournal(h.sid, c.Ended.Request)
}
