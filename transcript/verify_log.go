package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// sessionCheck is the verification of one session: first its entries in order, then the tables beside them.
type sessionCheck struct {
	v   *verifier
	t   *sql.Tx
	ctx context.Context
	sid int64
	id  SessionID

	told     map[string]bool // what is told once only
	fold     Fold
	messages []Message // folded so far, without what they say
	open     TurnID
	turns    map[TurnID][2]int64 // seqs of turn.started and turn.ended
	epochs   map[int]*epochCheck
	requests int
	running  map[RequestID]int64 // without an end yet → seq
	pending  map[MessageID]int64 // queued, without an end yet → seq
	damaged  bool
	verdicts map[int64][]*Verdict // by the seq of the answer

	reverting map[int64]*RevertStarted // without an end yet, by seq
}

type epochCheck struct {
	opened   EpochOpened
	seq      int64
	requests []sentCheck
}

type sentCheck struct {
	*RequestSent
	seq int64
}

func (c *sessionCheck) problem(p Problem) {
	p.Session = c.id
	c.v.problem(p)
}

// once tells of the first problem of its kind.
func (c *sessionCheck) once(kind string, p Problem) {
	if !c.told[kind] {
		c.told[kind] = true
		c.problem(p)
	}
}

// entries walks the chain.
func (c *sessionCheck) entries() error {
	var lastSeq int64
	var lastHash []byte
	err := c.t.QueryRowContext(c.ctx, `SELECT last_seq, last_hash FROM session WHERE sid = ?`, c.sid).Scan(&lastSeq, &lastHash)
	if err != nil {
		return err
	}
	rows, err := c.t.QueryContext(c.ctx, selectEntries, c.sid, 0)
	if err != nil {
		return err
	}
	defer rows.Close()
	var seq int64
	var prev [sha256.Size]byte
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return err
		}
		c.v.rep.Entries++
		switch want := entryHash(prev, c.id, r.seq, r.at, r.kind, r.body); {
		case r.seq != seq+1:
			c.problem(Problem{Seq: seq + 1, What: fmt.Sprintf("missing; the next entry is %d", r.seq)})
			c.damaged = true
		case !bytes.Equal(want[:], r.hash):
			c.problem(Problem{Seq: r.seq, What: "changed: it does not fit its hash and the entry before it"})
			c.damaged = true
		}
		seq = r.seq
		copy(prev[:], r.hash) // go on from what is there, so that the next problem is one of its own
		if err := c.entry(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if seq != lastSeq {
		c.problem(Problem{Seq: min(seq, lastSeq) + 1, What: fmt.Sprintf("the log ends at %d, it was written up to %d", seq, lastSeq)})
		c.damaged = true
	} else if !bytes.Equal(prev[:], lastHash) {
		c.problem(Problem{Seq: seq, What: "the last entry is not the one that was written last"})
	}
	return nil
}

// entry checks what an entry says against those before it.
func (c *sessionCheck) entry(r rawEntry) error {
	e := r.entry(c.id)
	if e.Damaged != "" {
		c.problem(Problem{Seq: e.Seq, What: e.Damaged})
		c.damaged = true
		return nil
	}
	for _, m := range c.fold.Add(e) {
		c.messages = append(c.messages, Message{Role: m.Role, Source: m.Source, Origin: m.Origin})
	}
	c.checkMessage(e)
	if err := c.revert(e); err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case *TurnStarted:
		c.v.rep.Turns++
		if c.open != "" {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("%s started while %s had not ended", b.Turn, c.open)})
		}
		if len(c.reverting) > 0 && !c.damaged {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("%s started while a revert had not ended", b.Turn)})
		}
		c.open, c.turns[b.Turn] = b.Turn, [2]int64{e.Seq, 0}
	case *TurnEnded:
		if b.Turn != c.open {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("%s ended without being open", b.Turn)})
		} else {
			c.open, c.turns[b.Turn] = "", [2]int64{c.turns[b.Turn][0], e.Seq}
		}
		for r, seq := range c.running {
			c.problem(Problem{Seq: seq, Request: r, What: "the turn ended, the request did not"})
			delete(c.running, r)
		}
	case *EpochOpened:
		if b.Epoch != len(c.epochs)+1 {
			c.once("epochs", Problem{Seq: e.Seq, What: fmt.Sprintf("epoch %d follows epoch %d", b.Epoch, len(c.epochs))})
		}
		c.epochs[b.Epoch] = &epochCheck{opened: *b, seq: e.Seq}
	case *RequestSent:
		return c.sent(b, e.Seq)
	case *RequestEnded:
		if _, ok := c.running[b.Request]; !ok {
			c.once("ended", Problem{Seq: e.Seq, Request: b.Request, What: "ended without having been sent, or twice"})
		}
		delete(c.running, b.Request)
	case *Verdict:
		return c.verdict(b, e.Seq)
	case *Admission:
		return c.admission(b, e.Seq)
	case *FileChanged:
		return c.needBlobs(e.Seq, b.Before, b.After)
	case *ToolSettled:
		return c.needBlobs(e.Seq, b.Full)
	}
	return nil
}

