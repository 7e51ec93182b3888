package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// ErrNoChanges: no turn, or not the one that was named, has changed a file.
var ErrNoChanges = errors.New("no file was changed")

// Changes is what a turn did to files: each from before its first change to after its last. A file that the turn changed and
// changed back is not among them.
type Changes struct {
	Session transcript.SessionID
	Turn    transcript.TurnID
	Files   []Changed // by path
}

// Changed is one file of a turn. Before and After are SHA-256 in hex of what it held, "" for no file.
type Changed struct {
	Path          string // relative to the workspace, slash-separated
	Before, After string
	Buffer        bool // changed in an editor's open document
	Command       bool // commands alone changed it
	Now           FileNow
	From          string         // where a created file was moved from, which is among the deleted ones; "": it was not moved
	To            string         // likewise where a deleted one was moved to
	Mode          workspace.Mode // of one that was created, deleted or moved, where it is a special one
}

// State is "created", "changed" or "deleted".
func (c Changed) State() string {
	switch {
	case c.Before == "":
		return "created"
	case c.After == "":
		return "deleted"
	}
	return "changed"
}

// FileNow is how a file stands to what a turn did to it.
type FileNow string

// How a file can stand. Another state than the first two is of a later turn's, the user's or another program's making.
const (
	NowAsLeft   FileNow = "as_left"  // as the turn left it
	NowReverted FileNow = "reverted" // as before the turn
	NowChanged  FileNow = "changed"  // something else
	NowUnknown  FileNow = "unknown"  // it cannot be read
)

// Changes is what a turn did to files, as far as it has come. "" is the last turn that changed a file, of a session, or with
// "" there too of the one used last. A turn that changed none has no Files. Errors: [ErrNoChanges] when no turn was named
// and none has changed a file, [transcript.ErrNoTurn], [transcript.ErrNoSession], and those of the store.
func (a *Agent) Changes(ctx context.Context, session transcript.SessionID, turn transcript.TurnID) (Changes, error) {
	s, err := a.sessionOf(ctx, session, turn)
	if err != nil {
		return Changes{}, err
	}
	h, err := s.fileHistory(ctx)
	if err != nil {
		return Changes{}, err
	}
	if turn == "" {
		if turn = h.last(); turn == "" {
			return Changes{}, fmt.Errorf("%w in session %s", ErrNoChanges, s.ID())
		}
	}
	out := Changes{Session: s.ID(), Turn: turn}
	for _, f := range h.of(turn) {
		c := Changed{Path: f.path, Before: f.before, After: f.after, Buffer: f.buffer, Command: f.command}
		c.Now, err = s.now(ctx, f)
		if err != nil {
			return Changes{}, err
		}
		c.From, c.Mode = f.from, f.mode
		out.Files = append(out.Files, c)
	}
	out.pair()
	return out, nil
}

// pair links the two sides of each move; what is not a creation and a deletion in the end is none.
func (c Changes) pair() {
	deleted := map[string]*Changed{}
	for i := range c.Files {
		if f := &c.Files[i]; f.After == "" {
			deleted[f.Path] = f
		}
	}
	for i := range c.Files {
		f := &c.Files[i]
		origin := deleted[f.From]
		if origin == nil || origin.To != "" || f.Before != "" || f.After == "" {
			f.From = ""
			continue
		}
		origin.To = f.Path
	}
}

// Origin is the file that a created one was moved from.
func (c Changes) Origin(f Changed) (Changed, bool) {
	i := slices.IndexFunc(c.Files, func(o Changed) bool { return f.From != "" && o.Path == f.From })
	if i < 0 {
		return Changed{}, false
	}
	return c.Files[i], true
}

// Unified is what a turn did to files as a unified diff, with a move as git writes it.
func (a *Agent) Unified(ctx context.Context, c Changes) ([]byte, error) {
	var out []byte
	for _, f := range c.Files {
		if f.To != "" {
			continue // told where it went
		}
		before, after, err := a.Contents(ctx, c, f)
		if err != nil {
			return nil, err
		}
		out = append(out, unified(tools.Change{Path: f.Path, From: f.From, Before: before, After: after, Mode: f.Mode})...)
	}
	return out, nil
}

// sessionOf opens the session of a turn, else the one named, else the one used last.
func (a *Agent) sessionOf(ctx context.Context, session transcript.SessionID, turn transcript.TurnID) (*Session, error) {
	if turn != "" {
		info, err := a.o.Store.Turn(ctx, turn)
		if err != nil {
			return nil, err
		}
		session = info.Session
	}
	if session == "" {
		var ok bool
		if session, ok = a.NewestSession(); !ok {
			return nil, transcript.ErrNoTurn
		}
	}
	return a.Open(ctx, session)
}

// Contents are what a file held before and after, nil for no file, and of a file that was moved what it held where it came from.
// An empty file is not nil.
func (a *Agent) Contents(ctx context.Context, c Changes, f Changed) (before, after []byte, err error) {
	if origin, ok := c.Origin(f); ok {
		f.Before = origin.Before
	}
	if before, err = content(ctx, a.o.Store, f.Before); err != nil {
		return nil, nil, err
	}
	after, err = content(ctx, a.o.Store, f.After)
	return before, after, err
}

