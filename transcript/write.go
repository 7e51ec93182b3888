package transcript

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// writer is the one connection of this process that writes.
type writer struct {
	db   *sql.DB
	conn *sql.Conn

	fault func(place string) // see Options; never nil

	mu    sync.Mutex // held during a transaction, and over stmts
	stmts map[string]*sql.Stmt
}

func openWriter(dsn string) (*writer, error) {
	// As SQLite itself is built on Linux: as durable as fsync and about twice as fast. It is a setting of the process, and
	// where there is none, fsync stays.
	sqlite.Fdatasync(true)
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		db.Close()
		return nil, err
	}
	return &writer{db: db, conn: conn, fault: func(string) {}, stmts: map[string]*sql.Stmt{}}, nil
}

func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx := context.Background()
	// A reader in another process may hold the log up; then it is folded in later, by whoever comes last.
	w.conn.ExecContext(ctx, `PRAGMA busy_timeout = 100`)
	w.conn.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	for _, st := range w.stmts {
		st.Close()
	}
	return errors.Join(w.conn.Close(), w.db.Close())
}

// prepared returns the statement of a constant query, made when first used. w.mu is held.
func (w *writer) prepared(q string) (*sql.Stmt, error) {
	if st := w.stmts[q]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), q)
	if err != nil {
		return nil, err
	}
	w.stmts[q] = st
	return st, nil
}

// tx is a write transaction, valid until the function that got it returns. Queries are constants: each is prepared once.
//
// Its statements run without the caller's context. Once the lock is taken the work is short, and a write that is broken
// off half-way would leave its caller not knowing what was recorded.
type tx struct{ w *writer }

// do runs f in one transaction: committed when f returns nil, else rolled back. Waiting for another process's lock ends
// with ctx, or after the busy timeout. op is what faults are told.
func (w *writer) do(ctx context.Context, op string, f func(t *tx) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	begin, err := w.prepared(`BEGIN IMMEDIATE`)
	if err != nil {
		return err
	}
	if _, err := begin.ExecContext(ctx); err != nil {
		if c := context.Cause(ctx); c != nil {
			// The wait can have ended with the lock taken.
			w.conn.ExecContext(context.Background(), `ROLLBACK`)
			return c
		}
		return err
	}
	t := &tx{w}
	if err = f(t); err == nil {
		w.fault("before: " + op)
		_, err = t.exec(`COMMIT`)
	}
	if err != nil {
		// SQLite may have rolled back by itself, on a full disk for one; then this says that there is no transaction.
		w.conn.ExecContext(context.Background(), `ROLLBACK`)
		return err
	}
	w.fault("after: " + op)
	return nil
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(q string, args ...any) (int64, error) {
	st, err := t.w.prepared(q)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// rows runs a query. The caller closes the rows before it writes.
func (t *tx) rows(q string, args ...any) (*sql.Rows, error) {
	st, err := t.w.prepared(q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(context.Background(), args...)
}

// row scans the one row of a query into dest; [sql.ErrNoRows] when there is none.
func (t *tx) row(q string, args []any, dest ...any) error {
	st, err := t.w.prepared(q)
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// write runs f in a transaction of the store.
func (s *Store) write(ctx context.Context, op string, f func(t *tx) error) error {
	if s.w == nil {
		return s.fail(op, errReadOnlyStore)
	}
	return s.fail(op, s.w.do(ctx, op, f))
}

var errReadOnlyStore = wrapped{ErrReadOnly, "the store was opened read-only"}

// wrapped is a sentinel in other words.
type wrapped struct {
	sentinel error
	text     string
}

func (w wrapped) Error() string { return w.text }
func (w wrapped) Unwrap() error { return w.sentinel }

func millis(t time.Time) int64      { return t.UnixMilli() }
func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