// sent checks a request.sent against its row and against the fold.
func (c *sessionCheck) sent(b *RequestSent, seq int64) error {
	c.v.rep.Requests++
	c.v.rep.Bytes += b.Bytes
	c.requests++
	c.running[b.Request] = seq
	if e := c.epochs[b.Epoch]; e == nil {
		c.once("epochs", Problem{Seq: seq, Request: b.Request, What: fmt.Sprintf("epoch %d was never opened", b.Epoch)})
	} else {
		e.requests = append(e.requests, sentCheck{b, seq})
	}
	if b.N != len(c.messages) && !c.damaged {
		c.once("messages", Problem{Seq: seq, Request: b.Request, What: fmt.Sprintf("it holds %d messages, the log had %d", b.N, len(c.messages))})
	}
	row := RequestSent{Request: b.Request, Route: b.Route, Held: b.Held}
	var sum []byte
	var at int64
	err := c.t.QueryRowContext(c.ctx, `SELECT seq, turn, step, try, epoch, n, bytes, sha256 FROM request WHERE id = ? AND sid = ?`,
		b.Request, c.sid).Scan(&at, &row.Turn, &row.Step, &row.Try, &row.Epoch, &row.N, &row.Bytes, &sum)
	row.SHA256 = hex.EncodeToString(sum)
	switch {
	case err == sql.ErrNoRows:
		c.problem(Problem{Seq: seq, Request: b.Request, What: "the request table does not have it"})
	case err != nil:
		return err
	case row != *b || at != seq:
		c.problem(Problem{Seq: seq, Request: b.Request, What: "the request table says something else"})
	}
	return nil
}

func (c *sessionCheck) needBlobs(seq int64, shas ...string) error {
	for _, sha := range shas {
		sum, err := hex.DecodeString(sha)
		if sha == "" {
			continue
		}
		n := 0
		if err == nil {
			if err := c.t.QueryRowContext(c.ctx, `SELECT count(*) FROM blob WHERE sha256 = ?`, sum).Scan(&n); err != nil {
				return err
			}
		}
		if n == 0 {
			c.problem(Problem{Seq: seq, What: "blob " + sha + " is missing"})
			continue
		}
		if err := c.t.QueryRowContext(c.ctx, `SELECT count(*) FROM blob_use WHERE sid = ? AND sha256 = ?`, c.sid, sum).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			c.problem(Problem{Seq: seq, What: "blob " + sha + " is not kept for this session"})
		}
	}
	return nil
}

// tables checks that the look-ups say what the log says, and how the session ended.
func (c *sessionCheck) tables() error {
	var requests, epochs int
	if err := c.t.QueryRowContext(c.ctx, `SELECT (SELECT count(*) FROM request WHERE sid = ?1),
		(SELECT count(*) FROM epoch WHERE sid = ?1)`, c.sid).Scan(&requests, &epochs); err != nil {
		return err
	}
	if requests > c.requests {
		c.problem(Problem{What: fmt.Sprintf("the request table has %d requests, the log %d", requests, c.requests)})
	}
	if epochs != len(c.epochs) {
		c.problem(Problem{What: fmt.Sprintf("the epoch table has %d epochs, the log %d", epochs, len(c.epochs))})
	}
	if err := c.turnTable(); err != nil {
		return err
	}
	for n, e := range c.epochs {
		var seq int64
		var head, tail []byte
		err := c.t.QueryRowContext(c.ctx, `SELECT seq, head, tail FROM epoch WHERE sid = ? AND epoch = ?`, c.sid, n).Scan(&seq, &head, &tail)
		if err != nil && err != sql.ErrNoRows {
			return err
		}
		if seq != e.seq || hex.EncodeToString(head) != e.opened.Head || hex.EncodeToString(tail) != e.opened.Tail {
			c.problem(Problem{Seq: e.seq, What: fmt.Sprintf("the epoch table says something else of epoch %d", n)})
		}
	}
	if c.open == "" && len(c.pending) == 0 && len(c.reverting) == 0 {
		return nil
	}
	live, err := c.live()
	if live {
		c.v.rep.Running = append(c.v.rep.Running, c.id)
	} else {
		c.v.rep.Open = append(c.v.rep.Open, c.id)
	}
	return err
}

func (c *sessionCheck) turnTable() error {
	rows, err := c.t.QueryContext(c.ctx, `SELECT id, seq, coalesce(ended, 0) FROM turn WHERE sid = ? ORDER BY seq`, c.sid)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var id TurnID
		var at [2]int64
		if err := rows.Scan(&id, &at[0], &at[1]); err != nil {
			return err
		}
		n++
		if at != c.turns[id] && !c.damaged {
			c.problem(Problem{Seq: at[0], What: fmt.Sprintf("the turn table says something else of %s", id)})
		}
	}
	if n != len(c.turns) && !c.damaged {
		c.problem(Problem{What: fmt.Sprintf("the turn table has %d turns, the log %d", n, len(c.turns))})
	}
	return rows.Err()
}
