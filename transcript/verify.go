package transcript

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// VerifyReport is what [Store.Verify] found.
type VerifyReport struct {
	Sessions, Entries, Turns, Requests, Fragments, Blobs int
	Bytes                                                int64 // of all request bodies together, as sent

	Running   []SessionID // a daemon runs a turn in them now
	Open      []SessionID // their last turn has no end: the next open of the session will repair it
	Unencoded int         // fragments of dialects that encoders did not know: checked by their hash alone

	Problems []Problem // sorted; empty when everything is as it was written
}

// Problem is a place where the database is not what was written. Of a row of consequences only the first is told.
type Problem struct {
	Session SessionID // "" when it belongs to none
	Seq     int64     // of the entry, 0 when it is no entry
	Request RequestID // "" when it is no request's
	What    string
}

func (p Problem) String() string {
	s := p.What
	if p.Request != "" {
		s = string(p.Request) + ": " + s
	}
	if p.Seq != 0 {
		s = fmt.Sprintf("entry %d: %s", p.Seq, s)
	}
	if p.Session != "" {
		s = string(p.Session) + ": " + s
	}
	return s
}

// Verify reads the whole database and checks that it is what was written: the chain of every session, every turn's end, every
// request's bytes against their hash, the fragments against the entries that they say (re-encoded by the encoder that
// encoders finds for a dialect), and all blobs. It goes on after a problem. It changes nothing, and needs one read transaction
// per session. The error is about reading, not about what was read.
//
// The chain finds every change but one: an end of a log rewritten together with all hashes. There is no secret in it.
func (s *Store) Verify(ctx context.Context, encoders func(dialect string) (Encoder, bool)) (VerifyReport, error) {
	const op = "verify"
	v := &verifier{s: s, encoders: encoders}
	sids, ids, err := v.sessions(ctx)
	if err != nil {
		return v.rep, s.fail(op, err)
	}
	for i, sid := range sids {
		if err := v.session(ctx, sid, ids[i]); err != nil {
			if !errors.Is(classify(err), ErrDamaged) || ctx.Err() != nil {
				return v.rep, s.fail(op, err)
			}
			v.problem(Problem{Session: ids[i], What: err.Error()})
		}
	}
	for _, f := range []func(context.Context) error{v.blobs, v.pages} {
		if err := f(ctx); err != nil {
			if !errors.Is(classify(err), ErrDamaged) || ctx.Err() != nil {
				return v.rep, s.fail(op, err)
			}
			v.problem(Problem{What: err.Error()})
		}
	}
	slices.SortStableFunc(v.rep.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Request, b.Request))
	})
	return v.rep, nil
}

type verifier struct {
	s        *Store
	encoders func(string) (Encoder, bool)
	rep      VerifyReport
}

func (v *verifier) problem(p Problem) { v.rep.Problems = append(v.rep.Problems, p) }

func (v *verifier) sessions(ctx context.Context) (sids []int64, ids []SessionID, err error) {
	rows, err := v.s.reads.QueryContext(ctx, `SELECT sid, id FROM session ORDER BY sid`)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var sid int64
		var id SessionID
		if err := rows.Scan(&sid, &id); err != nil {
			return nil, nil, err
		}
		sids, ids = append(sids, sid), append(ids, id)
	}
	return sids, ids, rows.Err()
}

// blobs checks every blob against its name.
func (v *verifier) blobs(ctx context.Context) error {
	rows, err := v.s.reads.QueryContext(ctx, `SELECT sha256, body FROM blob ORDER BY num`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, body sql.RawBytes
		if err := rows.Scan(&name, &body); err != nil {
			return err
		}
		v.rep.Blobs++
		if sum := sha256.Sum256(body); !bytes.Equal(sum[:], name) {
			v.problem(Problem{What: fmt.Sprintf("blob %x is changed", []byte(name))})
		}
	}
	return rows.Err()
}

