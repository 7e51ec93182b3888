package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Fork begins a session with a copy of another one's conversation: up to the end of a turn, or of the last turn that has
// ended when after is "". The parent is only read; a turn may run in it. Errors: [ErrNoSession], [ErrNoTurn] when after is
// no turn of the parent, [ErrTurnOpen] when it has not ended.
//
// The fork holds all of what it says: it can be verified, rendered and sent without the parent, also when that is deleted.
// What was said, done and decided is copied, with its times, but under turn and message ids of the fork's own, because
// those name one turn and one message of the database. Requests and epochs are not: they were sent in the parent, and
// are shown there (P3). Each copied answer says where it is from instead, so that a fork that goes on with the same model
// sends the very bytes that the parent sent, and a provider's cache still fits (M4, T2). Client ids are not copied: nobody
// started these turns here. An entry that is damaged, or refers to one that is, is left out (C5).
func (s *Store) Fork(ctx context.Context, parent SessionID, after TurnID) (*Log, error) {
	const op = "fork session"
	from, last, err := s.forkPoint(ctx, parent, after)
	if err != nil {
		return nil, s.fail(op, err)
	}
	info, err := s.Session(ctx, parent)
	if err != nil {
		return nil, err
	}
	entries, err := s.Entries(ctx, parent, 0, int(last))
	if err != nil {
		return nil, err
	}
	c := copier{turns: map[TurnID]TurnID{}, messages: map[MessageID]MessageID{}, seqs: map[int64]int64{}, next: 2}
	c.copy(entries)
	l := &Log{st: s, id: NewSessionID(), opened: SessionOpened{
		Workspace: info.Workspace, Title: forkTitle(info.Title), Parent: parent, ParentSeq: last, Copied: c.next - 1,
	}}
	err = s.write(ctx, op, func(t *tx) error {
		// The blobs that the copies name live as long as the parent does, or this session from here on.
		var still int64
		if err := t.row(`SELECT sid FROM session WHERE sid = ?`, []any{from}, &still); errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s was deleted", ErrNoSession, parent)
		} else if err != nil {
			return err
		}
		h, err := t.newSession(l)
		if err != nil {
			return err
		}
		if _, err := t.append(&h, &l.opened); err != nil {
			return err
		}
		_, err = t.appendAt(&h, time.Now(), c.bodies, func(i int) time.Time { return c.times[i] })
		return err
	})
	if err != nil {
		return nil, err
	}
	l.seq.Store(l.opened.Copied)
	return l, nil
}

func forkTitle(title string) string {
	const mark = " (fork)"
	if title == "" || strings.HasSuffix(title, mark) {
		return title
	}
	return title + mark
}

// forkPoint is the number of the parent and the last entry that its fork keeps: what follows a turn's end belongs to it, up
// to the next turn (a late result, a decision about its answer).
func (s *Store) forkPoint(ctx context.Context, parent SessionID, after TurnID) (sid, last int64, err error) {
	if sid, err = s.sidOf(ctx, parent); err != nil {
		return 0, 0, err
	}
	if after == "" {
		err = s.reads.QueryRowContext(ctx, `SELECT coalesce(
			(SELECT seq - 1 FROM turn WHERE sid = ?1 AND ended IS NULL),
			(SELECT last_seq FROM session WHERE sid = ?1))`, sid).Scan(&last)
		return sid, last, err
	}
	var ended bool
	err = s.reads.QueryRowContext(ctx, `SELECT t.ended IS NOT NULL, coalesce(
		(SELECT min(seq) - 1 FROM turn n WHERE n.sid = t.sid AND n.seq > t.seq),
		(SELECT last_seq FROM session s WHERE s.sid = t.sid)) FROM turn t WHERE t.id = ? AND t.sid = ?`, after, sid).Scan(&ended, &last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, 0, fmt.Errorf("%w: %s in session %s", ErrNoTurn, after, parent)
	case err == nil && !ended:
		return 0, 0, fmt.Errorf("%w: %s; stop it, or fork after an earlier one", ErrTurnOpen, after)
	}
	return sid, last, err
}

// copier makes a fork's entries of its parent's.
type copier struct {
	turns    map[TurnID]TurnID
	messages map[MessageID]MessageID // those that came to an end
	seqs     map[int64]int64
	origin   Origin // of the parent's newest epoch so far
	open     TurnID // the copy of a turn that has not ended yet

	next   int64 // seq of the next copy
	bodies []Body
	times  []time.Time
}

func (c *copier) copy(entries []Entry) {
	var fates messageFates
	for _, e := range entries {
		fates.add(e.Body)
	}
	for id, m := range fates.byID {
		if m.State != MessageWaiting { // the others met their end after the fork point, in the parent
			c.messages[id] = NewMessageID()
		}
	}
	var at time.Time
	reverts := endedReverts(entries)
	for _, e := range entries {
		at = e.At
		switch b := e.Body.(type) {
		case nil, *SessionOpened, *RequestSent, *RequestEnded:
			continue
		case *EpochOpened:
			c.origin = b.origin()
			continue
		case *TurnStarted:
			c.end(at)
			c.turns[b.Turn], b.ClientID = NewTurnID(), ""
			c.open = c.turns[b.Turn]
		case *RevertStarted:
			if !reverts[e.Seq] {
				continue // its end is damaged, or was not recorded yet
			}
		case *MessageQueued:
			b.ClientID = ""
		case *Answer:
			if b.From == nil {
				from := c.origin
				b.From = &from
			}
		}
		if !c.rename(reflect.ValueOf(e.Body).Elem()) {
			continue
		}
		if ended, ok := e.Body.(*TurnEnded); ok {
			if ended.Turn != c.open {
				continue
			}
			c.open = ""
		}
		c.seqs[e.Seq] = c.next
		c.add(e.Body, at)
	}
	c.end(at)
}

func (c *copier) add(b Body, at time.Time) {
	c.bodies, c.times = append(c.bodies, b), append(c.times, at)
	c.next++
}

// end ends a turn whose end is damaged (invariant 2).
func (c *copier) end(at time.Time) {
	if c.open != "" {
		c.add(&TurnEnded{Turn: c.open, Outcome: TurnAbandoned, Error: "the end of this turn is damaged in the session it was copied from"}, at)
		c.open = ""
	}
}

// rename gives the turns, messages and answers that a body names the names of their copies; false when one that it is
// about was not copied. All of them are found by their types, and answers and reverts, which are named by their seq, by the
// field's name, so that no kind of entry can be forgotten (TestAForkRenamesWhatEveryKindNames).
func (c *copier) rename(body reflect.Value) bool {
	for f, v := range body.Fields() {
		switch id := v.Interface().(type) {
		case TurnID:
			name, ok := c.turns[id]
			if v.SetString(string(name)); !ok && f.Name == "Turn" {
				return false
			}
		case MessageID:
			name, ok := c.messages[id]
			if v.SetString(string(name)); !ok {
				return false
			}
		case []MessageID:
			var names []MessageID
			for _, m := range id {
				if name, ok := c.messages[m]; ok {
					names = append(names, name)
				}
			}
			v.Set(reflect.ValueOf(names))
		case int64:
			switch seq, ok := c.seqs[id]; f.Name {
			case "Answer", "Revert":
				if v.SetInt(seq); !ok {
					return false
				}
			case "Undoes":
				v.SetInt(seq) // 0 when that one was not copied
			}
		}
	}
	return true
}
