package workspace

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Info is what the disk says of a resolved path, as [File].Path is one: its last part is not followed when it is a link. It
// costs no look at the content. Errors are the system's, fs.ErrNotExist among them, or wrap ErrOutside.
func (w *Workspace) Info(real string) (fs.FileInfo, error) {
	fi, err := w.root.Lstat(filepath.FromSlash(real))
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

// ReadDisk is [Workspace.Read] as if there were no editor, for a file of at most limit bytes.
func (w *Workspace) ReadDisk(name string, limit int64) (File, error) {
	_, real, err := w.locate(name)
	if err != nil {
		return File{}, err
	}
	f, size, err := w.openRegular(real)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if size > limit {
		return File{}, fmt.Errorf("%s: %w", Show(real), ErrTooLarge)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return File{}, fileError(real, err)
	}
	if int64(len(b)) > limit {
		return File{}, fmt.Errorf("%s: %w", Show(real), ErrTooLarge)
	}
	return File{Path: real, Content: b}, nil
}
