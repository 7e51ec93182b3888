package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fermata/tools/workspace"
	"fermata/transcript"
)

// ErrNoRevert: there is no revert of that name, or none that could be undone.
var ErrNoRevert = errors.New("no such revert")

// Revert says what to take back. The zero value means the changes of the last turn that changed a file, of the session used
// last.
type Revert struct {
	Session transcript.SessionID // "": the turn's, else the one used last
	Turn    transcript.TurnID    // "": the last one that changed a file
	Since   bool                 // also the changes of all turns after it: back to before that turn
	Preview bool                 // write and record nothing: RevertDone is then what would be written
	Paths   []string             // only these files or folders; nil: all. As [Changed].Path, or absolute

	Undo   bool                // undo a revert instead: Turn and Since say nothing then
	Revert transcript.RevertID // that one, which Undo goes without saying; "": the session's last one that was not undone
}

// Reverted says what a revert came to.
type Reverted struct {
	Session transcript.SessionID
	Turn    transcript.TurnID   // whose changes were taken back; "" of an undo
	Revert  transcript.RevertID // "" when there was no file to write: then nothing is recorded
	Files   []RevertedFile      // by path
}

// RevertedFile is what became of one file. Why says of a kept one what was in the way.
type RevertedFile struct {
	Path    string
	State   transcript.RevertState // RevertDone or RevertKept
	Why     string
	Already bool // it is kept because it is so already
	Buffer  bool // reverted in an editor's open document: it is not saved
}

// Revert writes files as they were before a turn, or as they were before a revert. A file is written only when it still holds
// what the turn (with Since all that came after it too) left there: what the user or anybody else did to it since is kept,
// and so is what somebody else did between two changes that would be undone together. Open documents are changed through
// the editor, and stay unsaved. Folders that were made for a file stay.
//
// The intent is committed before the first file is touched, and what became of each after the last; a revert of which no
// more is known is settled by evidence when the session is opened next (C3). It needs the session's lease, and is refused
// with a [*BusyError] while a turn of the session runs. The end of ctx leaves the files that are not written yet as they
// are, and is no error.
//
// Errors: [ErrNoChanges], [ErrNoRevert], [ErrBusy], [ErrClosed], [transcript.ErrNoTurn], [transcript.ErrNoSession],
// [transcript.ErrLeased], and those of the store.
func (a *Agent) Revert(ctx context.Context, r Revert) (Reverted, error) {
	if r.Revert != "" {
		id, _, ok := r.Revert.Entry()
		if !ok {
			return Reverted{}, fmt.Errorf("%w: %q", ErrNoRevert, string(r.Revert))
		}
		r.Session, r.Turn, r.Undo = id, "", true
	}
	if r.Undo {
		r.Turn = ""
	}
	s, err := a.sessionOf(ctx, r.Session, r.Turn)
	if err != nil {
		return Reverted{}, err
	}
	done, err := s.working()
	if err != nil {
		return Reverted{}, err
	}
	defer done()
	return s.revert(ctx, r)
}

// revert holds the session for as long as it takes, so that no turn begins meanwhile. What waits for it is bounded by the
// time in which an editor has to make an edit.
func (s *Session) revert(ctx context.Context, r Revert) (Reverted, error) {
	lasting := context.WithoutCancel(ctx) // what was done is recorded all the same
	s.lockCleared()
	defer s.mu.Unlock()
	if s.current != nil {
		return Reverted{}, &BusyError{Turn: s.current.id}
	}
	if err := s.leaseLocked(lasting); err != nil {
		return Reverted{}, err
	}
	stopRenewing := s.renew(lasting)
	defer func() {
		stopRenewing()
		_ = s.log.Release(lasting) // an expired lease is as good as a released one
	}()
	h, err := s.fileHistory(lasting)
	if err != nil {
		return Reverted{}, err
	}
	w, err := s.workspaceLocked()
	if err != nil {
		return Reverted{}, err
	}
	v := &reverting{Session: s, w: w, h: h}
	if r.Undo {
		err = v.undo(r.Revert)
	} else {
		err = v.turn(r.Turn, r.Since)
	}
	if err != nil {
		return Reverted{}, err
	}
	if err := v.choose(r.Paths); err != nil {
		return Reverted{}, err
	}
	return v.run(ctx, lasting, r.Preview)
}

// reverting is a revert on its way. Session.mu is held.
type reverting struct {
	*Session
	w       *workspace.Workspace
	h       *fileHistory
	intent  transcript.RevertStarted
	targets []*revertTarget // by path
}

// revertTarget is a file that a revert is about.
type revertTarget struct {
	span          // from after back to before
	since   int64 // what changed it since that entry was not this
	file    workspace.File
	content []byte // to write, nil for no file
	why     string // it is kept
	already bool   // because there is nothing to do
	done    bool
	twin    *revertTarget // the same file by a name in other letters' case, which is to go
}

