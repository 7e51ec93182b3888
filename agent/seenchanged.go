package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// Bounds of the line that tells of changed files.
const (
	newsFiles = 20
	newsBytes = 2000
)

// settled is the age from which a file's time tells that it was changed again: file systems count by up to two seconds.
const settled = 2 * time.Second

// look is a known file at one moment.
type look struct {
	state   transcript.FileState
	content []byte      // nil when it was not read now
	buffer  bool        // it is the editor's text
	info    fs.FileInfo // of the disk, when the state is surely of the file that it describes; else nil
	sure    bool        // another content would have another info
}

// glance is a known file, and how it is now.
type glance struct {
	*knownFile
	read  string               // knownFile's at the time
	told  transcript.FileState // likewise
	alike string               // likewise
	now   look
}

// look looks at all known files, until stopping says that it is no longer wanted: then it returns nil. The truth about a file
// is its hash; it is not taken again of one that was not heard of since, and whose size and time are the same. Without a
// watcher every file is read.
func (k *known) look(w *workspace.Workspace, stopping func() bool) []glance {
	k.looking.Lock()
	defer k.looking.Unlock()
	if k.watched == nil && k.watcher != nil {
		k.watched = k.watcher.Files(w)
	}
	k.mu.Lock()
	for _, path := range k.dropped {
		if k.files[path] == nil && k.watched != nil {
			k.watched.Forget(path)
		}
	}
	k.dropped = nil
	out := make([]glance, 0, len(k.files))
	for at := k.order.Front(); at != nil; at = at.Next() {
		f := at.Value.(*knownFile)
		out = append(out, glance{knownFile: f, read: f.read, told: f.told, alike: f.alike})
	}
	k.mu.Unlock()
	for i := range out {
		if stopping() {
			return nil
		}
		out[i].now = k.now(w, out[i].knownFile)
	}
	return out
}

// now looks at one file.
func (k *known) now(w *workspace.Workspace, f *knownFile) look {
	if w.IsOpen(f.path) {
		file, err := w.Read(f.path)
		return look{state: stateNow(f.path, file.Content, err), content: file.Content, buffer: file.Buffer}
	}
	quiet := k.watched != nil && k.watched.Quiet(f.path)
	info, err := w.Info(f.path)
	went := f.last.info != nil && (err != nil || !same(f.last.info, info))
	came := f.last.state.Gone == transcript.GoneDeleted && err == nil && info.Mode().IsRegular()
	if quiet && (went || came) {
		k.watched.Missed(f.path)
	}
	if err != nil {
		f.last = look{state: stateNow(f.path, nil, err)}
		return f.last
	}
	if last := f.last; quiet && last.sure && same(last.info, info) {
		last.content = nil
		return last
	}
	file, err := w.ReadDisk(f.path, tools.MaxSeen)
	l := look{state: stateNow(f.path, file.Content, err), content: file.Content}
	if again, err := w.Info(f.path); err == nil && info.Mode().IsRegular() && same(info, again) {
		l.info, l.sure = info, time.Since(info.ModTime()) > settled
	}
	f.last = look{state: l.state, info: l.info, sure: l.sure}
	return l
}

// same reports whether the disk says the same of a file.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

func stateNow(path string, content []byte, err error) transcript.FileState {
	f := transcript.FileState{Path: path}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Gone = transcript.GoneDeleted
	case errors.Is(err, workspace.ErrTooLarge) || err == nil && len(content) > tools.MaxSeen:
		f.Gone = transcript.GoneTooLong
	case err != nil:
		f.Gone = transcript.GoneUnreadable
	default:
		f.SHA256 = tools.Digest(content)
	}
	return f
}

