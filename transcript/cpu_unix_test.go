//go:build unix

package transcript

import (
	"syscall"
	"time"
)

// cpu is the processor time that the process has used so far, in all threads.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
