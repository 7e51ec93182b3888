//go:build unix

package main

import (
	"os"
	"syscall"
)

// signalZero is an error when the process is gone.
func signalZero(p *os.Process) error { return p.Signal(syscall.Signal(0)) }