// news is what the next notice tells of files that others changed since the model read them: the states, by path, to be
// stored with it, and the line. Nothing is told twice: what is stored is not news any more. A session without a workspace
// has none.
func (s *Session) news(ctx context.Context, stopping func() bool) ([]transcript.FileState, string, error) {
	if s.opened.Workspace == "" {
		return nil, "", nil
	}
	if err := s.known.catchUp(ctx); err != nil {
		return nil, "", err
	}
	if s.known.none() {
		return nil, "", nil
	}
	w, err := s.workspace()
	if err != nil {
		return nil, "", nil // the first tool says why
	}
	var states []transcript.FileState
	var names []string
	glances := s.known.look(w, stopping)
	slices.SortFunc(glances, func(a, b glance) int { return cmp.Compare(a.path, b.path) })
	for _, g := range glances {
		if g.now.state != g.told && !s.known.reads(ctx, w, g) {
			states = append(states, g.now.state)
			names = append(names, workspace.Show(g.path)+g.how(w))
		}
	}
	return states, changedLine(names), nil
}

func (k *known) none() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.files) == 0
}

// reads reports whether a file whose hash is another one reads as the model knows it: an editor has its own view of line
// endings and encodings.
func (k *known) reads(ctx context.Context, w *workspace.Workspace, g glance) bool {
	if g.now.state.SHA256 == "" || g.told.SHA256 == "" {
		return false
	}
	if g.now.state.SHA256 == g.alike {
		return true
	}
	before, now := tools.Before(ctx, k, w, g.path, g.told.SHA256), g.now.content
	if now == nil {
		if f, err := w.Read(g.path); err == nil {
			now = f.Content
		}
	}
	if before == nil || !tools.SameText(before, now) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if g.knownFile.told == g.told { // else it was read meanwhile
		g.knownFile.alike = g.now.state.SHA256
	}
	return true
}

// how says what is to be said of a change besides the file's name.
func (g glance) how(w *workspace.Workspace) string {
	switch {
	case g.now.state.Gone == transcript.GoneDeleted:
		return " (deleted)"
	case g.now.state.Gone == transcript.GoneTooLong:
		return " (grown too long to be compared)"
	case g.now.state.Gone != "":
		return " (can no longer be read)"
	case g.now.state.SHA256 == g.read:
		return " (back to what you know)"
	case g.now.buffer:
		if disk, err := w.ReadDisk(g.path, tools.MaxSeen); err != nil || !tools.SameText(disk.Content, g.now.content) {
			return " (edited in the editor)"
		}
	}
	return ""
}

// changedLine tells of changed files, "" when there are none.
func changedLine(names []string) string {
	if len(names) == 0 {
		return ""
	}
	n, size := 0, 0
	for n < len(names) && n < newsFiles && (n == 0 || size+len(names[n]) <= newsBytes) {
		size += len(names[n])
		n++
	}
	line := "[Since your last turn these files changed: " + strings.Join(names[:n], ", ")
	if rest := len(names) - n; rest > 0 {
		line += fmt.Sprintf(", and %d more that you know", rest)
	}
	return line + ".]"
}

// joinLines joins what is to be told, without empty lines.
func joinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// touch is a known file that a command changed on disk, before and after. What it did to a file that is open in the editor
// is not seen: the editor's text is the file.
type touch struct{ before, after transcript.FileState }

// watchCommand looks at the known files before a command; the function that it returns looks again, and tells what changed
// meanwhile. That it was the command is likely, not certain: somebody else may have been at work at the same time.
func (k *known) watchCommand(w *workspace.Workspace) func() []touch {
	if k.none() {
		return func() []touch { return nil }
	}
	never := func() bool { return false }
	before := map[string]look{}
	for _, g := range k.look(w, never) {
		before[g.path] = g.now
	}
	return func() (out []touch) {
		for _, g := range k.look(w, never) {
			if b, ok := before[g.path]; ok && !b.buffer && !g.now.buffer && b.state != g.now.state {
				out = append(out, touch{b.state, g.now.state})
			}
		}
		slices.SortFunc(out, func(a, b touch) int { return cmp.Compare(a.after.Path, b.after.Path) })
		return out
	}
}

// touched are the states that a command left.
func touched(touches []touch) (out []transcript.FileState) {
	for _, t := range touches {
		out = append(out, t.after)
	}
	return out
}
