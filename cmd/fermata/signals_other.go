//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endSignals ask the process to end: on Windows, closing the console window is one.
var endSignals = []os.Signal{syscall.SIGTERM}

// pipeSignals do not exist here: a write to a closed pipe fails.
var pipeSignals []os.Signal
