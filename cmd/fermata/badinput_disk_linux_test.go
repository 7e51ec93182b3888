package main

import (
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a disk of a size over a folder until the test ends; false where that is not allowed.
func mountSmall(t *testing.T, dir string, bytes int) bool {
	t.Helper()
	if err := syscall.Mount("fermata-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Logf("no disk of its own can be mounted: %v", err)
		return false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}

// failWrites makes every write of a process into a file fail, until mend is called; false where there is no way to.
func failWrites(t *testing.T, pid int) (mend func(), ok bool) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		t.Fatal(err)
	}
	set := func(soft uint64) {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: soft, Max: was.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	return func() { set(was.Cur) }, true
}
