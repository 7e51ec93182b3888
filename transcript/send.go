package transcript

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Send is a request to be stored, and then sent. All fields but Started, Instructions and Tools are needed.
type Send struct {
	Turn      TurnID
	Step, Try int    // from 1
	Held      bool   // as in [RequestSent]
	Route     string // provider name and address, never a key (M6)
	Provider  string
	Model     string

	Enc        Encoder
	Head, Tail []byte // what stands before the first message and after the last; kept only until Send returns

	// Instructions and Tools are the SHA-256 of each, hex: they only tell why a head differs from the one before (M5).
	Instructions, Tools string

	// Queued, Started and Delivered are appended before everything else, in this order and in the same transaction: a turn's
	// first step with the message that it starts with, unless that is in the log already; the messages that a later step
	// begins to hold (S10).
	Queued    *MessageQueued
	Started   *TurnStarted
	Delivered []*MessageDelivered
}

// Sent is a stored request. Its body is what [Store.Body] reads.
type Sent struct {
	Request RequestID
	Bytes   int64  // length of the body
	SHA256  string // of the body, hex
	Entries []Entry
}

// Send stores the next request: the messages of the log as it stands, between Head and Tail. In one transaction it
// appends what is given to stand before it, epoch.opened when the messages cannot just grow (M4, M5), the fragments of
// the messages that are new, and request.sent. When it returns the request may be sent (M2).
//
// The cost is that of what is new since the last request, however long the session is; a new epoch costs the whole
// session once. Errors are those of [Log.Append] and of the encoder.
//
// Invariant: within an epoch a request's messages are those of the one before and more (TestInputsOfAnEpochOnlyGrow).
func (l *Log) Send(ctx context.Context, s Send) (Sent, error) {
	const op = "store request"
	if s.Started != nil && s.Started.Turn != s.Turn {
		return Sent{}, fmt.Errorf("%s: turn.started is of %s, the request of %s", op, s.Started.Turn, s.Turn)
	}
	if s.Turn == "" || s.Step < 1 || s.Try < 1 || s.Enc == nil {
		return Sent{}, fmt.Errorf("%s: turn, step, try and encoder are needed", op)
	}
	var sent Sent
	entries, err := l.write(ctx, op, func(t *tx, h *head) ([]Entry, error) {
		var out []Entry
		first, err := t.append(h, s.first()...)
		if err != nil {
			return nil, err
		}
		out = append(out, first...)
		v, reason, err := t.lastView(l.view, h, s, l.opened.Parent != "")
		if err != nil {
			return nil, err
		}
		if reason == "" {
			err = t.catchUp(h, v, s.Enc)
			if errors.Is(err, errNoEpoch) {
				reason = ReasonDamaged
			}
		}
		if reason != "" {
			var opened []Entry
			if v, opened, err = t.openEpoch(h, s, reason); err != nil {
				return nil, err
			}
			out = append(out, opened...)
			err = t.catchUp(h, v, s.Enc)
		}
		if err != nil {
			return nil, err
		}
		var requested []Entry
		if sent, requested, err = t.request(h, v, s); err != nil {
			return nil, err
		}
		l.view = v
		return append(out, requested...), nil
	})
	if err != nil {
		return Sent{}, err
	}
	sent.Entries = entries
	return sent, nil
}

// lastView returns the view of the session's newest epoch, and why the request cannot go on with it, "" when it can. cached
// is the one in memory, or nil.
func (t *tx) lastView(cached *view, h *head, s Send, forked bool) (v *view, reason string, err error) {
	if v = cached; v != nil {
		var newest int64
		if err := t.row(`SELECT coalesce(max(seq), 0) FROM request WHERE sid = ?`, []any{h.sid}, &newest); err != nil {
			return nil, "", err
		}
		if newest != v.request {
			v = nil // another process sent one
		}
	}
	if v == nil {
		switch v, err = t.loadView(h); {
		case errors.Is(err, errNoEpoch) && v.request == 0 && forked:
			return v, ReasonForked, nil
		case errors.Is(err, errNoEpoch) && v.request == 0:
			return v, ReasonFirst, nil
		case errors.Is(err, errNoEpoch):
			return v, ReasonDamaged, nil
		case err != nil:
			return nil, "", err
		}
	}
	return v, epochReason(v.epoch, s.epoch()), nil
}

