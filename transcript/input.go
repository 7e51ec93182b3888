package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Input is a model input as it was sent, with where each part came from (M7).
type Input struct {
	Info     RequestInfo
	Body     []byte // exactly as sent
	SHA256   string // as recorded when it was stored, hex
	Verified bool   // the SHA-256 of Body, taken now, is that one
	Parts    []InputPart

	// Previous is the request before it in the session, "" for the first, and SharedPrefix how many bytes from the start
	// the two bodies have in common: what a provider's cache can use (M4).
	Previous     RequestID
	SharedPrefix int64
}

// InputPart is a piece of a body. The parts are in order; between two messages there is one comma that is part of neither. A
// message of which nothing can be sent (T2) is a part of no length, with no comma.
type InputPart struct {
	Kind   string // "head", "message" or "tail"
	Offset int64  // in bytes
	Length int64
	Role   Role   // of a message
	Source int64  // seq of the entry that a message says
	Turn   TurnID // the turn it belongs to
}

// Input rebuilds a request's body. The caller owns the result. Damage to the stored bytes is shown by Verified being false
// where a body can be rebuilt at all, else it is [ErrDamaged]. [ErrNoRequest].
func (s *Store) Input(ctx context.Context, id RequestID) (*Input, error) {
	const op = "show model input"
	r, err := s.findRequest(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	in := &Input{SHA256: hex.EncodeToString(r.sha256)}
	if in.Info, err = s.requestInfo(ctx, r); err != nil {
		return nil, s.fail(op, err)
	}
	sum, err := s.assemble(ctx, r, in)
	if err != nil {
		return nil, s.fail(op, err)
	}
	in.Verified = bytes.Equal(sum, r.sha256)
	return in, s.fail(op, s.compare(ctx, r, in))
}

// assemble fills in Body and Parts, and returns the SHA-256 of Body. Hashing takes a quarter of the time, so it goes on
// beside the reading.
func (s *Store) assemble(ctx context.Context, r storedRequest, in *Input) ([]byte, error) {
	turns, err := s.turnStarts(ctx, r.sid)
	if err != nil {
		return nil, err
	}
	in.Body = make([]byte, 0, r.bytes)
	in.Parts = make([]InputPart, 0, r.n+2)
	sum, hashed := sha256.New(), 0
	pieces := make(chan []byte, 16)
	var hasher sync.WaitGroup
	hasher.Go(func() { // ends when pieces is closed, before assemble returns
		for p := range pieces {
			sum.Write(p)
		}
	})
	finish := sync.OnceFunc(func() { close(pieces); hasher.Wait() })
	defer finish()
	add := func(p InputPart, start int) {
		p.Offset, p.Length = int64(start), int64(len(in.Body)-start)
		in.Parts = append(in.Parts, p)
		if n := len(in.Body); n-hashed >= batchBytes || p.Kind == "tail" {
			pieces <- in.Body[hashed:n]
			hashed = n
		}
	}
	in.Body = append(in.Body, r.head...)
	add(InputPart{Kind: "head"}, 0)
	rows, err := s.reads.QueryContext(ctx, selectFragments, r.sid, r.epoch, 0, r.n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		f, err := scanFragment(rows)
		if err != nil {
			return nil, err
		}
		in.Body = f.comma(in.Body)
		start := len(in.Body)
		if in.Body, err = f.append(in.Body); err != nil {
			return nil, err
		}
		add(InputPart{Kind: "message", Role: f.role(), Source: f.source, Turn: turns.at(f.source)}, start)
		n++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if n != r.n {
		return nil, fmt.Errorf("%w: %s has %d messages, %d are left", ErrDamaged, r.id, r.n, n)
	}
	start := len(in.Body)
	in.Body = append(in.Body, r.tail...)
	add(InputPart{Kind: "tail"}, start)
	finish()
	return sum.Sum(nil), nil
}

// compare fills in Previous and SharedPrefix.
func (s *Store) compare(ctx context.Context, r storedRequest, in *Input) error {
	var prev RequestID
	var epoch, n int
	err := s.reads.QueryRowContext(ctx, `SELECT id, epoch, n FROM request WHERE sid = ? AND seq < ? ORDER BY seq DESC LIMIT 1`,
		r.sid, r.seq).Scan(&prev, &epoch, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	in.Previous = prev
	if epoch == r.epoch && n > 0 && n <= r.n {
		// Head and first n fragments are the same rows; only what follows them is to be compared.
		end := in.Parts[n].Offset + in.Parts[n].Length
		in.SharedPrefix = end + int64(common(in.Body[end:], r.tail))
		return nil
	}
	body, _, err := s.Body(ctx, prev)
	if err != nil {
		return ignoreDamage(err)
	}
	defer body.Close()
	buf := make([]byte, 64<<10)
	for {
		k, err := body.Read(buf)
		same := common(in.Body[in.SharedPrefix:], buf[:k])
		in.SharedPrefix += int64(same)
		if same < k || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return ignoreDamage(err)
		}
	}
}

// ignoreDamage is for the request that another one is only compared with.
func ignoreDamage(err error) error {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoBlob) {
		return nil
	}
	return err
}

// common is the length of the longest common prefix.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// turnStarts are the turns of a session in order.
type turnStarts struct {
	ids  []TurnID
	seqs []int64
}

func (s *Store) turnStarts(ctx context.Context, sid int64) (t turnStarts, err error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT id, seq FROM turn WHERE sid = ? ORDER BY seq`, sid)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var id TurnID
		var seq int64
		if err := rows.Scan(&id, &seq); err != nil {
			return t, err
		}
		t.ids, t.seqs = append(t.ids, id), append(t.seqs, seq)
	}
	return t, rows.Err()
}

// at is the turn that an entry belongs to: the last that started at or before it. "" when there is none.
func (t turnStarts) at(seq int64) TurnID {
	lo, hi := 0, len(t.seqs)
	for lo < hi {
		if mid := (lo + hi) / 2; t.seqs[mid] <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return ""
	}
	return t.ids[lo-1]
}