// now looks at a file.
func (s *Session) now(ctx context.Context, f span) (FileNow, error) {
	w, err := s.workspace()
	if err != nil {
		return NowUnknown, nil
	}
	file, err := w.ReadItself(f.path)
	if err != nil {
		return NowUnknown, nil
	}
	for _, k := range []struct {
		sum string
		now FileNow
	}{{f.after, NowAsLeft}, {f.before, NowReverted}} {
		same, err := s.holds(ctx, file, k.sum)
		if err != nil || same {
			return k.now, err
		}
	}
	return NowChanged, nil
}

// holds reports whether a file is what a SHA-256 says, "" being no file: the same bytes, or the same text, because an editor has
// as UTF-8 without a byte order mark what may be something else on disk.
func (s *Session) holds(ctx context.Context, f workspace.File, sum string) (bool, error) {
	switch {
	case sum == "" || !f.Exists():
		return sum == "" && !f.Exists(), nil
	case digest(f.Content) == sum:
		return true, nil
	}
	want, err := s.agent.o.Store.Blob(ctx, sum)
	if err != nil {
		return false, err
	}
	text, _, err := f.Text()
	if err != nil {
		return false, nil
	}
	wanted, ok := textOf(want)
	return ok && text == wanted, nil
}

// textOf is a content that was recorded as text, without a byte order mark.
func textOf(content []byte) (text string, ok bool) {
	text, _, err := workspace.File{Content: content}.Text()
	return text, err == nil
}

// fileHistory is all that happened to files in a session, as far as fermata knows.
type fileHistory struct {
	turns   map[transcript.TurnID]int64 // seq of turn.started
	steps   []fileStep                  // in the order of the log
	reverts []revertOf
}

// revertOf is a revert that has ended.
type revertOf struct {
	seq     int64
	started *transcript.RevertStarted
	ended   *transcript.RevertEnded
}

func (s *Session) fileHistory(ctx context.Context) (*fileHistory, error) {
	entries, err := s.agent.o.Store.EntriesOf(ctx, s.ID(), transcript.KindTurnStarted, transcript.KindFileChanged,
		transcript.KindToolSettled, transcript.KindRevertStarted, transcript.KindRevertEnded)
	if err != nil {
		return nil, err
	}
	var all edits
	for _, e := range entries {
		all.add(e.Body)
	}
	h := &fileHistory{turns: map[transcript.TurnID]int64{}}
	started := map[int64]*transcript.RevertStarted{}
	for _, e := range entries {
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			h.turns[b.Turn] = e.Seq
		case *transcript.FileChanged:
			if all.made(b) {
				step := stepOf(b)
				step.seq = e.Seq
				h.steps = append(h.steps, step)
			}
		case *transcript.RevertStarted:
			started[e.Seq] = b
		case *transcript.RevertEnded:
			if r := (revertOf{b.Revert, started[b.Revert], b}); r.started != nil && len(r.started.Files) == len(b.Files) {
				h.reverts = append(h.reverts, r)
				for i, f := range r.started.Files {
					if b.Files[i].State == transcript.RevertDone {
						h.steps = append(h.steps, fileStep{seq: e.Seq, path: f.Path, before: f.Before, after: f.After, buffer: f.Buffer, mode: workspace.Mode(f.Mode)})
					}
				}
			}
		}
	}
	return h, nil
}

// written are the files that a revert has written, or may have.
func (r revertOf) written() (out []transcript.RevertedFile) {
	for i, f := range r.started.Files {
		if r.ended.Files[i].State != transcript.RevertKept {
			out = append(out, f)
		}
	}
	return out
}

// of is what a turn came to, file by file, without those that came to nothing.
func (h *fileHistory) of(turn transcript.TurnID) []span {
	var steps []fileStep
	for _, c := range h.steps {
		if c.turn == turn {
			steps = append(steps, c)
		}
	}
	return slices.DeleteFunc(spans(steps), func(s span) bool { return s.before == s.after })
}

// since is what a turn and all that came after it came to, reverts included.
func (h *fileHistory) since(turn transcript.TurnID) []span {
	from, ok := h.turns[turn]
	var steps []fileStep
	for _, c := range h.steps {
		if ok && c.seq > from {
			steps = append(steps, c)
		}
	}
	return spans(steps)
}

// last is the last turn that has changed a file, "" for none.
func (h *fileHistory) last() transcript.TurnID {
	for i, c := range slices.Backward(h.steps) {
		if c.turn == "" || i+1 < len(h.steps) && h.steps[i+1].turn == c.turn {
			continue // a revert, or looked at already
		}
		if len(h.of(c.turn)) > 0 {
			return c.turn
		}
	}
	return ""
}

// laterTurn is the turn that changed a file last, if that was after an entry and nothing else has written it since.
func (h *fileHistory) laterTurn(path string, seq int64) (transcript.TurnID, string) {
	for _, c := range slices.Backward(h.steps) {
		if c.path == path {
			if c.seq > seq && c.turn != "" {
				return c.turn, c.after
			}
			return "", ""
		}
	}
	return "", ""
}
