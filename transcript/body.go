package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
)

const selectFragments = `SELECT f.n, f.source, f.size, f.parts, coalesce(e.kind, ''), e.body FROM fragment f
	LEFT JOIN entry e ON e.sid = f.sid AND e.seq = f.source
	WHERE f.sid = ? AND f.epoch = ? AND f.n > ? AND f.n <= ? ORDER BY f.n`

// storedFragment is a fragment with its source entry. parts and body are valid until the next row is read.
type storedFragment struct {
	n           int
	source      int64
	size        int
	kind        Kind
	parts, body sql.RawBytes
}

func scanFragment(rows *sql.Rows) (f storedFragment, err error) {
	err = rows.Scan(&f.n, &f.source, &f.size, &f.parts, &f.kind, &f.body)
	return f, err
}

// append rebuilds the fragment behind dst. [ErrDamaged].
func (f storedFragment) append(dst []byte) ([]byte, error) {
	out, err := appendParts(dst, f.parts, f.body)
	if err == nil && len(out)-len(dst) != f.size {
		err = fmt.Errorf("%d bytes instead of %d", len(out)-len(dst), f.size)
	}
	if err != nil {
		return dst, fmt.Errorf("%w: fragment %d from entry %d: %w", ErrDamaged, f.n, f.source, err)
	}
	return out, nil
}

// comma puts what stands between two messages behind dst: nothing before the first one, and before one that is not sent.
func (f storedFragment) comma(dst []byte) []byte {
	if f.n > 1 && f.size > 0 {
		return append(dst, ',')
	}
	return dst
}

func (f storedFragment) role() Role {
	switch f.kind {
	case KindAnswer:
		return RoleAssistant
	case KindToolSettled:
		return RoleTool
	}
	return RoleUser
}

// storedRequest is a request's row with the head and tail of its epoch.
type storedRequest struct {
	id         RequestID
	sid        int64
	session    SessionID
	seq        int64
	epoch, n   int
	bytes      int64
	sha256     []byte
	head, tail []byte
}

// findRequest reads a request, without its messages. [ErrNoRequest].
func (s *Store) findRequest(ctx context.Context, id RequestID) (r storedRequest, err error) {
	r.id = id
	var head, tail []byte
	err = s.reads.QueryRowContext(ctx, `SELECT r.sid, s.id, r.seq, r.epoch, r.n, r.bytes, r.sha256,
		coalesce(e.head, x''), coalesce(e.tail, x'')
		FROM request r JOIN session s USING (sid) LEFT JOIN epoch e ON e.sid = r.sid AND e.epoch = r.epoch
		WHERE r.id = ?`, id).Scan(&r.sid, &r.session, &r.seq, &r.epoch, &r.n, &r.bytes, &r.sha256, &head, &tail)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("%w: %s", ErrNoRequest, id)
	}
	if err != nil {
		return r, err
	}
	if r.head, err = s.Blob(ctx, hex.EncodeToString(head)); err != nil {
		return r, err
	}
	r.tail, err = s.Blob(ctx, hex.EncodeToString(tail))
	return r, err
}

// Body opens the body of a request for reading: exactly the bytes whose hash [Send] returned (M2, P3), and how many there
// are. It reads in batches and needs about half a megabyte, or twice the largest message, however long the body is; between
// two batches no read transaction is open, so that a slow connection never keeps SQLite from folding its log. Reading
// ends with the cause of ctx. Should the stored bytes not be those that were hashed, the last read fails with
// [ErrDamaged] before the tail was given out, so that a changed request is never complete. Errors: [ErrNoRequest].
//
// One goroutine reads; any may close it meanwhile, which ends it. It holds nothing that must be freed.
func (s *Store) Body(ctx context.Context, id RequestID) (io.ReadCloser, int64, error) {
	const op = "read request"
	r, err := s.findRequest(ctx, id)
	if err != nil {
		return nil, 0, s.fail(op, err)
	}
	sum := sha256.New()
	sum.Write(r.head)
	return &bodyReader{s: s, ctx: ctx, r: r, buf: r.head, sum: sum}, r.bytes, nil
}

const (
	batchFragments = 64
	batchBytes     = 256 << 10
)

type bodyReader struct {
	s   *Store
	ctx context.Context
	r   storedRequest

	mu    sync.Mutex // net/http closes a request's body while another goroutine of it still reads
	buf   []byte     // to be given out
	store []byte     // memory of the batch, used again
	n     int        // fragments read
	tail  bool       // the tail is in buf or was given out
	sum   hash.Hash
	err   error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.buf) == 0 && b.err == nil {
		switch {
		case b.n < b.r.n:
			b.err = b.batch()
		case !b.tail:
			b.tail = true
			b.sum.Write(b.r.tail)
			if !bytes.Equal(b.sum.Sum(nil), b.r.sha256) {
				b.err = fmt.Errorf("read request: %w: %s is not what was hashed", ErrDamaged, b.r.id)
			} else {
				b.buf = b.r.tail
			}
		default:
			b.err = io.EOF
		}
	}
	if len(b.buf) == 0 {
		return 0, b.err
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// batch reads the next fragments into b.buf.
func (b *bodyReader) batch() error {
	if err := context.Cause(b.ctx); err != nil {
		return err
	}
	const op = "read request"
	rows, err := b.s.reads.QueryContext(b.ctx, selectFragments, b.r.sid, b.r.epoch, b.n, min(b.n+batchFragments, b.r.n))
	if err != nil {
		return b.s.fail(op, err)
	}
	defer rows.Close() // ends the read transaction
	buf, before := b.store[:0], b.n
	for len(buf) < batchBytes && rows.Next() {
		f, err := scanFragment(rows)
		if err != nil {
			return b.s.fail(op, err)
		}
		if buf, err = f.append(f.comma(buf)); err != nil {
			return b.s.fail(op, err)
		}
		b.n++
	}
	if err := rows.Err(); err != nil {
		return b.s.fail(op, err)
	}
	if b.n == before {
		return b.s.fail(op, fmt.Errorf("%w: fragment %d of %s is missing", ErrDamaged, b.n+1, b.r.id))
	}
	b.sum.Write(buf)
	b.buf, b.store = buf, buf
	return nil
}

// Close ends the reading: later reads fail with [io.ErrClosedPipe].
func (b *bodyReader) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf, b.store, b.err = nil, nil, io.ErrClosedPipe
	return nil
}
