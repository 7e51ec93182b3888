package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mode is what a name stands for besides its content, as stat and git write it, in octal: "100644", "100755", "120000". It is
// known of a [File] from [Workspace.ReadItself], and says of a File that does not exist what Write is to make; "" is a file
// with the permissions of any new one.
type Mode string

// Modes that git knows. A file that comes back gets the permissions of its mode, less the umask.
const (
	ModeFile       Mode = "100644"
	ModeExecutable Mode = "100755"
	ModeLink       Mode = "120000" // the content is where the link leads
)

const regularType = 0o100000

func modeOf(fi fs.FileInfo) Mode {
	return Mode(strconv.FormatUint(regularType|uint64(fi.Mode().Perm()), 8))
}

// perm are the permission bits to make a file with.
func (m Mode) perm() fs.FileMode {
	n, err := strconv.ParseUint(string(m), 8, 32)
	if err != nil || n&^0o777 != regularType {
		return 0o666
	}
	return fs.FileMode(n & 0o777)
}

// ResolveName is the path from the root of a name itself: the links on the way to it are followed, but not the one that it
// may be. Errors are those of Resolve.
func (w *Workspace) ResolveName(name string) (string, error) {
	clean, err := w.Clean(name)
	if err != nil || clean == "." {
		return clean, err
	}
	folder, err := w.resolve(path.Dir(clean))
	if err != nil {
		return "", err
	}
	return path.Join(folder, path.Base(clean)), nil
}

// ReadItself is ReadOrNew, but of a name that is a link it gives the link: its Content is where it leads to, which nobody
// follows. The File knows its Mode.
func (w *Workspace) ReadItself(name string) (File, error) {
	real, err := w.ResolveName(name)
	if err != nil {
		return File{}, err
	}
	local := filepath.FromSlash(real)
	fi, err := w.root.Lstat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !w.IsOpen(real) {
			return File{Path: real}, nil
		}
	case err != nil:
		return File{}, fileError(real, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(local)
		if err != nil {
			return File{}, fileError(real, err)
		}
		return File{Path: real, Content: []byte(target), Links: 1, Mode: ModeLink}, nil
	}
	f, err := w.ReadOrNew(real)
	if err == nil && f.Path != real {
		return File{}, changed(real) // it became a link
	}
	if err == nil && f.Exists() && fi != nil {
		f.Mode = modeOf(fi)
	}
	return f, err
}

// HasName reports whether a resolved path is on disk in exactly these letters: many systems find a file by others too.
func (w *Workspace) HasName(real string) bool {
	d, err := w.root.OpenFile(filepath.FromSlash(path.Dir(real)), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return false
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1000)
		if slices.Contains(names, path.Base(real)) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// Tree is what lies in a folder, whatever .gitignore says.
type Tree struct {
	Names   []string // resolved paths of all that is no folder, sorted
	Folders []string // of the folder and those in it, each before the one it lies in
}

// Tree lists a folder by its resolved path. It is an error that wraps ErrTooLarge when there are more than most names in it,
// folders among them.
func (w *Workspace) Tree(real string, most int) (Tree, error) {
	t := Tree{Folders: []string{real}}
	for i, count := 0, 0; i < len(t.Folders); i++ {
		folder := t.Folders[i]
		d, err := w.root.OpenFile(filepath.FromSlash(folder), os.O_RDONLY|openFlags, 0)
		if err != nil {
			return Tree{}, fileError(folder, err)
		}
		for {
			list, err := d.ReadDir(200)
			for _, e := range list {
				name := path.Join(folder, e.Name())
				if e.IsDir() {
					t.Folders = append(t.Folders, name)
				} else {
					t.Names = append(t.Names, name)
				}
			}
			if count += len(list); count > most {
				d.Close()
				return Tree{}, fmt.Errorf("%s: %w: it holds more than %d files and folders", Show(real), ErrTooLarge, most)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				d.Close()
				return Tree{}, fileError(folder, err)
			}
		}
		d.Close()
	}
	slices.Sort(t.Names)
	slices.SortFunc(t.Folders, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return t, nil
}

// still checks that a file or link on disk is what ReadItself said, whether or not it may be written.
func (w *Workspace) still(old File) error {
	if old.Mode == ModeLink {
		if target, err := w.root.Readlink(filepath.FromSlash(old.Path)); err != nil || target != string(old.Content) {
			return changed(old.Path)
		}
		return nil
	}
	f, size, err := w.openRegular(old.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if same, err := holds(f, old.Content); err != nil {
		return fileError(old.Path, err)
	} else if !same || size != int64(len(old.Content)) {
		return changed(old.Path)
	}
	return nil
}