// first are the entries that stand before the request.
func (s *Send) first() (out []Body) {
	if s.Queued != nil {
		out = append(out, s.Queued)
	}
	if s.Started != nil {
		out = append(out, s.Started)
	}
	for _, m := range s.Delivered {
		out = append(out, m)
	}
	return out
}

// epoch is what the epoch of s has to be, but for its number and reason.
func (s *Send) epoch() EpochOpened {
	return EpochOpened{Provider: s.Provider, Model: s.Model, Dialect: s.Enc.Dialect(),
		Head: hexSum(s.Head), Tail: hexSum(s.Tail), Instructions: s.Instructions, Tools: s.Tools}
}

// openEpoch appends epoch.opened; the view it returns has the head and no message yet.
func (t *tx) openEpoch(h *head, s Send, reason string) (*view, []Entry, error) {
	next := s.epoch()
	next.Reason = reason
	if err := t.row(`SELECT coalesce(max(epoch), 0) + 1 FROM epoch WHERE sid = ?`, []any{h.sid}, &next.Epoch); err != nil {
		return nil, nil, err
	}
	head, err := t.putBlob(s.Head)
	if err != nil {
		return nil, nil, err
	}
	tail, err := t.putBlob(s.Tail)
	if err != nil {
		return nil, nil, err
	}
	opened, err := t.append(h, &next)
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.exec(`INSERT INTO epoch (sid, epoch, seq, head, tail) VALUES (?, ?, ?, ?, ?)`,
		h.sid, next.Epoch, h.seq, head, tail); err != nil {
		return nil, nil, err
	}
	v := &view{epoch: next}
	v.begin(s.Head)
	return v, opened, nil
}

// epochReason says why a request cannot continue an epoch, "" when it can.
func epochReason(old, next EpochOpened) string {
	switch {
	case old.Provider != next.Provider || old.Model != next.Model || old.Dialect != next.Dialect:
		return ReasonModel
	case old.Head == next.Head && old.Tail == next.Tail:
		return ""
	case old.Tools != next.Tools:
		return ReasonTools
	case old.Instructions != next.Instructions:
		return ReasonInstructions
	}
	return ReasonSettings
}

// request stores what was folded as a request.
//
// Invariant: sha256 is taken over what is sent, and what is sent is what is stored (TestInputShowsTheBytesThatWereSent).
func (t *tx) request(h *head, v *view, s Send) (Sent, []Entry, error) {
	bytes, sum, err := v.sum(s.Tail)
	if err != nil {
		return Sent{}, nil, err
	}
	mid, err := v.midstate()
	if err != nil {
		return Sent{}, nil, err
	}
	sent := Sent{Request: NewRequestID(), Bytes: bytes, SHA256: hex.EncodeToString(sum)}
	out, err := t.append(h, &RequestSent{Request: sent.Request, Turn: s.Turn, Step: s.Step, Try: s.Try, Held: s.Held, Epoch: v.epoch.Epoch,
		N: v.n, Bytes: bytes, SHA256: sent.SHA256, Route: s.Route})
	if err != nil {
		return Sent{}, nil, err
	}
	_, err = t.exec(`INSERT INTO request (id, sid, seq, turn, step, try, epoch, n, bytes, sha256, midstate)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, string(sent.Request), h.sid, h.seq, string(s.Turn), s.Step, s.Try,
		v.epoch.Epoch, v.n, bytes, sum, mid)
	v.request, v.folded = h.seq, h.seq
	return sent, out, err
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
