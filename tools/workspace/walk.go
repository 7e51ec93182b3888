package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a walk, for trees that were made to be endless.
const (
	maxDepth  = 256     // folders within each other, also in any path that is used
	walkNames = 500_000 // names of one folder
	runNames  = 64      // files of a Run
)

// CutError is what a walk returns that left out a part of the tree because of its shape, or because it may not be read. All the
// rest was walked.
type CutError struct {
	Name   string // of the first folder that was not walked, or not to its end; one of its shape goes before
	Why    string
	Denied bool // it may not be read
}

func (e *CutError) Error() string { return fmt.Sprintf("not looked at: %s: %s", Show(e.Name), e.Why) }

// Run is some files of one folder, next to each other in the order of a walk. Its holder closes it.
type Run struct {
	Dir   string   // from the root, "." for it
	Names []string // in Dir; at least one

	folder *folder // nil: they are not on disk
}

// Path is the ith file's path from the root.
func (r *Run) Path(i int) string { return within(r.Dir, r.Names[i]) }

func within(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// Head reads the start of the ith file from the disk into buf. size is the file's length, and n when buf has all of it. A file
// that is gone, or is no regular file any more, is an error. It may be called from several goroutines.
func (r *Run) Head(i int, buf []byte) (n int, size int64, err error) {
	if r.folder == nil {
		return 0, 0, fs.ErrNotExist
	}
	return r.folder.head(r.Names[i], buf)
}

// Close lets go of the folder.
func (r *Run) Close() {
	if r.folder != nil {
		r.folder.release()
	}
}

// WalkFiles calls f with each regular file under the directory dir ("." is the root) that .gitignore files and a
// repository's .git/info/exclude do not keep out, in the order of their paths, then with open documents that are not on
// disk yet. Paths are relative to the root. .git, links, special files and names that are not UTF-8 are passed over. An error of f ends the walk and is returned, except fs.SkipAll, which only ends it. A
// [*CutError] is returned at the end of a walk that was not of everything. What the user tells git to ignore everywhere
// (core.excludesFile) lies outside of the workspace and is not asked.
func (w *Workspace) WalkFiles(ctx context.Context, dir string, f func(name string) error) error {
	return w.WalkRuns(ctx, dir, func(r *Run) error {
		defer r.Close()
		for i := range r.Names {
			if err := f(r.Path(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// WalkRuns is WalkFiles by runs of files, which belong to f: it closes them.
func (w *Workspace) WalkRuns(ctx context.Context, dir string, f func(*Run) error) error {
	clean, real, err := w.locate(dir)
	if err != nil {
		return err
	}
	d, err := w.openDir(real)
	if err != nil {
		return fileError(clean, err)
	}
	defer d.release()
	k := &walker{w: w, ctx: ctx, f: f, open: map[string]bool{}}
	for _, p := range w.OpenPaths() {
		k.open[p] = true
	}
	var rules ignoreRules
	for above := range ancestors(real) {
		rules = k.rulesAbove(above, rules)
	}
	err = k.folder(real, d, rules, strings.Count(real, "/"))
	if err == nil {
		err = k.unsaved(real)
	}
	switch {
	case errors.Is(err, fs.SkipAll):
		return nil
	case err == nil && k.cut != nil:
		return k.cut
	}
	return err
}

// openDir opens a resolved directory.
func (w *Workspace) openDir(real string) (*folder, error) {
	fi, err := w.root.Lstat(filepath.FromSlash(real))
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, errors.New("not a directory; use read_file for a file")
	}
	return w.openFolder(real)
}

// ancestors are the folders above dir, from the root down: of a/b/c they are ".", a and a/b.
func ancestors(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if dir == "." || !yield(".") {
			return
		}
		for i, c := range dir {
			if c == '/' && !yield(dir[:i]) {
				return
			}
		}
	}
}

// walker is one walk.
type walker struct {
	w    *Workspace
	ctx  context.Context
	f    func(*Run) error
	open map[string]bool // open documents
	cut  *CutError
}

func (k *walker) leaveOut(name, why string) {
	if k.cut == nil || k.cut.Denied {
		k.cut = &CutError{Name: name, Why: why}
	}
}

// unread passes over a folder that is gone, or is not ours to read.
func (k *walker) unread(name string, err error) {
	if k.cut == nil && errors.Is(err, fs.ErrPermission) {
		k.cut = &CutError{name, "it may not be read", true}
	}
}

// folder walks an open directory, which is depth folders below the root.
func (k *walker) folder(dir string, d *folder, rules ignoreRules, depth int) error {
	list, all, err := d.list(walkNames)
	if err != nil {
		k.unread(dir, err)
		return nil
	}
	if !all {
		k.leaveOut(dir, fmt.Sprintf("it has more than %d names", walkNames))
	}
	rules = k.rules(dir, d, list, rules)
	var names []string
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		d.hold()
		r := &Run{dir, names, d}
		names = nil
		return k.f(r)
	}
	for _, e := range list {
		if k.ctx.Err() != nil {
			return context.Cause(k.ctx)
		}
		name := e.base()
		switch {
		case !utf8.ValidString(name), mayBeGit(name) && inGitDir(name), isTemp(name) && k.w.leftover(within(dir, name)):
		case e.mode.IsDir():
			if rules.ignored(dir, name, true) {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
			if err := k.inside(within(dir, name), name, d, rules, depth+1); err != nil {
				return err
			}
		case e.mode.IsRegular() && !rules.ignored(dir, name, false):
			if names = append(names, name); len(names) == runNames {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// inside walks the folder of that name in d.
func (k *walker) inside(dir, name string, d *folder, rules ignoreRules, depth int) error {
	if depth >= maxDepth {
		k.leaveOut(dir, fmt.Sprintf("it lies more than %d folders deep", maxDepth))
		return nil
	}
	sub, err := d.inside(name)
	if err != nil {
		k.unread(dir, err)
		return nil
	}
	defer sub.release()
	return k.folder(dir, sub, rules, depth)
}

// mayBeGit is quick to tell that most names are not what inGitDir looks for.
func mayBeGit(name string) bool {
	return name[0] == '.' || name[0]|0x20 == 'g' || name[0] >= utf8.RuneSelf
}

func (k *walker) unsaved(dir string) error {
	for _, name := range slices.Sorted(slices.Values(k.w.OpenPaths())) {
		if k.ctx.Err() != nil {
			return context.Cause(k.ctx)
		}
		if dir != "." && !strings.HasPrefix(name, dir+"/") {
			continue
		}
		if _, err := k.w.root.Lstat(filepath.FromSlash(name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := k.f(&Run{path.Dir(name), []string{path.Base(name)}, nil}); err != nil {
			return err
		}
	}
	return nil
}
