package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Move renames a file, a link or a folder, at once and whole: it keeps all that it has. from and to are as [Workspace.ResolveName]
// gives them. inside are the files that are known to be moved, as ReadItself gave them: when one of them has changed, nothing is
// moved. Nothing that exists is replaced; a name may change only in its letters' case. Folders that to needs are made.
//
// What is open in the editor is not moved: it would go on under its old name there.
//
// Errors wrap ErrChanged, fs.ErrExist, fs.ErrNotExist, ErrProtected for .git, ErrPath for what cannot be moved there. After an
// error nothing was moved, except that folders may have been made.
func (w *Workspace) Move(ctx context.Context, from, to string, inside []File) error {
	if err := w.CheckMove(from, to); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("move %s: %w", Show(from), context.Cause(ctx))
	}
	if err := w.CheckMove(from, to); err != nil {
		return err
	}
	for _, f := range inside {
		if err := w.still(f); err != nil {
			return err
		}
	}
	source, target := filepath.FromSlash(from), filepath.FromSlash(to)
	if err := w.root.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return fileError(to, err)
	}
	rename := renameNew
	if w.sameEntry(from, to) {
		rename = func(r *os.Root, from, to string) error { return r.Rename(from, to) }
	}
	if err := rename(w.root, source, target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return exists(to)
		}
		return fileError(from, err)
	}
	for _, folder := range []string{filepath.Dir(source), filepath.Dir(target)} {
		w.syncFolder(folder)
	}
	return nil
}

// CheckMove is the part of Move that can be known before anything is recorded or asked. Its errors are Move's.
func (w *Workspace) CheckMove(from, to string) error {
	for _, name := range []string{from, to} {
		switch {
		case name == ".":
			return fmt.Errorf("%w: the workspace itself cannot be moved or replaced", ErrPath)
		case inGitDir(name):
			return fmt.Errorf("%s: %w: it belongs to git; use git commands instead", Show(name), ErrProtected)
		}
		if err := w.CheckClosed(name); err != nil {
			return err
		}
	}
	if _, err := w.root.Lstat(filepath.FromSlash(from)); err != nil {
		return fileError(from, err)
	}
	switch fi, err := w.root.Lstat(filepath.FromSlash(to)); {
	case from == to:
		return fmt.Errorf("%w: %s is its name already", ErrPath, Show(to))
	case strings.HasPrefix(to, from+"/"):
		return fmt.Errorf("%w: %s lies in %s, which would be moved into itself", ErrPath, Show(to), Show(from))
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fileError(to, err)
	case w.sameEntry(from, to):
		return nil
	case fi.IsDir():
		return fmt.Errorf("%w: it is a folder; to move into it, name the new path in it, as in %s", exists(to), Show(path.Join(to, path.Base(from))))
	}
	return exists(to)
}

func exists(name string) error {
	return fmt.Errorf("%s: %w; it is not replaced: choose another name, or delete or move it first", Show(name), fs.ErrExist)
}

// CheckClosed checks that neither a resolved path nor anything in it is open in the editor.
func (w *Workspace) CheckClosed(real string) error {
	open := ""
	if w.IsOpen(real) {
		open = real
	}
	for _, p := range w.OpenPaths() {
		if in, err := w.resolve(p); err == nil && (in == real || strings.HasPrefix(in, real+"/")) {
			open = p
		}
	}
	if open == "" {
		return nil
	}
	return fmt.Errorf("%s: %w: it is open in the editor, and would stay there as it is; ask the user to save and close it first",
		Show(open), ErrProtected)
}

// sameEntry reports whether to is but another spelling of from, on a system that finds a file by both.
func (w *Workspace) sameEntry(from, to string) bool {
	a, err := w.root.Lstat(filepath.FromSlash(from))
	if err != nil {
		return false
	}
	b, err := w.root.Lstat(filepath.FromSlash(to))
	return err == nil && os.SameFile(a, b) && !w.HasName(to) // two hard links have two names
}

// renameChecked is renameNew as well as it can be done where the system has no such thing.
func renameChecked(r *os.Root, from, to string) error {
	if _, err := r.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return err
	}
	return r.Rename(from, to)
}

// syncFolder makes what happened to names in a folder last.
func (w *Workspace) syncFolder(local string) {
	if d, err := w.root.OpenFile(local, os.O_RDONLY|openFlags, 0); err == nil {
		syncDir(d)
		d.Close()
	}
}
