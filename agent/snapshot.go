package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"fermata/tools/workspace"
	"fermata/transcript"
)

// Bounds of what is kept in memory while a command runs. In a workspace of more files than that, only those that the model
// knows are looked at.
const (
	snapshotFiles   = 2000
	snapshotBytes   = 8 << 20
	snapshotFile    = 1 << 20 // bytes of one file; what a command does to a longer one is not recorded
	snapshotTime    = 250 * time.Millisecond
	snapshotChanges = 500 // files of one command

	// A file whose time is that near to the snapshot's can change again without its time showing it: it is read again.
	racyTime = 50 * time.Millisecond
)

// snapshot is what files held before a command, so that what it does to them can be recorded and taken back: all files of a
// small workspace that .gitignore does not exclude, else those that the model knows. Files that are open in the editor are
// left out, because the editor's text is the file, and so are those that the model may not read unasked.
type snapshot struct {
	w     *workspace.Workspace
	may   func(path string) bool
	at    time.Time
	whole bool
	files map[string]held
}

// held is a file before a command. content is nil when it was too long to be kept.
type held struct {
	info    fs.FileInfo
	content []byte
}

// rewritten is what a command did to a file; nil is no file.
type rewritten struct {
	path          string
	before, after []byte
}

// snapshot is taken before a command. It is empty when ctx ends first.
func (s *Session) snapshot(ctx context.Context, w *workspace.Workspace) *snapshot {
	may := s.mayRead(w, "read_file")
	p := &snapshot{w: w, may: func(path string) bool { _, ok := may(path); return ok }, at: time.Now()}
	known := s.known.paths()
	names, whole := p.names(ctx, snapshotFiles)
	if whole {
		p.whole = p.take(ctx, append(names, known...))
	}
	if !p.whole {
		p.take(ctx, known)
	}
	if ctx.Err() != nil {
		p.whole, p.files = false, nil
	}
	return p
}

// names are the files of the workspace; whole is false when there are too many of them.
func (p *snapshot) names(ctx context.Context, most int) (names []string, whole bool) {
	whole = true
	err := p.w.WalkFiles(ctx, ".", func(name string) error {
		if len(names) == most || time.Since(p.at) > snapshotTime {
			whole = false
			return fs.SkipAll
		}
		names = append(names, name)
		return nil
	})
	cut, _ := errors.AsType[*workspace.CutError](err)
	return names, whole && (err == nil || cut != nil && cut.Denied)
}

// take reads files; false when they are too much.
func (p *snapshot) take(ctx context.Context, names []string) bool {
	p.files = map[string]held{}
	size := int64(0)
	for _, name := range names {
		if _, again := p.files[name]; again || p.w.IsOpen(name) || !p.may(name) {
			continue
		}
		info, err := p.w.Info(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		h := held{info: info}
		if info.Size() <= snapshotFile {
			if size += info.Size(); size > snapshotBytes || ctx.Err() != nil || len(p.files) == 2*snapshotFiles {
				return false
			}
			if f, err := p.w.ReadDisk(name, snapshotFile); err == nil {
				h.content = f.Content
			}
		}
		p.files[name] = h
	}
	return true
}

// rewritten compares with what the files hold now: what was done to them meanwhile, by path. That it was the command is likely,
// not certain: somebody else may have been at work at the same time.
func (p *snapshot) rewritten() (out []rewritten) {
	add := func(r rewritten) {
		if !bytes.Equal(r.before, r.after) || (r.before == nil) != (r.after == nil) {
			out = append(out, r)
		}
	}
	for name, h := range p.files {
		if p.w.IsOpen(name) || h.content == nil {
			continue
		}
		info, err := p.w.Info(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			add(rewritten{name, h.content, nil})
		case err != nil, same(h.info, info) && info.ModTime().Before(p.at.Add(-racyTime)):
		default:
			if f, err := p.w.ReadDisk(name, snapshotFile); err == nil {
				add(rewritten{name, h.content, f.Content})
			}
		}
	}
	if p.whole {
		p.at = time.Now() // the walk has its own time
		names, _ := p.names(context.Background(), 2*snapshotFiles)
		for _, name := range names {
			if _, was := p.files[name]; was || p.w.IsOpen(name) || !p.may(name) {
				continue
			}
			if f, err := p.w.ReadDisk(name, snapshotFile); err == nil {
				add(rewritten{name, nil, f.Content})
			}
		}
	}
	slices.SortFunc(out, func(a, b rewritten) int { return cmp.Compare(a.path, b.path) })
	return out[:min(len(out), snapshotChanges)]
}

// commandChanges are the entries of what a command did to files, to be written with its result. It runs in the tool's
// goroutine.
func (c *calls) commandChanges(ctx context.Context, k *call) (out []transcript.Body, err error) {
	put := func(content []byte) string {
		if content == nil || err != nil {
			return ""
		}
		var sum string
		sum, err = c.s.log.PutBlob(ctx, content)
		return sum
	}
	for _, r := range k.rewritten {
		out = append(out, &transcript.FileChanged{
			Turn: c.id, Step: c.step, Call: k.ID, Path: r.path, Before: put(r.before), After: put(r.after), By: transcript.ByCommand,
		})
	}
	return out, err
}

// paths are the known files.
func (k *known) paths() (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path := range k.files {
		out = append(out, path)
	}
	return out
}
