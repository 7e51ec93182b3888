package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file's content at one moment, and what [Workspace.Write] needs to replace it.
type File struct {
	Path    string // relative to the root, slash-separated, links resolved
	Content []byte // nil when the file does not exist, else not nil; the caller's to keep
	Buffer  bool   // Content is an editor's open document, not the disk's
	Links   int    // names that the file has on disk; 0 for one that does not exist, and for a Buffer
	Mode    Mode   // see there
	key     string // the editor's name of it
}

// Exists reports whether there was such a file.
func (f File) Exists() bool { return f.Content != nil }

// Read is the content of a file as the editor has it, or else as the disk has it. Errors wrap fs.ErrNotExist,
// ErrOutside, ErrPath, ErrNotRegular or, above [MaxRead] bytes, ErrTooLarge.
func (w *Workspace) Read(name string) (File, error) {
	s, err := w.Stream(name)
	if err != nil {
		return File{}, err
	}
	defer s.Close()
	if s.Size > MaxRead {
		return File{}, fmt.Errorf("%s: %w: it has %d bytes, and at most %d can be read at once; search it with grep or read part of it with offset and limit",
			Show(s.Path), ErrTooLarge, s.Size, MaxRead)
	}
	content := bytes.NewBuffer(make([]byte, 0, s.Size+bytes.MinRead)) // not nil, whatever is read
	_, err = content.ReadFrom(io.LimitReader(s, MaxRead+1))
	b := content.Bytes()
	if err != nil {
		return File{}, fileError(s.Path, err)
	}
	if len(b) > MaxRead { // it grew
		return File{}, fmt.Errorf("%s: %w: it has more than %d bytes", Show(s.Path), ErrTooLarge, MaxRead)
	}
	return File{Path: s.Path, Content: b, Buffer: s.Buffer, Links: s.links, key: s.key}, nil
}

// ReadOrNew is Read, but a file that does not exist yet is no error: its Content is nil.
func (w *Workspace) ReadOrNew(name string) (File, error) {
	f, err := w.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, real, err := w.locate(name)
		return File{Path: real}, err
	}
	return f, err
}

// Stream is a file open for reading from its start. The caller closes it.
type Stream struct {
	io.ReadCloser
	Path   string // as in File
	Size   int64  // bytes when it was opened
	Buffer bool
	links  int
	key    string
	again  io.ReaderAt // the same content from anywhere; nil when it can be read only once
}

// Stream opens a file of any length, and ends where the file ended then. Errors are those of Read but for ErrTooLarge.
func (w *Workspace) Stream(name string) (*Stream, error) {
	clean, real, err := w.locate(name)
	if err != nil {
		return nil, err
	}
	if key, text, ok := w.buffer(real, clean); ok {
		return &Stream{io.NopCloser(strings.NewReader(text)), real, int64(len(text)), true, 0, key, nil}, nil
	}
	f, size, err := w.openRegular(real)
	if err != nil {
		return nil, err
	}
	return &Stream{asLongAsItWas(f, size), real, size, false, links(f), "", f}, nil
}

// asLongAsItWas ends where the file ended when it was opened, so that one which grows faster than it is read has an end too. Files
// of no length are those that a system makes up while they are read.
func asLongAsItWas(f *os.File, size int64) io.ReadCloser {
	if size == 0 {
		return f
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, size), f}
}

// openRegular looks before it opens, because opening alone can act on a device, and again afterwards, because the name
// can mean another file by then. openFlags keep a FIFO from blocking in between.
func (w *Workspace) openRegular(real string) (*os.File, int64, error) {
	local := filepath.FromSlash(real)
	fi, err := w.root.Lstat(local)
	if err == nil {
		err = regular(real, fi)
	}
	if err != nil {
		return nil, 0, fileError(real, err)
	}
	f, err := w.root.OpenFile(local, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, 0, fileError(real, err)
	}
	if fi, err = f.Stat(); err == nil {
		err = regular(real, fi)
	}
	if err != nil {
		f.Close()
		return nil, 0, fileError(real, err)
	}
	return f, fi.Size(), nil
}

func regular(name string, fi fs.FileInfo) error {
	kind := "a special file"
	switch m := fi.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a directory, use list_dir"
	case m&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%w but %s", ErrNotRegular, kind)
}

// Entry is one name in a directory.
type Entry struct {
	Name string // can be invalid UTF-8: see Show
	Mode fs.FileMode
	Size int64 // bytes, of a regular file; Stat alone tells it
}

// Stat is a file or directory, its links followed; of an open document, Size is that of its text. Entry.Name is the
// resolved path.
func (w *Workspace) Stat(name string) (Entry, error) {
	clean, real, err := w.locate(name)
	if err != nil {
		return Entry{}, err
	}
	if _, text, ok := w.buffer(real, clean); ok {
		return Entry{Name: real, Size: int64(len(text))}, nil
	}
	fi, err := w.root.Lstat(filepath.FromSlash(real))
	if err != nil {
		return Entry{}, fileError(clean, err)
	}
	return Entry{real, fi.Mode(), fi.Size()}, nil
}

// ReadDir lists a directory, folders first, then by name, with documents that are open but not on disk yet. Links are listed as
// links. It gives the first most entries, and says how many there are in all; it has no more than twice as many in memory.
func (w *Workspace) ReadDir(ctx context.Context, name string, most int) (list []Entry, total int, err error) {
	clean, real, err := w.locate(name)
	if err != nil {
		return nil, 0, err
	}
	d, err := w.openDir(real)
	if err != nil {
		return nil, 0, fileError(clean, err)
	}
	defer d.release()
	keep := func() {
		slices.SortFunc(list, func(a, b Entry) int {
			if a.Mode.IsDir() != b.Mode.IsDir() {
				return cmp.Compare(b.Mode&fs.ModeDir, a.Mode&fs.ModeDir)
			}
			return strings.Compare(a.Name, b.Name)
		})
		list = list[:min(len(list), most)]
	}
	add := func(e Entry) {
		total++
		if list = append(list, e); len(list) >= 2*most {
			keep()
		}
	}
	unsaved := map[string]bool{}
	for _, p := range w.OpenPaths() {
		if path.Dir(p) == real {
			unsaved[path.Base(p)] = true
		}
	}
	err = d.each(func(de fs.DirEntry) error {
		if isTemp(de.Name()) && w.leftover(within(real, de.Name())) {
			return nil
		}
		delete(unsaved, de.Name())
		add(Entry{Name: de.Name(), Mode: de.Type()})
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, 0, fileError(clean, err)
	}
	for p := range unsaved {
		add(Entry{Name: p})
	}
	keep()
	return list, total, nil
}
