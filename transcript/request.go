package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// RequestInfo is what is known of a request besides its body: its request.sent and, once it is there, its request.ended.
type RequestInfo struct {
	ID        RequestID
	Session   SessionID
	Seq       int64 // of request.sent
	Turn      TurnID
	Step, Try int
	Epoch, N  int // N is how many messages its body holds
	Bytes     int64
	SHA256    string
	Route     string
	Provider  string // Provider, Model and Dialect are the epoch's
	Model     string
	Dialect   string
	At        time.Time

	Outcome    string // "complete", "stopped" or "broken"; "" while it runs
	Status     int
	Error      string
	Usage      *Usage
	FirstDelta int64 // ms from At to the first delta
	Millis     int64 // ms from At to the end
}

// Requests lists the requests of a session in the order in which they were sent. Damaged entries are left out (C5).
// [ErrNoSession].
func (s *Store) Requests(ctx context.Context, id SessionID) ([]RequestInfo, error) {
	const op = "list requests"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	out, err := s.requests(ctx, id, sid, 0, -1)
	return out, s.fail(op, err)
}

// requests reads the requests with a seq from first on; limit bounds how many, -1 is all.
func (s *Store) requests(ctx context.Context, id SessionID, sid, first int64, limit int) ([]RequestInfo, error) {
	epochs, err := s.epochs(ctx, sid)
	if err != nil {
		return nil, err
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, at, kind, hash, body FROM entry
		WHERE sid = ? AND seq >= ? AND kind IN ('request.sent', 'request.ended') ORDER BY seq`, sid, first)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []RequestInfo
	at := map[RequestID]int{}
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		e := r.entry(id)
		switch b := e.Body.(type) {
		case *RequestSent:
			if len(out) == limit {
				continue
			}
			i := RequestInfo{ID: b.Request, Session: id, Seq: e.Seq, Turn: b.Turn, Step: b.Step, Try: b.Try, Epoch: b.Epoch,
				N: b.N, Bytes: b.Bytes, SHA256: b.SHA256, Route: b.Route, At: e.At}
			if o := epochs[b.Epoch]; o != nil {
				i.Provider, i.Model, i.Dialect = o.Provider, o.Model, o.Dialect
			}
			at[b.Request] = len(out)
			out = append(out, i)
		case *RequestEnded:
			k, ok := at[b.Request]
			if !ok {
				continue
			}
			i := &out[k]
			i.Outcome, i.Status, i.Error, i.Usage, i.FirstDelta, i.Millis = b.Outcome, b.Status, b.Error, b.Usage, b.FirstDelta, b.Millis
			if limit == 1 {
				return out, nil
			}
		}
	}
	return out, rows.Err()
}

// epochs reads a session's epochs. A damaged one is left out.
func (s *Store) epochs(ctx context.Context, sid int64) (map[int]*EpochOpened, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT n.body FROM epoch e JOIN entry n ON n.sid = e.sid AND n.seq = e.seq
		WHERE e.sid = ?`, sid)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int]*EpochOpened{}
	for rows.Next() {
		var body sql.RawBytes
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if b, err := decodeBody(KindEpochOpened, body); err == nil {
			o := b.(*EpochOpened)
			out[o.Epoch] = o
		}
	}
	return out, rows.Err()
}

// Request describes one request. [ErrNoRequest].
func (s *Store) Request(ctx context.Context, id RequestID) (RequestInfo, error) {
	const op = "request"
	r, err := s.findRequest(ctx, id)
	if err != nil {
		return RequestInfo{}, s.fail(op, err)
	}
	i, err := s.requestInfo(ctx, r)
	return i, s.fail(op, err)
}

// requestInfo describes one request. What a damaged entry would say is left out.
func (s *Store) requestInfo(ctx context.Context, r storedRequest) (RequestInfo, error) {
	out, err := s.requests(ctx, r.session, r.sid, r.seq, 1)
	if err != nil {
		return RequestInfo{}, err
	}
	if len(out) == 0 || out[0].ID != r.id {
		return RequestInfo{ID: r.id, Session: r.session, Seq: r.seq, Epoch: r.epoch, N: r.n, Bytes: r.bytes}, nil
	}
	return out[0], nil
}

// NewestRequest finds the request that was stored last: of a session, of a workspace, or, both being "", of all.
// [ErrNoRequest].
func (s *Store) NewestRequest(ctx context.Context, id SessionID, workspace string) (RequestID, error) {
	var r RequestID
	err := s.reads.QueryRowContext(ctx, `SELECT r.id FROM request r JOIN session s USING (sid)
		WHERE (?1 = '' OR s.id = ?1) AND (?2 = '' OR s.workspace = ?2) ORDER BY r.num DESC LIMIT 1`, id, workspace).Scan(&r)
	if errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("newest request: %w", ErrNoRequest)
	}
	return r, s.fail("newest request", err)
}
