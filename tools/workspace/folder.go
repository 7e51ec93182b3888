package workspace

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// listAtOnce is how many names of a directory are in memory before they are sifted.
const listAtOnce = 4096

// folder is a directory held open, and the way to the names in it: only to those, and through no link. What is opened through
// it lies in that directory, whatever happens to its name meanwhile, and costs no look at the folders above. It is shared by
// those who hold it, and closed by the last to let go.
type folder struct {
	handle
	held atomic.Int32
}

// openFolder opens a resolved directory. The caller holds it.
func (w *Workspace) openFolder(real string) (*folder, error) {
	h, err := openHandle(w.root, filepath.FromSlash(real))
	if err != nil {
		return nil, err
	}
	return newFolder(h), nil
}

func newFolder(h handle) *folder {
	f := &folder{handle: h}
	f.held.Store(1)
	return f
}

func (f *folder) hold() { f.held.Add(1) }

func (f *folder) release() {
	if f.held.Add(-1) == 0 {
		f.close()
	}
}

// inside opens a directory in it. The caller holds it.
func (f *folder) inside(name string) (*folder, error) {
	h, err := f.openIn(name)
	if err != nil {
		return nil, err
	}
	return newFolder(h), nil
}

// entry is a name in a folder.
type entry struct {
	name string // of a directory with a slash behind it: so names sort as the paths under them do
	mode fs.FileMode
}

func (e entry) base() string {
	if e.mode.IsDir() {
		return e.name[:len(e.name)-1]
	}
	return e.name
}

// list is what a directory holds, sorted by name: at most so many names, and whether these are all.
func (f *folder) list(most int) (list []entry, all bool, err error) {
	all = true
	err = f.each(func(e fs.DirEntry) error {
		if len(list) == most {
			all = false
			return fs.SkipAll
		}
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		list = append(list, entry{name, e.Type()})
		return nil
	})
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return list, all, err
}

// eachEntry calls f with what an open directory holds, in any order.
func eachEntry(d *os.File, f func(fs.DirEntry) error) error {
	for {
		list, err := d.ReadDir(listAtOnce)
		for _, e := range list {
			if err := f(e); err != nil {
				if err == fs.SkipAll {
					return nil
				}
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