// turn takes the targets from what a turn did.
func (v *reverting) turn(turn transcript.TurnID, since bool) error {
	if turn == "" {
		if turn = v.h.last(); turn == "" {
			return fmt.Errorf("%w in session %s", ErrNoChanges, v.ID())
		}
	}
	v.intent.Of, v.intent.Since = turn, since
	list := v.h.of(turn)
	if since {
		list = v.h.since(turn)
	}
	if len(list) == 0 {
		return fmt.Errorf("%w by turn %s", ErrNoChanges, turn)
	}
	for _, f := range list {
		v.targets = append(v.targets, &revertTarget{span: f, since: v.h.turns[turn]})
	}
	return nil
}

// undo takes the targets from what a revert wrote.
func (v *reverting) undo(id transcript.RevertID) error {
	undone := map[int64]bool{}
	for _, r := range v.h.reverts {
		undone[r.started.Undoes] = true
	}
	_, seq, _ := id.Entry()
	for _, r := range slices.Backward(v.h.reverts) {
		if id == "" && (undone[r.seq] || r.started.Restores) || id != "" && r.seq != seq {
			continue
		}
		v.intent.Undoes, v.intent.Restores = r.seq, !r.started.Restores
		for _, f := range r.written() {
			s := spans([]fileStep{{path: f.Path, before: f.Before, after: f.After, buffer: f.Buffer, mode: workspace.Mode(f.Mode)}})[0]
			v.targets = append(v.targets, &revertTarget{span: s, since: r.seq})
		}
		return nil
	}
	if id == "" {
		return fmt.Errorf("%w: session %s has none that was not undone", ErrNoRevert, v.ID())
	}
	return fmt.Errorf("%w: %s", ErrNoRevert, id)
}

// choose keeps the targets that were named. One that was named and is none is kept, and said.
func (v *reverting) choose(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	var chosen []*revertTarget
	for _, p := range paths {
		name, err := v.w.Clean(p)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBadPath, err)
		}
		found := false
		for _, t := range v.targets {
			if name == "." || t.path == name || strings.HasPrefix(t.path, name+"/") {
				found = true
				if !slices.Contains(chosen, t) {
					chosen = append(chosen, t)
				}
			}
		}
		if !found {
			chosen = append(chosen, &revertTarget{span: span{path: name}, why: "it is not among the files that were changed"})
		}
	}
	slices.SortFunc(chosen, func(a, b *revertTarget) int { return strings.Compare(a.path, b.path) })
	v.targets = chosen
	return nil
}

// ErrBadPath: a path leads out of the workspace, or is none.
var ErrBadPath = errors.New("bad path")

// run records the intent, writes, and records what came of it. Invariant: revert.started is committed before a file is touched
// (C3). Tests: TestARevertIsRecordedBeforeAFileIsTouched.
func (v *reverting) run(ctx, lasting context.Context, preview bool) (Reverted, error) {
	var write []*revertTarget
	for _, t := range v.targets {
		if t.why == "" {
			if err := v.look(lasting, t); err != nil {
				return Reverted{}, err
			}
		}
		if t.why == "" {
			write = append(write, t)
			v.intent.Files = append(v.intent.Files, transcript.RevertedFile{
				Path: t.path, Before: sumOf(t.file), After: t.before, Buffer: t.file.Buffer && t.content != nil,
				Mode: string(t.file.Mode),
			})
		}
	}
	out := Reverted{Session: v.ID(), Turn: v.intent.Of}
	for _, t := range write {
		t.done = preview
	}
	if len(write) > 0 && !preview {
		id, err := v.write(ctx, lasting, write)
		if err != nil {
			return Reverted{}, err
		}
		out.Revert = id
	}
	for _, t := range v.targets {
		f := RevertedFile{Path: t.path, State: transcript.RevertKept, Why: t.why, Already: t.already}
		if t.done {
			f.State, f.Buffer = transcript.RevertDone, t.file.Buffer && t.content != nil
		}
		out.Files = append(out.Files, f)
	}
	return out, nil
}

// look finds out whether a file can be written.
func (v *reverting) look(ctx context.Context, t *revertTarget) error {
	var err error
	if t.file, err = v.w.ReadItself(t.path); err != nil {
		t.why = err.Error()
		return nil
	}
	v.spelledOtherwise(t)
	if !t.file.Exists() {
		t.file.Mode = t.mode
	}
	already, err := v.holds(ctx, t.file, t.before)
	if err != nil {
		return err
	}
	asLeft, err := v.holds(ctx, t.file, t.after)
	if err != nil {
		return err
	}
	later, left := v.h.laterTurn(t.path, t.since)
	switch {
	case already:
		t.why, t.already = "it is so already", true
	case !asLeft && later != "" && left == sumOf(t.file):
		t.why = "turn " + string(later) + " changed it again: revert that one first, or go back to before this one"
	case !asLeft:
		t.why = "it was changed since"
	case t.foreign:
		t.why = "somebody else changed it too, between these changes"
	default:
		return v.prepare(ctx, t)
	}
	return nil
}

// sumOf is the SHA-256 of what a file holds, "" for no file.
func sumOf(f workspace.File) string {
	if !f.Exists() {
		return ""
	}
	return digest(f.Content)
}

