//go:build linux || darwin

package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAWriteKeepsWhatIsKnownOfAFile(t *testing.T) {
	w := tree(t, "-- f --\nold\n", nil)
	name := filepath.Join(w.Root(), "f")
	for _, mode := range []os.FileMode{0o600, 0o644, 0o755, 0o640, 0o777} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(name)
		if err := write(t, w, "f", mode.String()); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(name)
		if err != nil || after.Mode() != before.Mode() {
			t.Errorf("mode %v, was %v", after.Mode(), before.Mode())
		}
		b, a := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
		if a.Uid != b.Uid || a.Gid != b.Gid {
			t.Errorf("owner %d:%d, was %d:%d", a.Uid, a.Gid, b.Uid, b.Gid)
		}
	}
}

// Where this user may give files away, or is in another group, that is kept.
func TestAWriteKeepsTheOwner(t *testing.T) {
	w := tree(t, "-- f --\nold\n", nil)
	name := filepath.Join(w.Root(), "f")
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 1234, 5678
	} else if groups, err := os.Getgroups(); err == nil && len(groups) > 0 {
		gid = groups[len(groups)-1]
	}
	if err := os.Chown(name, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := write(t, w, "f", "new"); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if st := fi.Sys().(*syscall.Stat_t); int(st.Uid) != uid || int(st.Gid) != gid {
		t.Errorf("owner %d:%d, was %d:%d", st.Uid, st.Gid, uid, gid)
	}
}

func TestAWriteKeepsExtendedAttributes(t *testing.T) {
	w := tree(t, "-- f --\nold\n", nil)
	name := filepath.Join(w.Root(), "f")
	want := map[string]string{"user.fermata.short": "x", "user.fermata.empty": "", "user.fermata.long": strings.Repeat("y", 2000)}
	for k, v := range want {
		if err := unix.Setxattr(name, k, []byte(v), 0); err == unix.ENOTSUP {
			return // not on this file system
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := write(t, w, "f", "new"); err != nil {
		t.Fatal(err)
	}
	for k, v := range want {
		buf := make([]byte, 4000)
		n, err := unix.Getxattr(name, k, buf)
		if err != nil || string(buf[:n]) != v {
			t.Errorf("%s is %q, %v", k, buf[:max(n, 0)], err)
		}
	}
}

func TestAWriteKeepsTheAccessList(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there it is no attribute
	}
	const access, inherited = "system.posix_acl_access", "system.posix_acl_default"
	entry := func(tag, perm uint16, id uint32) []byte {
		return []byte{byte(tag), byte(tag >> 8), byte(perm), byte(perm >> 8), byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	}
	list := []byte{2, 0, 0, 0} // version 2
	for _, e := range [][]byte{entry(1, 6, 1<<32-1), entry(2, 4, 1234), entry(4, 0, 1<<32-1), entry(0x10, 4, 1<<32-1), entry(0x20, 0, 1<<32-1)} {
		list = append(list, e...)
	}
	w := tree(t, "-- listed --\nold\n-- plain --\nold\n", nil)
	at := func(n string) string { return filepath.Join(w.Root(), n) }
	if err := os.Chmod(at("plain"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(at("listed"), access, list, 0); err == unix.ENOTSUP {
		return // not on this file system
	} else if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(w.Root(), inherited, list, 0); err != nil { // what new files here get
		t.Fatal(err)
	}
	for name, want := range map[string]string{"listed": string(list), "plain": ""} {
		before, _ := os.Stat(at(name))
		if err := write(t, w, name, "new"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		n, err := unix.Getxattr(at(name), access, buf)
		if got := string(buf[:max(n, 0)]); got != want {
			t.Errorf("%s: the list is %x, want %x (%v)", name, got, want, err)
		}
		if after, _ := os.Stat(at(name)); after.Mode() != before.Mode() {
			t.Errorf("%s: mode %v, was %v", name, after.Mode(), before.Mode())
		}
	}
}
