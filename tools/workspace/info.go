package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Info is what the disk says of a resolved path, as [File].Path is one: its last part is not followed when it is a link. It is
// one system call, and not confined to the root as all else is: where a link has taken the place of a folder meanwhile, it
// tells of another file. Use it to find out that a file is the same as before, and never to decide what may be read.
// Errors are the system's, fs.ErrNotExist among them.
func (w *Workspace) Info(real string) (fs.FileInfo, error) {
	fi, err := os.Lstat(filepath.Join(w.real, filepath.FromSlash(real)))
	if err != nil {
		return nil, fileError(real, err)
	}
	return fi, nil
}

// IsOpen reports whether a resolved path is open in the editor.
func (w *Workspace) IsOpen(real string) bool {
	_, _, open := w.buffer(real)
	return open
}

// ReadDisk is [Workspace.Read] as if there were no editor, for a file of at most limit bytes. It is quickest for a resolved
// path.
func (w *Workspace) ReadDisk(name string, limit int64) (File, error) {
	f, size, err := w.openRegular(name)
	if errors.Is(err, ErrNotRegular) || errors.Is(err, ErrOutside) { // it may be a link by now
		var real string
		if _, real, err = w.locate(name); err != nil {
			return File{}, err
		}
		name = real
		f, size, err = w.openRegular(name)
	}
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if size > limit {
		return File{}, fmt.Errorf("%s: %w", Show(name), ErrTooLarge)
	}
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead)) // not nil, whatever is read
	if _, err := content.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return File{}, fileError(name, err)
	}
	if int64(content.Len()) > limit {
		return File{}, fmt.Errorf("%s: %w", Show(name), ErrTooLarge)
	}
	return File{Path: name, Content: content.Bytes()}, nil
}
