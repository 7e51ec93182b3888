package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// WalkFiles calls f with each regular file under the directory dir ("." is the root) that .gitignore files do not
// exclude, folder by folder in the order of names, then with open documents that are not on disk yet. Paths are relative
// to the root. .git, links, special files and names that are not UTF-8 are passed over. An error of f ends the walk and
// is returned, except fs.SkipAll, which only ends it; folders that cannot be read are passed over.
func (w *Workspace) WalkFiles(ctx context.Context, dir string, f func(name string) error) error {
	clean, real, err := w.locate(dir)
	if err != nil {
		return err
	}
	if _, err := w.readDir(real); err != nil {
		return fileError(clean, err)
	}
	var rules ignoreRules
	for d := range ancestors(real) {
		rules = w.readIgnore(d, rules)
	}
	err = w.walk(ctx, real, rules, f)
	if err == nil {
		err = w.walkUnsaved(ctx, real, f)
	}
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
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

func (w *Workspace) walk(ctx context.Context, dir string, rules ignoreRules, f func(string) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	list, err := w.listForWalk(dir)
	if err != nil {
		return nil // gone, or not ours to read
	}
	rules = w.readIgnore(dir, rules)
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case !utf8.ValidString(e.Name()), e.Name() == ".git", w.leftover(name):
		case e.IsDir():
			if rules.ignored(name, true) {
				continue
			}
			if err := w.walk(ctx, name, rules, f); err != nil {
				return err
			}
		case e.Type().IsRegular() && !rules.ignored(name, false):
			if err := f(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Workspace) listForWalk(dir string) ([]fs.DirEntry, error) {
	d, err := w.root.OpenFile(filepath.FromSlash(dir), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

func (w *Workspace) walkUnsaved(ctx context.Context, dir string, f func(string) error) error {
	names := slices.Sorted(slices.Values(w.OpenPaths()))
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if dir != "." && !strings.HasPrefix(name, dir+"/") {
			continue
		}
		if _, err := w.root.Lstat(filepath.FromSlash(name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}

// readIgnore adds the rules of dir's .gitignore, if it has one, to those of the folders above.
func (w *Workspace) readIgnore(dir string, above ignoreRules) ignoreRules {
	s, err := w.Stream(path.Join(dir, ".gitignore"))
	if err != nil {
		return above
	}
	defer s.Close()
	text, err := io.ReadAll(io.LimitReader(s, 1<<20))
	if err != nil {
		return above
	}
	return above.with(dir, string(text))
}
