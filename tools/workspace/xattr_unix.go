//go:build linux || darwin

package workspace

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// keepAttributes gives to the extended attributes of from, as far as this user may: labels, tags, and on Linux the access
// control list. One that to has got from its folder and from has not is taken away when it grants anything. It comes after
// the permission bits, which it can refine.
func keepAttributes(to, from *os.File) {
	have := attributes(from)
	for _, name := range have {
		if ofTheContent(name) {
			continue
		}
		if value, ok := attribute(from, name); ok {
			_ = unix.Fsetxattr(int(to.Fd()), name, value, 0)
		}
	}
	for _, name := range attributes(to) {
		if strings.HasPrefix(name, "system.posix_acl") && !slices.Contains(have, name) {
			_ = unix.Fremovexattr(int(to.Fd()), name)
		}
	}
}

// ofTheContent reports whether an attribute says something of the bytes that were there: a hash or signature of them, or
// rights that they were trusted with. The kernel drops the latter, too, when a file is written.
func ofTheContent(name string) bool {
	return name == "security.capability" || name == "security.ima" || name == "security.evm"
}

// attributes are the names of f's extended attributes; none when the file system has no such thing.
func attributes(f *os.File) (names []string) {
	list := grown(func(buf []byte) (int, error) { return unix.Flistxattr(int(f.Fd()), buf) })
	for name := range bytes.SplitSeq(list, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

func attribute(f *os.File, name string) ([]byte, bool) {
	value := grown(func(buf []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), name, buf) })
	return value, value != nil
}

// grown calls read with a buffer that is large enough; nil when it cannot be read.
func grown(read func([]byte) (int, error)) []byte {
	buf := make([]byte, 1<<10)
	for len(buf) <= 1<<20 {
		n, err := read(buf)
		switch {
		case err == nil:
			return buf[:n]
		case err != unix.ERANGE:
			return nil
		}
		buf = make([]byte, 4*len(buf))
	}
	return nil
}
