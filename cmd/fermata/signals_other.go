//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endSignals ask the process to end: on Windows, closing the console window is one.
var endSignals = []os.Signal{syscall.SIGTERM}

// pipeSignals do not come here, where a write to a closed pipe just fails; naming one keeps Notify from meaning all.
var pipeSignals = []os.Signal{syscall.SIGPIPE}
