package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kinds of entries about reverts. A revert has one revert.started and one revert.ended; between two turns none stays
// open, unless the daemon died: then [Log.Repair] ends it by evidence.
const (
	KindRevertStarted Kind = "revert.started"
	KindRevertEnded   Kind = "revert.ended"
)

// RevertID names a revert: the session and the seq of its revert.started, as "s_….57". It is made of where the entry is, and
// in no entry: the copy of a revert in a fork has a name of its own.
type RevertID string

// RevertAt names the revert whose revert.started is entry seq of a session.
func RevertAt(session SessionID, seq int64) RevertID {
	return RevertID(string(session) + "." + strconv.FormatInt(seq, 10))
}

// Entry is the session and the seq that an id names; ok is false when it is no such id.
func (id RevertID) Entry() (session SessionID, seq int64, ok bool) {
	s, n, ok := strings.Cut(string(id), ".")
	seq, err := strconv.ParseInt(n, 10, 64)
	return SessionID(s), seq, ok && err == nil && seq > 0 && s != ""
}

// RevertStarted is the intent of a revert: it is committed before the first of its files is touched, as [FileChanged] is
// (C3). It is the user's, and part of no turn.
type RevertStarted struct {
	Of       TurnID         `json:"of,omitzero"`       // the turn whose changes are undone; "" in an undo
	Since    bool           `json:"since,omitzero"`    // and those of all after it
	Undoes   int64          `json:"undoes,omitzero"`   // seq of the revert.started that is undone; 0: it undoes a turn
	Restores bool           `json:"restores,omitzero"` // it puts back what models and commands had changed
	Files    []RevertedFile `json:"files"`             // those that are to be written, each once
}

// RevertedFile is a file that a revert is about to write. Before is what it holds then, After what it is to hold: the SHA-256
// of a blob, "" for no file.
type RevertedFile struct {
	Path   string `json:"path"` // as in FileChanged
	Before string `json:"before,omitzero"`
	After  string `json:"after,omitzero"`
	Buffer bool   `json:"buffer,omitzero"` // in an editor's open document, not on disk
	Mode   string `json:"mode,omitzero"`   // as in FileChanged
}

// RevertEnded says what became of each file of a revert, in the order of its RevertStarted.
type RevertEnded struct {
	Revert int64        `json:"revert"` // seq of its RevertStarted
	Files  []RevertFate `json:"files"`
	Cause  string       `json:"cause,omitzero"` // CauseDaemonDied: it was settled by evidence
}

// RevertFate is what became of one file. Why says of every state but RevertDone what happened, for people.
type RevertFate struct {
	Path  string      `json:"path"`
	State RevertState `json:"state"`
	Why   string      `json:"why,omitzero"`
}

// RevertState is what became of a file.
type RevertState string

// The states of a file after a revert.
const (
	RevertDone    RevertState = "reverted"
	RevertKept    RevertState = "kept"    // it was not touched
	RevertUnknown RevertState = "unknown" // the daemon died, and the file is neither as before nor as it was to be
)

func (*RevertStarted) Kind() Kind { return KindRevertStarted }
func (*RevertEnded) Kind() Kind   { return KindRevertEnded }

func (*RevertStarted) body() {}
func (*RevertEnded) body()   {}

func (b *RevertStarted) blobs() (out []string) {
	for _, f := range b.Files {
		out = append(out, f.Before, f.After)
	}
	return out
}

