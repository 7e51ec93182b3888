package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
)

// Page reads what [MarkdownPage] needs to show the entries above since and below until of a session; until 0 is its end. That
// is those entries; of those before, the turn that since is in and the turns of the threads that go on in the page; and of
// those behind only what can say something about earlier ones: all of the turn that until is in, then few kinds. The cost is
// that of the page, hardly that of the session. [ErrNoSession].
func (s *Store) Page(ctx context.Context, id SessionID, since, until int64) ([]Entry, error) {
	const op = "read a page"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	end := int64(math.MaxInt64)
	if until > 0 {
		row := s.reads.QueryRowContext(ctx, `SELECT seq FROM turn WHERE sid = ? AND seq >= ? ORDER BY seq LIMIT 1`, sid, until)
		if err := row.Scan(&end); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, s.fail(op, err)
		}
	}
	page, err := s.entries(ctx, id, `SELECT seq, at, kind, hash, body FROM entry
		WHERE sid = ? AND seq > ? AND seq < ? ORDER BY seq`, sid, since, end)
	if err != nil {
		return nil, s.fail(op, err)
	}
	before, err := s.threads(ctx, id, sid, since, page)
	if err != nil || end == math.MaxInt64 {
		return append(before, page...), s.fail(op, err)
	}
	// A turn's own entries end before the next one starts. Of what stands behind, a turn tells that it redirects or that it
	// starts with a message, and a verdict may be late (K5).
	behind, err := s.entries(ctx, id, `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq >= ? AND kind IN
		('turn.started', 'verdict', 'revert.ended', 'message.delivered', 'message.returned') ORDER BY seq`, sid, end)
	return append(append(before, page...), behind...), s.fail(op, err)
}

// threads are the turns up to since that those of a page redirect or retry, and those that these do, and so on; and the last.
func (s *Store) threads(ctx context.Context, id SessionID, sid, since int64, page []Entry) ([]Entry, error) {
	const query = `SELECT e.seq, e.at, e.kind, e.hash, e.body FROM turn t JOIN entry e USING (sid, seq) WHERE t.sid = ? AND t.seq <= ?`
	out, err := s.entries(ctx, id, query+` ORDER BY t.seq DESC LIMIT 1`, sid, since)
	if err != nil {
		return nil, err
	}
	known := map[TurnID]bool{"": true}
	look := append(slices.Clone(page), out...)
	for _, e := range look {
		if b, ok := e.Body.(*TurnStarted); ok {
			known[b.Turn] = true
		}
	}
	for len(look) > 0 {
		b, ok := look[0].Body.(*TurnStarted)
		look = look[1:]
		if !ok {
			continue
		}
		for _, turn := range []TurnID{b.Redirects, b.Retries} {
			if known[turn] {
				continue
			}
			known[turn] = true
			found, err := s.entries(ctx, id, query+` AND t.id = ?`, sid, since, turn)
			if err != nil {
				return nil, err
			}
			out, look = append(out, found...), append(look, found...)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return out, nil
}

// entries decodes what a query for seq, at, kind, hash and body gives. One that does not decode has Damaged set.
func (s *Store) entries(ctx context.Context, id SessionID, query string, args ...any) ([]Entry, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, r.entry(id))
	}
	return out, rows.Err()
}
