//go:build linux || darwin

package workspace

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renameNew renames, and replaces nothing: that is fs.ErrExist.
func renameNew(r *os.Root, from, to string) error {
	source, err := r.Open(filepath.Dir(from))
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := r.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer target.Close()
	err = renameExclusive(int(source.Fd()), filepath.Base(from), int(target.Fd()), filepath.Base(to))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) { // not on this file system
		return renameChecked(r, from, to)
	}
	return err
}
