//go:build unix

package watch

import (
	"errors"
	"syscall"
)

// limitReached reports whether the system grants no more watches or files.
func limitReached(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
