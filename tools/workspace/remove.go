package workspace

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// Remove deletes a file from the disk, or a link. old is what Read or ReadItself returned, and must have existed. A document that is open in the editor
// is deleted only when it is saved: its text is then what the disk has, and the editor shows it as deleted. Folders stay.
//
// Errors are those of Write; ErrChanged also when the editor's text is not saved. After an error nothing was deleted.
func (w *Workspace) Remove(ctx context.Context, old File) error {
	if inGitDir(old.Path) {
		return fmt.Errorf("%s: %w: it belongs to git; use git commands instead", Show(old.Path), ErrProtected)
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", Show(old.Path), context.Cause(ctx))
	}
	name := filepath.FromSlash(old.Path)
	if old.Mode == ModeLink {
		if err := w.still(old); err != nil {
			return err
		}
	} else if old.Buffer {
		if err := w.saved(old); err != nil {
			return err
		}
	} else if info, err := w.unchanged(old); err != nil {
		return err
	} else if info == nil {
		return changed(old.Path)
	}
	if err := w.root.Remove(name); err != nil {
		return fileError(old.Path, err)
	}
	w.syncFolder(filepath.Dir(name))
	return nil
}

// RemoveFolders deletes folders that are empty, in the order of [Tree].Folders. The error is of the first that is not, or that cannot
// be deleted; it and those it lies in stay.
func (w *Workspace) RemoveFolders(folders []string) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	for _, folder := range folders {
		if folder == "." || inGitDir(folder) {
			return fmt.Errorf("%s: %w", Show(folder), ErrProtected)
		}
		if fi, err := w.root.Lstat(filepath.FromSlash(folder)); err != nil || !fi.IsDir() {
			return changed(folder)
		}
		if err := w.root.Remove(filepath.FromSlash(folder)); err != nil {
			return fileError(folder, err)
		}
	}
	return nil
}

// saved checks that an open document has the text that old says, and that the disk has it too.
func (w *Workspace) saved(old File) error {
	if _, text, open := w.buffer(old.Path, old.key); !open || text != string(old.Content) {
		return changed(old.Path)
	}
	f, _, err := w.openRegular(old.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	disk, err := io.ReadAll(io.LimitReader(f, MaxRead+1))
	if err != nil {
		return fileError(old.Path, err)
	}
	_, text := CutBOM(old.Content)
	if saved, _, why := decode(disk); why != "" || saved != string(text) {
		return fmt.Errorf("%s: %w: it is open in the editor and not saved", Show(old.Path), ErrChanged)
	}
	return nil
}
