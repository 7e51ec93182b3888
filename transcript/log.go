package transcript

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Log is the writer of one session. Its methods may be called from any goroutine and run one after another; Session, Opened
// and Seq never wait.
//
// A Log keeps no copy of the log's head: every write reads it from the database, under the lock, so that two processes that
// write into one session interleave and never overwrite. What it keeps is the place where its last request ended
// (see view), and that is thrown away whenever it may be wrong.
type Log struct {
	st     *Store
	sid    int64
	id     SessionID
	opened SessionOpened
	seq    atomic.Int64

	mu     sync.Mutex
	leased bool  // this log took the lease and did not release it
	view   *view // nil: to be made from the database
}

// NewSession opens a session: its entry 1 is o.
func (s *Store) NewSession(ctx context.Context, o SessionOpened) (*Log, error) {
	l := &Log{st: s, id: NewSessionID(), opened: o}
	err := s.write(ctx, "new session", func(t *tx) error {
		h, err := t.newSession(l)
		if err != nil {
			return err
		}
		_, err = t.append(&h, &o)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.seq.Store(1)
	return l, nil
}

// newSession inserts the row of a session that has no entry yet. Its number is that of no other, also of none that was
// deleted.
func (t *tx) newSession(l *Log) (head, error) {
	now, o := millis(time.Now()), l.opened
	err := t.row(`INSERT INTO session (sid, id, workspace, title, parent, created, updated, last_seq, last_hash)
		VALUES (1 + max((SELECT coalesce(max(sid), 0) FROM session), (SELECT coalesce(max(sid), 0) FROM deleted)),
		?, ?, ?, ?, ?, ?, 0, ?) RETURNING sid`,
		[]any{l.id, o.Workspace, o.Title, o.Parent, now, now, make([]byte, sha256.Size)}, &l.sid)
	if err != nil {
		return head{}, err
	}
	return t.head(l)
}

// Log opens the writer of a session, without reading what the session says. [ErrNoSession].
func (s *Store) Log(ctx context.Context, id SessionID) (*Log, error) {
	const op = "open session"
	l := &Log{st: s, id: id}
	var seq int64
	var kind Kind
	var body []byte
	err := s.reads.QueryRowContext(ctx, `SELECT s.sid, s.last_seq, s.workspace, s.title, s.parent, coalesce(e.kind, ''), e.body
		FROM session s LEFT JOIN entry e ON e.sid = s.sid AND e.seq = 1 WHERE s.id = ?`, id).
		Scan(&l.sid, &seq, &l.opened.Workspace, &l.opened.Title, &l.opened.Parent, &kind, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%s: %w: %s", op, ErrNoSession, id)
	}
	if err != nil {
		return nil, s.fail(op, err)
	}
	// A damaged first entry leaves what the session's row says (C5).
	if b, err := decodeBody(kind, body); err == nil {
		if o, ok := b.(*SessionOpened); ok {
			l.opened = *o
		}
	}
	l.seq.Store(seq)
	return l, nil
}

// Session is the session's id.
func (l *Log) Session() SessionID { return l.id }

// Opened is the session's first entry.
func (l *Log) Opened() SessionOpened { return l.opened }

// Seq is the seq of the newest entry that this Log knows of: it wrote it, or it was there when this Log last wrote.
func (l *Log) Seq() int64 { return l.seq.Load() }

// Append appends entries in one transaction; when it returns they are committed (invariant 1). They share their bodies
// with the caller, who leaves them unchanged. Errors: [ErrTurnOpen], [ErrTurnEnded], [ErrRepeated], [ErrLeaseLost], and
// those of a write. The kinds that need more than an entry are refused: requests and epochs are written by
// [Log.Send], session.opened by [Store.NewSession].
func (l *Log) Append(ctx context.Context, bodies ...Body) ([]Entry, error) {
	for _, b := range bodies {
		switch b.(type) {
		case *SessionOpened, *EpochOpened, *RequestSent:
			return nil, fmt.Errorf("append: %s is not for Append", b.Kind())
		}
	}
	return l.write(ctx, "append", func(t *tx, h *head) ([]Entry, error) { return t.append(h, bodies...) })
}

// write runs f in a transaction on the session's head. Entries that f returns are the result, once they are committed.
func (l *Log) write(ctx context.Context, op string, f func(t *tx, h *head) ([]Entry, error)) ([]Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Entry
	var seq int64
	err := l.st.write(ctx, op, func(t *tx) error {
		h, err := t.head(l)
		if err != nil {
			return err
		}
		if l.leased && h.owner != l.st.opt.Owner {
			return fmt.Errorf("%w: %s", ErrLeaseLost, l.id)
		}
		out, err = f(t, &h)
		seq = h.seq
		return err
	})
	if err != nil {
		l.view = nil // it may be ahead of what the database kept
		return nil, err
	}
	l.seq.Store(seq)
	return out, nil
}

// head is a session's newest entry within a transaction.
type head struct {
	sid   int64
	id    SessionID
	seq   int64
	hash  [sha256.Size]byte
	title string
	owner string // of the lease, live or not; "" when there is none
}

func (t *tx) head(l *Log) (head, error) {
	h := head{sid: l.sid, id: l.id}
	var hash []byte
	err := t.row(`SELECT s.last_seq, s.last_hash, s.title, coalesce(l.owner, '')
		FROM session s LEFT JOIN lease l USING (sid) WHERE sid = ?`, []any{l.sid}, &h.seq, &hash, &h.title, &h.owner)
	copy(h.hash[:], hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %s was deleted", ErrNoSession, l.id)
	}
	return h, err
}

// append writes entries behind h and moves it on.
func (t *tx) append(h *head, bodies ...Body) ([]Entry, error) {
	now := time.Now()
	return t.appendAt(h, now, bodies, func(int) time.Time { return now })
}

// appendAt is append with a time of its own for each entry. It is the only place that inserts into the entry table.
func (t *tx) appendAt(h *head, now time.Time, bodies []Body, when func(i int) time.Time) ([]Entry, error) {
	if len(bodies) == 0 {
		return nil, nil
	}
	out := make([]Entry, 0, len(bodies))
	for i, b := range bodies {
		at := when(i)
		data, err := encodeBody(b)
		if err != nil {
			return nil, err
		}
		h.seq++
		h.hash = entryHash(h.hash, h.id, h.seq, millis(at), b.Kind(), data)
		if _, err := t.exec(`INSERT INTO entry (sid, seq, at, kind, hash, body) VALUES (?, ?, ?, ?, ?, ?)`,
			h.sid, h.seq, millis(at), string(b.Kind()), h.hash[:], data); err != nil {
			return nil, err
		}
		if err := t.index(h, b); err != nil {
			return nil, err
		}
		out = append(out, Entry{Session: h.id, Seq: h.seq, At: fromMillis(millis(at)), Body: b, Hash: h.hash})
	}
	_, err := t.exec(`UPDATE session SET last_seq = ?, last_hash = ?, updated = ?, title = ? WHERE sid = ?`,
		h.seq, h.hash[:], millis(now), h.title, h.sid)
	return out, err
}

// index keeps the turn table, the uses of blobs and the session's title in step with an entry just written.
//
// Invariant: a session has at most one open turn, and a turn ends once (TestATurnStartsAloneAndEndsOnce).
func (t *tx) index(h *head, b Body) error {
	if err := t.useBlobs(h.sid, seenBlobs(b)...); err != nil {
		return err
	}
	switch b := b.(type) {
	case *TurnStarted:
		if b.Turn == "" {
			return errors.New("a turn without an id")
		}
		var open TurnID
		switch err := t.row(`SELECT id FROM turn WHERE sid = ? AND ended IS NULL`, []any{h.sid}, &open); {
		case err == nil:
			return fmt.Errorf("%w: %s", ErrTurnOpen, open)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if b.ClientID != "" {
			var other TurnID
			switch err := t.row(turnByClientID, []any{h.sid, b.ClientID}, &other); {
			case err == nil:
				return fmt.Errorf("%w: %s of %s", ErrRepeated, b.ClientID, other)
			case !errors.Is(err, sql.ErrNoRows):
				return err
			}
		}
		if h.title == "" {
			h.title = titleOf(b.PromptText())
		}
		_, err := t.exec(`INSERT INTO turn (id, sid, seq, client_id, ended, outcome) VALUES (?, ?, ?, ?, NULL, '')`,
			string(b.Turn), h.sid, h.seq, b.ClientID)
		return err
	case *EpochOpened:
		return t.useBlobs(h.sid, b.Head, b.Tail)
	case *FileChanged:
		return t.useBlobs(h.sid, b.Before, b.After)
	case *RevertStarted:
		return t.indexRevert(h, b)
	case *ToolSettled:
		return t.useBlobs(h.sid, b.Full)
	case *TurnEnded:
		n, err := t.exec(`UPDATE turn SET ended = ?, outcome = ? WHERE id = ? AND sid = ? AND ended IS NULL`,
			h.seq, string(b.Outcome), string(b.Turn), h.sid)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: %s", ErrTurnEnded, b.Turn)
		}
		return err
	}
	return nil
}

const turnByClientID = `SELECT id FROM turn WHERE sid = ? AND client_id = ? AND client_id <> ''`

// titleOf is the first line of a prompt that says something, cut to 80 characters.
func titleOf(prompt string) string {
	for line := range strings.Lines(prompt) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if utf8.RuneCountInString(line) <= 80 {
			return line
		}
		return string([]rune(line)[:79]) + "…"
	}
	return ""
}

// entryHash chains an entry to the one before it. Every piece is preceded by its length, so that no two entries hash
// the same bytes.
func entryHash(prev [sha256.Size]byte, id SessionID, seq, at int64, kind Kind, body []byte) [sha256.Size]byte {
	buf := make([]byte, 0, 160)
	piece := func(p string) { buf = append(binary.BigEndian.AppendUint64(buf, uint64(len(p))), p...) }
	piece(string(prev[:]))
	piece(string(id))
	buf = binary.BigEndian.AppendUint64(buf, uint64(seq))
	buf = binary.BigEndian.AppendUint64(buf, uint64(at))
	piece(string(kind))
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(body)))
	h := sha256.New()
	h.Write(buf)
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}