// prepare makes what is to be written.
func (v *reverting) prepare(ctx context.Context, t *revertTarget) error {
	var err error
	if t.content, err = content(ctx, v.agent.o.Store, t.before); err != nil {
		return err
	}
	if t.file.Exists() && t.content != nil && (t.file.Buffer || digest(t.file.Content) != t.after) {
		if t.why = t.inForm(); t.why != "" {
			return nil
		}
		if t.before, err = v.log.PutBlob(ctx, t.content); err == nil {
			_, err = v.log.PutBlob(ctx, t.file.Content)
		}
		if err != nil {
			return err
		}
	}
	if t.twin != nil { // its name is free once that one has another
		return nil
	}
	if err := v.w.CheckWrite(t.file); err != nil && t.file.Mode != workspace.ModeLink {
		t.why = err.Error()
	}
	return nil
}

// inForm gives the content to write the encoding and byte order mark that the file has now; why when that cannot be.
func (t *revertTarget) inForm() (why string) {
	text, ok := textOf(t.content)
	if !ok {
		return "what it held before is no text"
	}
	_, form, err := t.file.Text()
	if err == nil {
		t.content, err = form.Bytes(text)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// write does it.
func (v *reverting) write(ctx, lasting context.Context, targets []*revertTarget) (transcript.RevertID, error) {
	entries, err := v.log.Append(lasting, &v.intent)
	if err != nil {
		return "", err
	}
	v.tell(entries)
	seq := entries[0].Seq
	ended := &transcript.RevertEnded{Revert: seq}
	for _, t := range targets {
		v.renameBack(ctx, t)
	}
	for _, t := range targets {
		fate := transcript.RevertFate{Path: t.path, State: transcript.RevertDone}
		if !t.done && t.why == "" {
			t.why = v.writeOne(ctx, t)
		}
		if t.why != "" {
			fate.State, fate.Why = transcript.RevertKept, t.why
		}
		t.done = t.why == ""
		ended.Files = append(ended.Files, fate)
	}
	entries, err = v.log.Append(lasting, ended)
	if err != nil {
		v.dirty = true // the repair finds out by evidence what was done
		return "", fmt.Errorf("the revert was made as far as it could be, and not recorded to its end: %w", err)
	}
	v.tell(entries)
	return transcript.RevertAt(v.ID(), seq), nil
}

func (v *reverting) tell(entries []transcript.Entry) {
	for _, e := range entries {
		v.past.add(e.Body)
	}
	v.hub.publishEntries(entries)
}

// writeOne returns why it did not; "" when the file is as it was to be. That is told by what is there now, not by the error: an
// editor can fail after it acted.
func (v *reverting) writeOne(ctx context.Context, t *revertTarget) string {
	var err error
	if t.content == nil {
		err = v.w.Remove(ctx, t.file)
	} else {
		err = v.w.Write(ctx, t.file, t.content)
	}
	if err == nil {
		return ""
	}
	if ctx.Err() != nil {
		err = errors.New("the revert was cut short before")
	}
	now, readErr := v.w.ReadItself(t.path)
	if readErr == nil && now.Exists() == (t.content != nil) && string(now.Content) == string(t.content) {
		return ""
	}
	return err.Error()
}

// revertMove is how a revert left a file, for the next notice.
type revertMove struct {
	path, from, to string
	restores       bool
}

// reverted takes the end of a revert into account.
func (p *past) reverted(b *transcript.RevertEnded) {
	started := p.reverting
	p.reverting = nil
	if started == nil || len(started.Files) != len(b.Files) {
		return
	}
	for i, f := range started.Files {
		if b.Files[i].State == transcript.RevertDone {
			p.moves = append(slices.Clip(p.moves), revertMove{f.Path, f.Before, f.After, started.Restores})
		}
	}
}

// revertLines tell what reverts came to since the last turn: nothing of a revert that was undone.
func (p *past) revertLines() []string {
	type net struct {
		from, to string
		restores bool
	}
	byPath := map[string]*net{}
	var paths []string
	for _, m := range p.moves {
		n := byPath[m.path]
		if n == nil {
			n = &net{from: m.from}
			byPath[m.path], paths = n, append(paths, m.path)
		}
		n.to, n.restores = m.to, m.restores
	}
	slices.Sort(paths)
	var back, again []string
	for _, name := range paths {
		switch n := byPath[name]; {
		case n.from == n.to:
		case n.restores:
			again = append(again, workspace.Show(name))
		default:
			back = append(back, workspace.Show(name))
		}
	}
	var lines []string
	if len(back) > 0 {
		lines = append(lines, "[The user reverted your changes to "+listed(back)+".]")
	}
	if len(again) > 0 {
		lines = append(lines, "[The user put your changes to "+listed(again)+" back.]")
	}
	return lines
}

// listed is "a", "a and b", "a, b and c"; of many the first and how many more.
func listed(names []string) string {
	const most = 20
	if n := len(names); n > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more files", n-most))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
