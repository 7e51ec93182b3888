//go:build unix

package check

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// alive reports whether a process runs; one that only waits to be collected does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return !bytes.Contains(stat, []byte(") Z"))
	}
	return syscall.Kill(pid, 0) == nil
}
