package tools

import (
	"context"
	"fmt"

	"fermata/tools/workspace"
)

// Bounds of a folder that is moved or deleted: all of its files are recorded first, so that it can be undone.
const (
	treeNames = 500      // files and folders
	treeBytes = 32 << 20 // of all its files
)

// tree is a file, a link or a folder with all that is in it.
type tree struct {
	path  string // as [workspace.Workspace.ResolveName] gives it
	names []string
	dirs  []string // nil when it is no folder
}

// treeOf finds what a name is, links not followed.
func treeOf(w *workspace.Workspace, name string) (tree, error) {
	real, err := w.ResolveName(name)
	if err != nil {
		return tree{}, err
	}
	if real == "." {
		return tree{}, fmt.Errorf("%w: that is the whole workspace; name something in it", workspace.ErrPath)
	}
	info, err := w.Info(real)
	if err != nil {
		return tree{}, err
	}
	if !info.IsDir() {
		return tree{path: real, names: []string{real}}, nil
	}
	in, err := w.Tree(real, treeNames)
	if err != nil {
		return tree{}, fmt.Errorf("%w; do it in parts, or with run, which cannot be undone", err)
	}
	return tree{path: real, names: in.Names, dirs: in.Folders}, nil
}

// all are its paths, as a permission is about them.
func (t tree) all() []string {
	if t.dirs == nil {
		return t.names
	}
	return append([]string{t.path}, t.names...)
}

// read reads its files, none of which may have changed since the model read it.
func (t tree) read(ctx context.Context, env Env, tool string) (files []workspace.File, bad Result, ok bool) {
	if err := t.bounded(env.Workspace); err != nil {
		return nil, failf("%s: nothing was changed: %v", tool, err), false
	}
	for _, name := range t.names {
		if ctx.Err() != nil {
			return nil, Result{State: Stopped, Output: "stopped before anything was changed"}, false
		}
		f, err := env.Workspace.ReadItself(name)
		if err == nil && !f.Exists() {
			err = fmt.Errorf("%s: %w", workspace.Show(name), workspace.ErrChanged)
		}
		if err != nil {
			return nil, failf("%s: nothing was changed: %v", tool, err), false
		}
		if bad, ok := current(ctx, env, tool, f); !ok {
			return nil, bad, false
		}
		files = append(files, f)
	}
	return files, Result{}, true
}

// bounded checks what a folder's files have together.
func (t tree) bounded(w *workspace.Workspace) error {
	total := int64(0)
	for _, name := range t.names {
		if info, err := w.Info(name); err == nil { // else reading it says why
			total += info.Size()
		}
	}
	if t.dirs != nil && total > treeBytes {
		return fmt.Errorf("%s: %w: its files have more than %d MiB; do it in parts, or with run, which cannot be undone",
			workspace.Show(t.path), workspace.ErrTooLarge, treeBytes>>20)
	}
	return nil
}
