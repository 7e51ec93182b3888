package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of old by after. old is what Read or ReadOrNew returned; an old that did not exist is created,
// with the folders it needs. A document that was open is changed through the editor; a file on disk is replaced at once
// and whole: a crash leaves either content, never a mixture. Permission bits are kept; a link is written through.
//
// Errors wrap ErrChanged when the file is no longer as old says, or was opened or closed in the editor since;
// ErrProtected for .git and for files marked read-only; ErrOutside, ErrPath, ErrNotRegular as in Read. After an error
// nothing was changed, except that folders may have been made.
func (w *Workspace) Write(ctx context.Context, old File, after []byte) error {
	if inGitDir(old.Path) {
		return fmt.Errorf("%s: %w: it belongs to git; use git commands instead", Show(old.Path), ErrProtected)
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write %s: %w", Show(old.Path), context.Cause(ctx))
	}
	names := []string{old.Path}
	if old.key != "" {
		names = append(names, old.key)
	}
	if key, text, open := w.buffer(names...); open != old.Buffer || open && text != string(old.Content) {
		return changed(old.Path)
	} else if open {
		if err := w.overlay.Apply(ctx, key, text, string(after)); err != nil {
			return fmt.Errorf("change %s in the editor: %w", Show(old.Path), err)
		}
		return nil
	}
	return w.replace(old, after)
}

// CheckWrite is the part of Write that can be known before anything is recorded or asked: whether old may be written at
// all. Its errors are Write's.
func (w *Workspace) CheckWrite(old File) error {
	if inGitDir(old.Path) {
		return fmt.Errorf("%s: %w: it belongs to git; use git commands instead", Show(old.Path), ErrProtected)
	}
	if old.Buffer {
		return nil
	}
	_, err := w.unchanged(old)
	return err
}

func changed(name string) error {
	return fmt.Errorf("%s: %w; read it again", Show(name), ErrChanged)
}

// unchanged checks that the disk still holds old; info is nil for a file that does not exist.
func (w *Workspace) unchanged(old File) (info fs.FileInfo, err error) {
	info, err = w.root.Lstat(filepath.FromSlash(old.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if old.Exists() {
			return nil, changed(old.Path)
		}
		return nil, nil
	case err != nil:
		return nil, fileError(old.Path, err)
	case !info.Mode().IsRegular():
		return nil, fileError(old.Path, regular(old.Path, info))
	case !old.Exists():
		return nil, changed(old.Path)
	case info.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("%s: %w: it is marked read-only", Show(old.Path), ErrProtected)
	case info.Size() != int64(len(old.Content)):
		return nil, changed(old.Path)
	}
	now, err := w.Read(old.Path)
	if err != nil {
		return nil, err
	}
	if now.Buffer || !bytes.Equal(now.Content, old.Content) {
		return nil, changed(old.Path)
	}
	return info, nil
}

// replace writes a temporary file beside the old one, checks, and renames it. Invariant: at every moment the name holds
// the whole old or the whole new content. Tested by TestAWriteIsWholeOrNothing.
func (w *Workspace) replace(old File, after []byte) (err error) {
	name := filepath.FromSlash(old.Path)
	folder := filepath.Dir(name)
	if !old.Exists() {
		if err := w.root.MkdirAll(folder, 0o777); err != nil {
			return fileError(old.Path, err)
		}
	}
	info, err := w.unchanged(old)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o666) // less the umask
	if info != nil {
		mode = 0o600 // until it has the old one's
	}
	temp := filepath.Join(folder, ".fermata-"+rand.Text()+".tmp")
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fileError(old.Path, err)
	}
	defer func() {
		if err != nil {
			_ = w.root.Remove(temp)
		}
	}()
	_, err = f.Write(after)
	if err == nil && info != nil {
		keepOwner(f, info)
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fileError(old.Path, err)
	}
	if _, err := w.unchanged(old); err != nil { // once more, now that only the rename is left
		return err
	}
	if err := w.root.Rename(temp, name); err != nil {
		return fileError(old.Path, err)
	}
	if d, err := w.root.OpenFile(folder, os.O_RDONLY|openFlags, 0); err == nil {
		syncDir(d)
		d.Close()
	}
	return nil
}