// pages has SQLite check its own structure.
func (v *verifier) pages(ctx context.Context) error {
	rows, err := v.s.reads.QueryContext(ctx, `PRAGMA quick_check(10)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			return err
		}
		if what != "ok" {
			v.problem(Problem{What: "file structure: " + what})
		}
	}
	return rows.Err()
}

// session checks one session within one read transaction.
func (v *verifier) session(ctx context.Context, sid int64, id SessionID) error {
	t, err := v.s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer t.Rollback()
	c := &sessionCheck{v: v, t: t, ctx: ctx, sid: sid, id: id,
		told: map[string]bool{}, turns: map[TurnID][2]int64{}, epochs: map[int]*epochCheck{}, running: map[RequestID]int64{}}
	v.rep.Sessions++
	if err := c.entries(); err != nil {
		return err
	}
	if err := c.tables(); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(c.epochs)) {
		if err := c.fragments(c.epochs[n]); err != nil {
			return err
		}
	}
	return nil
}

// fragments checks an epoch: each fragment against the message of the log, and, with one hash that runs along, each request
// against the hash taken when it was stored.
func (c *sessionCheck) fragments(e *epochCheck) error {
	head, headErr := c.blob(e.opened.Head)
	tail, tailErr := c.blob(e.opened.Tail)
	if err := errors.Join(headErr, tailErr); err != nil {
		c.problem(Problem{Seq: e.seq, What: err.Error()})
		return nil
	}
	w := &view{}
	w.begin(head)
	enc, known := c.v.encoders(e.opened.Dialect)
	requests := e.requests
	bad, more := Problem{}, 0
	check := func() error {
		for ; len(requests) > 0 && requests[0].N == w.n; requests = requests[1:] {
			r := requests[0]
			size, sum, err := w.sum(tail)
			if err != nil {
				return err
			}
			if size != r.Bytes || hex.EncodeToString(sum) != r.SHA256 {
				if bad.Request == "" {
					bad = Problem{Seq: r.seq, Request: r.Request, What: "the body is not the one that was hashed when it was sent"}
				} else {
					more++
				}
			}
		}
		return nil
	}
	if err := check(); err != nil {
		return err
	}
	rows, err := c.t.QueryContext(c.ctx, selectFragments, c.sid, e.opened.Epoch, 0, 1<<40)
	if err != nil {
		return err
	}
	defer rows.Close()
	var buf []byte
	for rows.Next() {
		f, err := scanFragment(rows)
		if err != nil {
			return err
		}
		c.v.rep.Fragments++
		if f.n != w.n+1 {
			c.problem(Problem{Seq: f.source, What: fmt.Sprintf("fragment %d of epoch %d is missing", w.n+1, e.opened.Epoch)})
			break
		}
		if buf, err = f.append(buf[:0]); err != nil {
			c.problem(Problem{Seq: f.source, What: fmt.Sprintf("epoch %d: %v", e.opened.Epoch, err)})
			break
		}
		w.add(buf)
		if known {
			c.reencode(e, f, enc, buf)
		} else {
			c.v.rep.Unencoded++
		}
		if err := check(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if bad.Request == "" && len(requests) > 0 {
		bad = Problem{Seq: requests[0].seq, Request: requests[0].Request, What: fmt.Sprintf("the body cannot be rebuilt: it has %d messages, %d are left", requests[0].N, w.n)}
		more += len(requests) - 1
	}
	if bad.Request != "" {
		if more > 0 {
			bad.What += fmt.Sprintf(" (so with %d later requests)", more)
		}
		c.problem(bad)
	}
	return nil
}

// reencode compares a fragment with what the encoder makes of the log's message (M1).
func (c *sessionCheck) reencode(e *epochCheck, f storedFragment, enc Encoder, fragment []byte) {
	tell := func(what string) {
		c.once(fmt.Sprintf("epoch %d", e.opened.Epoch), Problem{Seq: f.source, What: fmt.Sprintf("fragment %d of epoch %d %s", f.n, e.opened.Epoch, what)})
	}
	if f.n > len(c.messages) || c.messages[f.n-1].Source != f.source {
		tell("is not the message that the log has there")
		return
	}
	b, err := decodeBody(f.kind, f.body)
	if err != nil {
		return // told already: the entry is damaged
	}
	m := Message{Role: f.role(), Source: f.source, Origin: c.messages[f.n-1].Origin}
	m.say(b)
	if again, err := enc.Encode(m.For(e.opened)); err != nil {
		tell("cannot be encoded again: " + err.Error())
	} else if !bytes.Equal(again, fragment) {
		tell("is not what its entry says")
	}
}

// live reports whether a daemon holds the session's lease.
func (c *sessionCheck) live() (bool, error) {
	var expires int64
	err := c.t.QueryRowContext(c.ctx, `SELECT expires FROM lease WHERE sid = ?`, c.sid).Scan(&expires)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return expires > millis(time.Now()), err
}

func (c *sessionCheck) blob(sha string) ([]byte, error) {
	return getBlob(sha, func(sum []byte, dest *[]byte) error {
		return c.t.QueryRowContext(c.ctx, selectBlob, sum).Scan(dest)
	})
}
