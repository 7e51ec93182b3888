package transcript

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// FileState is a file of the workspace at one moment. What a model has read is remembered in the log: the files that a call
// has shown it ([ToolSettled].Seen) or changed ([FileChanged]), and those that a prompt quotes ([PromptPart].SHA256). The
// content of a file that was not too long is a blob under its hash, so that it can be told later what changed.
type FileState struct {
	Path   string `json:"path"`            // relative to the workspace, slash-separated, links resolved
	SHA256 string `json:"sha256,omitzero"` // of the whole file, of the editor's text where it is open there; in hex
	Gone   Gone   `json:"gone,omitzero"`   // why there is no SHA256
}

// Gone says why a file has no content that could be read.
type Gone string

// The reasons.
const (
	GoneDeleted    Gone = "deleted"
	GoneUnreadable Gone = "unreadable" // no file any more, or one that may not be read
	GoneTooLong    Gone = "too_long"   // to be compared before each turn
)

// seenBlobs are the names of blobs that there may be, because a model has read what they hold.
func seenBlobs(b Body) (out []string) {
	prompt := func(parts []PromptPart) {
		for _, p := range parts {
			out = append(out, p.SHA256)
		}
	}
	switch b := b.(type) {
	case *TurnStarted:
		prompt(b.Prompt)
	case *MessageQueued:
		prompt(b.Prompt)
	case *MessageDelivered:
		prompt(b.Prompt)
	case *ToolSettled:
		for _, f := range b.Seen {
			out = append(out, f.SHA256)
		}
	}
	return out
}

const selectSightings = `SELECT seq, at, kind, hash, body FROM entry WHERE sid = ? AND seq > ? AND kind IN
	('turn.started', 'message.delivered', 'file.changed', 'tool.settled', 'revert.started', 'revert.ended') ORDER BY seq`

// Sightings reads, of a session's entries after one, those that say which files its model knows, and how they became what
// they are. upTo is the seq of the newest entry looked at. Damaged ones are left out. [ErrNoSession].
func (s *Store) Sightings(ctx context.Context, id SessionID, after int64) (entries []Entry, upTo int64, err error) {
	const op = "read what the model knows of files"
	var sid int64
	err = s.reads.QueryRowContext(ctx, `SELECT sid, last_seq FROM session WHERE id = ?`, id).Scan(&sid, &upTo)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, after, fmt.Errorf("%s: %w: %s", op, ErrNoSession, id)
	case err != nil:
		return nil, after, s.fail(op, err)
	case upTo <= after:
		return nil, after, nil
	}
	rows, err := s.reads.QueryContext(ctx, selectSightings, sid, after)
	if err != nil {
		return nil, after, s.fail(op, err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanEntry(rows)
		if err != nil {
			return nil, after, s.fail(op, err)
		}
		if e := r.entry(id); e.Body != nil {
			entries = append(entries, e)
		}
		upTo = max(upTo, r.seq)
	}
	return entries, upTo, s.fail(op, rows.Err())
}
