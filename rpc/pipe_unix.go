//go:build unix

package rpc

import (
	"os/signal"
	"syscall"
)

// SurviveBrokenPipe makes a write to a client that has gone an error instead of the end of the process, so that running
// turns are stopped and committed. It is for the main function: it changes the process.
func SurviveBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
