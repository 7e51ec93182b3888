//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open directory.
type handle struct{ dir *os.File }

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

func openHandle(root *os.Root, name string) (handle, error) {
	d, err := root.OpenFile(name, folderFlags, 0)
	return handle{d}, err
}

// openIn opens a directory that is in this one, and no link.
func (h handle) openIn(name string) (handle, error) {
	fd, err := openAt(h.dir, name, folderFlags)
	if err != nil {
		return handle{}, err
	}
	return handle{os.NewFile(uintptr(fd), name)}, nil
}

func (h handle) each(f func(fs.DirEntry) error) error { return eachEntry(h.dir, f) }

func (h handle) close() { h.dir.Close() }

// head reads the start of a regular file, as much as buf takes. size is what the system says that the file has: more than n
// when it is longer than buf, or is being written. It costs four system calls and no allocation.
func (h handle) head(name string, buf []byte) (n int, size int64, err error) {
	fd, err := openAt(h.dir, name, openFlags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, 0, ErrNotRegular
	}
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return n, st.Size, err
		case m == 0:
			return n, int64(n), nil
		}
		if n += m; int64(n) == st.Size {
			break
		}
	}
	return n, max(st.Size, int64(n)), nil
}

func openAt(dir *os.File, name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Openat(int(dir.Fd()), name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
