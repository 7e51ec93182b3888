package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of old by after. old is what Read or ReadOrNew returned; an old that did not exist is created,
// with the folders it needs. A document that was open is changed through the editor; a file on disk is replaced at once
// and whole: a crash leaves either content, never a mixture. Permission bits are kept, and as far as this user may, the owner
// and the extended attributes (on Linux that is also the access control list; set-user-id bits and file capabilities are
// dropped, as by any write). A symbolic link is written through and stays one.
//
// A file with other hard links (File.Links) gets content of its own, and the others keep the old one. Writing into the shared
// content would be no longer whole or nothing, and would reach files outside of the root, or in a package manager's
// store, that only share it by chance. Whoever calls Write says so to the model.
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
	if _, _, open := w.buffer(old.Path); open {
		return nil, changed(old.Path)
	}
	f, _, err := w.openRegular(old.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if same, err := holds(f, old.Content); err != nil {
		return nil, fileError(old.Path, err)
	} else if !same {
		return nil, changed(old.Path)
	}
	return info, nil
}

// holds reports whether what is left to read of r is content, without keeping it.
func holds(r io.Reader, content []byte) (bool, error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if !bytes.HasPrefix(content, buf[:n]) {
			return false, nil
		}
		content = content[n:]
		switch {
		case err == io.EOF:
			return len(content) == 0, nil
		case err != nil:
			return false, err
		}
	}
}

// replace writes a temporary file beside the old one, checks, and renames it. Invariant: at every moment the name holds
// the whole old or the whole new content. Tested by TestAWriteIsWholeOrNothing and TestAKilledWriteIsWholeOrNothing.
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
	mode := old.Mode.perm() // less the umask
	switch {
	case info != nil:
		mode = 0o600 // until it has the old one's
	case old.Mode == ModeLink:
		if err := w.root.Symlink(string(after), name); err != nil {
			return fileError(old.Path, err)
		}
		w.syncFolder(folder)
		return nil
	}
	w.at("before")
	temp := filepath.Join(folder, tempName())
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fileError(old.Path, err)
	}
	defer func() {
		if err != nil {
			_ = w.root.Remove(temp)
		}
	}()
	w.at("made")
	_, err = f.Write(after)
	w.at("written")
	if err == nil && info != nil {
		err = w.keep(f, old, info)
		w.at("likened")
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
	w.at("synced")
	if _, err := w.unchanged(old); err != nil { // once more, now that only the rename is left
		return err
	}
	w.at("checked")
	rename := (*os.Root).Rename
	if info == nil {
		rename = renameNew // what came in between stays
	}
	if err := rename(w.root, temp, name); errors.Is(err, fs.ErrExist) {
		return changed(old.Path)
	} else if err != nil {
		return fileError(old.Path, err)
	}
	w.at("renamed")
	if d, err := w.root.OpenFile(folder, os.O_RDONLY|openFlags, 0); err == nil {
		syncDir(d)
		d.Close()
	}
	w.at("done")
	return nil
}

// keep makes f like the file that it will replace, in all but its content.
func (w *Workspace) keep(f *os.File, old File, info fs.FileInfo) error {
	keepOwner(f, info)
	if err := f.Chmod(info.Mode().Perm()); err != nil { // after the owner, whose change can clear bits
		return err
	}
	if from, _, err := w.openRegular(old.Path); err == nil {
		keepAttributes(f, from)
		from.Close()
	}
	return nil
}

// at tells a test how far a write has come.
func (w *Workspace) at(stage string) {
	if w.stage != nil {
		w.stage(stage)
	}
}
