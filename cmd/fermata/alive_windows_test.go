package main

import (
	"os"
	"testing"
)

// signalZero is an error when the process is gone; on Windows finding it tells already.
func signalZero(*os.Process) error { return nil }

// quitGoroutines kills a daemon; on Windows no signal makes it tell its goroutines.
func quitGoroutines(_ testing.TB, e *editor) int {
	e.Kill()
	return 0
}
