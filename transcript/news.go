package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Place is how far a reader knows a session: the entries up to Seq, and the deltas up to N of the answer to Request that is
// being said, "" for none.
type Place struct {
	Seq     int64
	Request RequestID
	N       int64
}

// Said is a delta of an answer that another process is taking. N counts from 1 in each request. Part and Text are "" for what
// is journalled beside the text and shown to nobody.
type Said struct {
	Request RequestID
	Turn    TurnID
	Step    int
	N       int64
	Part    PartType
	Text    string
}

// News reads what was written into a session after a place: entries, and then the deltas of the answer that is being said.
// Both are of one moment: what was said of an answer is either among the deltas or in its entry, never in neither. It is
// made to be called often: without news it is one short query. [ErrNoSession].
func (s *Store) News(ctx context.Context, id SessionID, p Place) ([]Entry, []Said, error) {
	const op = "read what is new"
	var sid, seq int64
	var more bool
	err := s.reads.QueryRowContext(ctx, `SELECT sid, last_seq, EXISTS (SELECT 1 FROM journal j WHERE j.sid = s.sid AND (j.request <> ?2 OR j.n > ?3))
		FROM session s WHERE id = ?1`, id, p.Request, p.N).Scan(&sid, &seq, &more)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, fmt.Errorf("%s: %w: %s", op, ErrNoSession, id)
	}
	if err != nil || seq <= p.Seq && !more {
		return nil, nil, s.fail(op, err)
	}
	t, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, nil, s.fail(op, err)
	}
	defer t.Rollback()
	var entries []Entry
	err = each(ctx, t, func(rows *sql.Rows) error {
		r, err := scanEntry(rows)
		if err == nil {
			entries = append(entries, r.entry(id))
		}
		return err
	}, selectEntries, sid, p.Seq)
	if err != nil {
		return nil, nil, s.fail(op, err)
	}
	var said []Said
	err = each(ctx, t, func(rows *sql.Rows) error {
		var d Said
		err := rows.Scan(&d.Request, &d.Turn, &d.Step, &d.N, &d.Part, &d.Text)
		if d.Part == journalExtra {
			d.Part, d.Text = "", ""
		}
		said = append(said, d)
		return err
	}, `SELECT j.request, r.turn, r.step, j.n, j.part, j.text FROM journal j JOIN request r ON r.id = j.request
		WHERE j.sid = ? AND (j.request <> ? OR j.n > ?) ORDER BY r.num, j.n`, sid, p.Request, p.N)
	return entries, said, s.fail(op, err)
}

func each(ctx context.Context, t *sql.Tx, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := t.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Runner tells whether the session has an open turn, and whether a daemon that lives holds its lease: one that is open and
// has no runner is for [Log.Repair].
func (l *Log) Runner(ctx context.Context) (open, alive bool, err error) {
	var owner string
	var expires int64
	err = l.st.reads.QueryRowContext(ctx, `SELECT coalesce(l.owner, ''), coalesce(l.expires, 0)
		FROM turn t LEFT JOIN lease l USING (sid) WHERE t.sid = ? AND t.ended IS NULL`, l.sid).Scan(&owner, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, false, nil
	case err != nil:
		return false, false, l.st.fail("look for the session's runner", err)
	}
	return true, expires > millis(time.Now()) && (owner == l.st.opt.Owner || !l.st.alive.gone(owner)), nil
}
