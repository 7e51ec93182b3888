package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SessionInfo is a session as lists show it.
type SessionInfo struct {
	ID          SessionID
	Workspace   string
	Title       string // as given, else the first line of the first prompt; at most 80 characters then
	Parent      SessionID
	Created     time.Time
	Updated     time.Time // of the newest entry
	Seq         int64     // of the newest entry
	Turns       int
	LastOutcome Outcome // "" while the last turn runs, or before the first
}

// SessionQuery selects sessions. The zero value selects all of them, 50 at a time.
type SessionQuery struct {
	Workspace string // "" means all
	Query     string // a part of the title, in any case; "" means all
	Limit     int    // 0 means 50
	Cursor    string // from the call before; "" starts with the newest
}

const selectSession = `SELECT s.sid, s.id, s.workspace, s.title, s.parent, s.created, s.updated, s.last_seq,
	(SELECT count(*) FROM turn t WHERE t.sid = s.sid),
	coalesce((SELECT outcome FROM turn t WHERE t.sid = s.sid ORDER BY seq DESC LIMIT 1), '') FROM session s `

func scanSession(row interface{ Scan(...any) error }) (i SessionInfo, sid int64, err error) {
	var created, updated int64
	err = row.Scan(&sid, &i.ID, &i.Workspace, &i.Title, &i.Parent, &created, &updated, &i.Seq, &i.Turns, &i.LastOutcome)
	i.Created, i.Updated = fromMillis(created), fromMillis(updated)
	return i, sid, err
}

// Session describes one session. [ErrNoSession].
func (s *Store) Session(ctx context.Context, id SessionID) (SessionInfo, error) {
	i, _, err := scanSession(s.reads.QueryRowContext(ctx, selectSession+`WHERE s.id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return SessionInfo{}, fmt.Errorf("session: %w: %s", ErrNoSession, id)
	}
	return i, s.fail("session", err)
}

// Sessions lists sessions, the most recently active first, and the cursor of the next page, "" after the last.
func (s *Store) Sessions(ctx context.Context, q SessionQuery) ([]SessionInfo, string, error) {
	const op = "list sessions"
	if q.Limit <= 0 {
		q.Limit = 50
	}
	where, args := []string{"TRUE"}, []any{}
	if q.Cursor != "" {
		var updated, sid int64
		if _, err := fmt.Sscanf(q.Cursor, "%d.%d", &updated, &sid); err != nil {
			return nil, "", fmt.Errorf("%s: %w: %q", op, ErrBadCursor, q.Cursor)
		}
		where, args = append(where, "(s.updated, s.sid) < (?, ?)"), append(args, updated, sid)
	}
	if q.Workspace != "" {
		where, args = append(where, "s.workspace = ?"), append(args, q.Workspace)
	}
	if q.Query != "" {
		pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Query)
		where, args = append(where, `s.title LIKE ? ESCAPE '\'`), append(args, "%"+pattern+"%")
	}
	rows, err := s.reads.QueryContext(ctx, selectSession+"WHERE "+strings.Join(where, " AND ")+
		" ORDER BY s.updated DESC, s.sid DESC LIMIT ?", append(args, q.Limit+1)...)
	if err != nil {
		return nil, "", s.fail(op, err)
	}
	defer rows.Close()
	var out []SessionInfo
	var cursor string
	for rows.Next() {
		i, sid, err := scanSession(rows)
		if err != nil {
			return nil, "", s.fail(op, err)
		}
		if len(out) == q.Limit { // one more was asked for to know whether there is a next page
			return out, cursor, nil
		}
		out = append(out, i)
		cursor = fmt.Sprintf("%d.%d", millis(i.Updated), sid)
	}
	return out, "", s.fail(op, rows.Err())
}

// Rename gives a session another title. The title is no part of the log: no model sees it. [ErrNoSession].
func (s *Store) Rename(ctx context.Context, id SessionID, title string) error {
	return s.write(ctx, "rename session", func(t *tx) error {
		n, err := t.exec(`UPDATE session SET title = ? WHERE id = ?`, title, string(id))
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: %s", ErrNoSession, id)
		}
		return err
	})
}