// indexRevert keeps a revert out of a turn, and its blobs.
//
// Invariant: no revert starts while a turn is open (TestARevertStartsOnlyBetweenTurns).
func (t *tx) indexRevert(h *head, b *RevertStarted) error {
	var open TurnID
	switch err := t.row(`SELECT id FROM turn WHERE sid = ? AND ended IS NULL`, []any{h.sid}, &open); {
	case err == nil:
		return fmt.Errorf("%w: %s", ErrTurnOpen, open)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return t.useBlobs(h.sid, b.blobs()...)
}

// EntriesOf is [Store.Entries] for some kinds only: all of a session's, in order. Damaged ones are not among them.
func (s *Store) EntriesOf(ctx context.Context, id SessionID, kinds ...Kind) ([]Entry, error) {
	const op = "read entries of a kind"
	sid, err := s.sidOf(ctx, id)
	if err != nil {
		return nil, s.fail(op, err)
	}
	args := []any{sid}
	for _, k := range kinds {
		args = append(args, string(k))
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND kind IN (`+
		strings.TrimSuffix(strings.Repeat("?,", len(kinds)), ",")+`) ORDER BY seq`, args...)
	if err != nil {
		return nil, s.fail(op, err)
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, s.fail(op, err)
		}
		if e := r.entry(id); e.Body != nil {
			out = append(out, e)
		}
	}
	return out, s.fail(op, rows.Err())
}

// openRevert is a revert without an end.
type openRevert struct {
	*RevertStarted
	seq int64
}

// openReverts finds the reverts after an entry that have no end.
func (s *Store) openReverts(ctx context.Context, sid, after int64) ([]openRevert, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq > ?
		AND kind IN ('revert.started', 'revert.ended') ORDER BY seq`, sid, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []openRevert
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		switch b := r.entry("").Body.(type) {
		case *RevertStarted:
			out = append(out, openRevert{b, r.seq})
		case *RevertEnded:
			for i, o := range out {
				if o.seq == b.Revert {
					out = append(out[:i], out[i+1:]...)
					break
				}
			}
		}
	}
	return out, rows.Err()
}

// The reasons that repair states for a file.
const (
	keptDaemonDied    = "fermata ended before it was touched"
	unknownDaemonDied = "fermata ended meanwhile, and the file holds something else now"
)

// settle ends a revert whose daemon died: each file by what it holds now (C3).
func (o openRevert) settle(evidence Evidence) *RevertEnded {
	out := &RevertEnded{Revert: o.seq, Files: make([]RevertFate, 0, len(o.Files)), Cause: CauseDaemonDied}
	for _, f := range o.Files {
		fate := RevertFate{Path: f.Path, State: RevertUnknown, Why: unknownDaemonDied}
		var now string
		var exists bool
		err := errors.New("nobody can look")
		if evidence != nil {
			now, exists, err = evidence(f.Path)
		}
		if !exists {
			now = ""
		}
		switch {
		case err != nil:
			fate.Why = "fermata ended meanwhile, and the file cannot be read: " + err.Error()
		case now == f.After:
			fate.State, fate.Why = RevertDone, ""
		case now == f.Before && !f.Buffer: // of an editor's document the disk proves nothing
			fate.State, fate.Why = RevertKept, keptDaemonDied
		}
		out.Files = append(out.Files, fate)
	}
	return out
}

// endedReverts are the seqs of the reverts that came to an end.
func endedReverts(entries []Entry) map[int64]bool {
	out := map[int64]bool{}
	for _, e := range entries {
		if b, ok := e.Body.(*RevertEnded); ok {
			out[b.Revert] = true
		}
	}
	return out
}

// revert checks that a revert started between two turns and ended at most once, with what it started with.
func (c *sessionCheck) revert(e Entry) error {
	switch b := e.Body.(type) {
	case *RevertStarted:
		if c.open != "" {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("a revert started while %s had not ended", c.open)})
		}
		if c.reverting == nil {
			c.reverting = map[int64]*RevertStarted{}
		}
		c.reverting[e.Seq] = b
		return c.needBlobs(e.Seq, b.blobs()...)
	case *RevertEnded:
		started := c.reverting[b.Revert]
		if started == nil && !c.damaged {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("the revert of entry %d ended without having started, or twice", b.Revert)})
		}
		if started != nil && len(started.Files) != len(b.Files) {
			c.problem(Problem{Seq: e.Seq, What: fmt.Sprintf("the revert of entry %d is about %d files, its end about %d", b.Revert, len(started.Files), len(b.Files))})
		}
		delete(c.reverting, b.Revert)
	}
	return nil
}

// reverted shows a revert with what became of its files.
func (r *renderer) reverted(b *RevertStarted, seq int64) {
	what := "*You reverted the changes of turn* " + codeSpan(string(b.Of))
	switch {
	case b.Since:
		what = "*You went back to before turn* " + codeSpan(string(b.Of))
	case b.Undoes > 0 && b.Restores:
		what = "*You undid a revert*"
	case b.Undoes > 0:
		what = "*You reverted again*"
	}
	lines := []string{what}
	ended := r.past.reverts[seq]
	for i, f := range b.Files {
		line := "+ " + codeSpan(f.Path) + ": not known"
		if ended != nil && i < len(ended.Files) {
			fate := ended.Files[i]
			line = "+ " + codeSpan(f.Path) + ": " + b.fate(fate.State)
			if fate.Why != "" {
				line += ", " + escapeInline(fate.Why)
			}
		}
		lines = append(lines, line)
	}
	r.para(lines[0])
	if len(lines) > 1 {
		r.para(strings.Join(lines[1:], "\n"))
	}
}

// fate is the word for a state: what an undo puts back is not said to be reverted.
func (b *RevertStarted) fate(s RevertState) string {
	if s == RevertDone && b.Restores {
		return "put back"
	}
	return string(s)
}
