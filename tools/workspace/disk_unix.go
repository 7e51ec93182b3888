//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep the opening of a FIFO from waiting for a writer.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// links is how many names an open file has.
func links(f *os.File) int {
	if fi, err := f.Stat(); err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			return int(st.Nlink)
		}
	}
	return 1
}

// keepOwner gives f the owner of the file it will replace, as far as this user may.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		if f.Chown(int(st.Uid), int(st.Gid)) != nil {
			_ = f.Chown(-1, int(st.Gid)) // a group that the user is in
		}
	}
}

// syncDir makes a rename in dir last. An error only means that this file system does not offer it.
func syncDir(dir *os.File) { _ = dir.Sync() }