// sidOf finds a session's row. [ErrNoSession].
func (s *Store) sidOf(ctx context.Context, id SessionID) (sid int64, err error) {
	err = s.reads.QueryRowContext(ctx, `SELECT sid FROM session WHERE id = ?`, id).Scan(&sid)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: %s", ErrNoSession, id)
	}
	return sid, err
}

// Entries returns the entries of a session with a seq above after, at most limit of them, 0 meaning all. One that does
// not decode is returned with Damaged set (C5). [ErrNoSession].
func (s *Store) Entries(ctx context.Context, id SessionID, after int64, limit int) ([]Entry, error) {
	const op = "read entries"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	if limit <= 0 {
		limit = -1
	}
	out, err := s.entries(ctx, id, selectEntries+` LIMIT ?`, sid, after, limit)
	return out, s.fail(op, err)
}

const selectEntries = `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq > ? ORDER BY seq`

// rawEntry is an entry as stored. Its body and hash are valid until the next row is read.
type rawEntry struct {
	seq, at    int64
	kind       Kind
	hash, body sql.RawBytes
}

func scanEntry(rows *sql.Rows) (r rawEntry, err error) {
	err = rows.Scan(&r.seq, &r.at, &r.kind, &r.hash, &r.body)
	return r, err
}

// entry decodes r. The result shares no memory with r.
func (r rawEntry) entry(id SessionID) Entry {
	e := Entry{Session: id, Seq: r.seq, At: fromMillis(r.at)}
	copy(e.Hash[:], r.hash)
	b, err := decodeBody(r.kind, r.body)
	if err != nil {
		e.Damaged = err.Error()
	} else {
		e.Body = b
	}
	return e
}

// TurnInfo is one turn.
type TurnInfo struct {
	Session  SessionID
	Turn     TurnID
	Seq      int64        // of turn.started
	Started  *TurnStarted // nil when the entry is damaged
	EndedSeq int64        // 0 while it is open
	Ended    *TurnEnded   // nil while it is open
	Newest   bool         // the session's last turn: Keep and Recheck are for it alone (F4, K5)
}

// Turn finds a turn in any session. [ErrNoTurn].
func (s *Store) Turn(ctx context.Context, id TurnID) (TurnInfo, error) {
	const op = "turn"
	i := TurnInfo{Turn: id}
	var started, ended []byte
	err := s.reads.QueryRowContext(ctx, `SELECT s.id, t.seq, coalesce(t.ended, 0), a.body, b.body,
		t.seq = (SELECT max(seq) FROM turn n WHERE n.sid = t.sid)
		FROM turn t JOIN session s USING (sid) LEFT JOIN entry a ON a.sid = t.sid AND a.seq = t.seq
		LEFT JOIN entry b ON b.sid = t.sid AND b.seq = t.ended WHERE t.id = ?`, id).
		Scan(&i.Session, &i.Seq, &i.EndedSeq, &started, &ended, &i.Newest)
	if errors.Is(err, sql.ErrNoRows) {
		return TurnInfo{}, fmt.Errorf("%s: %w: %s", op, ErrNoTurn, id)
	}
	if err != nil {
		return TurnInfo{}, s.fail(op, err)
	}
	if b, err := decodeBody(KindTurnStarted, started); err == nil {
		i.Started = b.(*TurnStarted)
	}
	if i.EndedSeq > 0 {
		b, err := decodeBody(KindTurnEnded, ended)
		if err != nil {
			b = &TurnEnded{Turn: id, Outcome: TurnAbandoned, Error: "the entry is damaged"}
		}
		i.Ended = b.(*TurnEnded)
	}
	return i, nil
}

// TurnByClientID finds the turn that a client started under an id of its own, and reports whether there is one.
func (s *Store) TurnByClientID(ctx context.Context, id SessionID, clientID string) (TurnID, bool, error) {
	const op = "turn by client id"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return "", false, s.fail(op, err)
	}
	var turn TurnID
	err = s.reads.QueryRowContext(ctx, turnByClientID, sid, clientID).Scan(&turn)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return turn, err == nil, s.fail(op, err)
}
