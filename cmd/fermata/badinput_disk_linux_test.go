package main

import (
	"fmt"
	"syscall"
	"testing"
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
