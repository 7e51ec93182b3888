//go:build unix

package main

import (
	"os"
	"regexp"
	"syscall"
	"testing"
)

// signalZero is an error when the process is gone.
func signalZero(p *os.Process) error { return p.Signal(syscall.Signal(0)) }

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// quitGoroutines kills a daemon with SIGQUIT, to which the Go runtime answers with its goroutines, and counts them.
func quitGoroutines(t testing.TB, e *editor) int {
	t.Helper()
	p, err := os.FindProcess(e.Pid())
	if err == nil {
		err = p.Signal(syscall.SIGQUIT)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Exit()
	n := len(goroutine.FindAllString(e.Stderr(), -1))
	if n == 0 {
		t.Errorf("no goroutines in the dump: %s", e.Stderr())
	}
	return n
}
