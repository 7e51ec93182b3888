package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// handle is an open directory.
type handle struct{ root *os.Root }

func openHandle(root *os.Root, name string) (handle, error) {
	r, err := root.OpenRoot(name)
	return handle{r}, err
}

// openIn opens a directory that is in this one, and no link.
func (h handle) openIn(name string) (handle, error) {
	fi, err := h.root.Lstat(name)
	if err != nil {
		return handle{}, err
	}
	if !fi.IsDir() {
		return handle{}, errors.New("not a directory")
	}
	return openHandle(h.root, name)
}

func (h handle) each(f func(fs.DirEntry) error) error {
	d, err := h.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return eachEntry(d, f)
}

func (h handle) close() { h.root.Close() }

// head reads the start of a regular file, as much as buf takes. size is what the system says that the file has: more than n
// when it is longer than buf, or is being written.
func (h handle) head(name string, buf []byte) (n int, size int64, err error) {
	fi, err := h.root.Lstat(name)
	if err == nil {
		err = regular(name, fi)
	}
	if err != nil {
		return 0, 0, err
	}
	f, err := h.root.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	n, err = io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, int64(n), nil
	}
	return n, max(fi.Size(), int64(n)), err
}
