package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Deleted says what [Store.Delete] has removed.
type Deleted struct {
	Session  SessionID
	Title    string
	Turns    int
	Entries  int
	Requests []RequestID
	Blobs    int   // that were kept for this session alone
	Bytes    int64 // of all that: what the session said and what was stored to show its requests
	// Reclaimed is by how many bytes the database file is smaller now. The room that it still has is used again.
	Reclaimed int64
}

// Delete removes a session for good: its user's right, and the one exception to the log being kept. All of its rows go, and
// the blobs that no other session has; every other session stays as it is, with its chain of hashes, also forks of this one.
// What is removed is overwritten in the file. Errors: [ErrNoSession]; a [*LeaseError] while a daemon runs a turn in it, this
// one included.
func (s *Store) Delete(ctx context.Context, id SessionID) (Deleted, error) {
	const op = "delete session"
	d := Deleted{Session: id}
	err := s.write(ctx, op, func(t *tx) error {
		var sid int64
		err := t.row(`SELECT sid, title, last_seq FROM session WHERE id = ?`, []any{string(id)}, &sid, &d.Title, &d.Entries)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s", ErrNoSession, id)
		}
		if err != nil {
			return err
		}
		if err := t.unused(s, id, sid); err != nil {
			return err
		}
		// SQLite writes zeros over what the statements below remove.
		if _, err := t.w.conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA secure_delete = 1`); err != nil {
			return err
		}
		return t.delete(sid, &d)
	})
	if s.w != nil {
		s.w.once(`PRAGMA secure_delete = 0`)
	}
	if err != nil {
		return Deleted{}, err
	}
	d.Reclaimed = s.reclaim(ctx)
	return d, nil
}

// unused refuses a session that a daemon runs a turn in.
func (t *tx) unused(s *Store, id SessionID, sid int64) error {
	var owner string
	var expires int64
	err := t.row(`SELECT owner, expires FROM lease WHERE sid = ?`, []any{sid}, &owner, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case expires > millis(time.Now()) && (owner == s.opt.Owner || !s.alive.gone(owner)):
		return &LeaseError{Session: id, Owner: owner, Expires: fromMillis(expires)}
	}
	return nil
}

// delete removes the rows of a session, the blobs of its own first: the triggers let go only what belongs to sessions in the
// deleted table.
func (t *tx) delete(sid int64, d *Deleted) error {
	if _, err := t.exec(`INSERT INTO deleted (sid, at) VALUES (?, ?)`, sid, millis(time.Now())); err != nil {
		return err
	}
	if err := t.row(`SELECT (SELECT count(*) FROM turn WHERE sid = ?1),
		coalesce((SELECT sum(length(body)) FROM entry WHERE sid = ?1), 0) +
		coalesce((SELECT sum(length(parts)) FROM fragment WHERE sid = ?1), 0) +
		coalesce((SELECT sum(length(CAST(text AS BLOB))) FROM journal WHERE sid = ?1), 0)`,
		[]any{sid}, &d.Turns, &d.Bytes); err != nil {
		return err
	}
	if err := t.sentRequests(sid, &d.Requests); err != nil {
		return err
	}
	const own = `FROM blob WHERE sha256 IN (SELECT sha256 FROM blob_use u WHERE sid = ?1
		AND NOT EXISTS (SELECT 1 FROM blob_use o WHERE o.sha256 = u.sha256 AND o.sid <> ?1))`
	var blobBytes int64
	if err := t.row(`SELECT count(*), coalesce(sum(length(body)), 0) `+own, []any{sid}, &d.Blobs, &blobBytes); err != nil {
		return err
	}
	d.Bytes += blobBytes
	if _, err := t.exec(`DELETE `+own, sid); err != nil {
		return err
	}
	for _, q := range []string{
		`DELETE FROM blob_use WHERE sid = ?`, `DELETE FROM journal WHERE sid = ?`, `DELETE FROM lease WHERE sid = ?`,
		`DELETE FROM request WHERE sid = ?`, `DELETE FROM fragment WHERE sid = ?`, `DELETE FROM epoch WHERE sid = ?`,
		`DELETE FROM turn WHERE sid = ?`, `DELETE FROM entry WHERE sid = ?`, `DELETE FROM session WHERE sid = ?`,
	} {
		if _, err := t.exec(q, sid); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) sentRequests(sid int64, out *[]RequestID) error {
	rows, err := t.rows(`SELECT id FROM request WHERE sid = ? ORDER BY num`, sid)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id RequestID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		*out = append(*out, id)
	}
	return rows.Err()
}

// A file is made smaller when a part of at least 1/reclaimShare is empty, and when no more than reclaimMost bytes must be
// written anew for it: other daemons wait meanwhile.
const (
	reclaimShare = 4
	reclaimMost  = 128 << 20
)

// reclaim gives room in the file back where that is worth it and nobody is disturbed: no turn runs anywhere. It is no
// failure when it cannot; the next deletion tries again. The write-ahead log is folded in all the same, so that what was
// removed is not left there either.
func (s *Store) reclaim(ctx context.Context) int64 {
	var pages, free, size, leases int64
	err := s.reads.QueryRowContext(ctx, `SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count),
		(SELECT page_size FROM pragma_page_size), (SELECT count(*) FROM lease WHERE expires > ?)`, millis(time.Now())).
		Scan(&pages, &free, &size, &leases)
	if err != nil {
		return 0
	}
	before := pages * size
	// Not for long: another process may hold the file.
	script := []string{`PRAGMA busy_timeout = 200`}
	vacuum := leases == 0 && free*reclaimShare >= pages && (pages-free)*size <= reclaimMost
	if vacuum {
		script = append(script, `PRAGMA temp_store = MEMORY`, `VACUUM`)
	}
	script = append(script, `PRAGMA wal_checkpoint(TRUNCATE)`, fmt.Sprintf(`PRAGMA busy_timeout = %d`, s.opt.BusyTimeout.Milliseconds()))
	for _, q := range script {
		s.w.once(q)
	}
	if err := s.reads.QueryRowContext(ctx, `SELECT page_count FROM pragma_page_count`).Scan(&pages); err != nil {
		return 0
	}
	return max(0, before-pages*size)
}

// once runs a statement outside of any transaction, where a failure does not matter.
func (w *writer) once(q string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn.ExecContext(context.Background(), q)
}
