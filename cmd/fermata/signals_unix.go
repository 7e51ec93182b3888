//go:build unix

package main

import (
	"os"
	"syscall"
)

// endSignals ask the process to end. SIGHUP: the terminal is gone.
var endSignals = []os.Signal{syscall.SIGTERM, syscall.SIGHUP}

// pipeSignals come when nobody reads stdout any more. Caught, the write fails instead, and the turn ends as a stop.
// Ignored they would stay ignored in the programs that tools run.
var pipeSignals = []os.Signal{syscall.SIGPIPE}
