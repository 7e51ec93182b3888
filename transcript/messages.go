package transcript

import (
	"context"
	"sort"
)

// Messages are the messages of a request as its encoder was given them, in order: what of them a dialect left out can be
// told by it alone (T2). One whose entry is damaged has nothing but its Role and Source. [ErrNoRequest].
func (s *Store) Messages(ctx context.Context, id RequestID) ([]Message, error) {
	const op = "read messages"
	r, err := s.findRequest(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	epochs, err := s.epochs(ctx, r.sid)
	if err != nil {
		return nil, s.fail(op, err)
	}
	begins, err := s.epochBegins(ctx, r.sid)
	if err != nil {
		return nil, s.fail(op, err)
	}
	rows, err := s.reads.QueryContext(ctx, selectFragments, r.sid, r.epoch, 0, r.n)
	if err != nil {
		return nil, s.fail(op, err)
	}
	defer rows.Close()
	out := make([]Message, 0, r.n)
	for rows.Next() {
		f, err := scanFragment(rows)
		if err != nil {
			return nil, s.fail(op, err)
		}
		m := Message{Role: f.role(), Source: f.source}
		if b, err := decodeBody(f.kind, f.body); err == nil {
			m.say(b)
		}
		if m.Answer != nil && m.Answer.From == nil {
			// The newest epoch before the answer, as the fold has it.
			n := sort.Search(len(begins), func(i int) bool { return begins[i].seq >= f.source })
			if n > 0 {
				if e := epochs[begins[n-1].epoch]; e != nil {
					m.Origin = e.origin()
				}
			}
		}
		if e := epochs[r.epoch]; e != nil {
			m = m.For(*e)
		}
		out = append(out, m)
	}
	return out, s.fail(op, rows.Err())
}

// say sets what m says, and of a copied answer where it is from.
func (m *Message) say(b Body) {
	switch b := b.(type) {
	case *TurnStarted:
		m.User = b
	case *MessageDelivered:
		m.User = b.user()
	case *Answer:
		if m.Answer = b; b.From != nil {
			m.Origin = *b.From
		}
	case *ToolSettled:
		m.Result = b
	}
}

func (e *EpochOpened) origin() Origin { return Origin{e.Provider, e.Model, e.Dialect} }

type epochBegin struct {
	epoch int
	seq   int64
}

// epochBegins are a session's epochs in the order in which they began.
func (s *Store) epochBegins(ctx context.Context, sid int64) (out []epochBegin, err error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT epoch, seq FROM epoch WHERE sid = ? ORDER BY seq`, sid)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b epochBegin
		if err := rows.Scan(&b.epoch, &b.seq); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}
