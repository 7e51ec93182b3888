//go:build linux || darwin

package main

import (
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// noEcho keeps what is typed from being echoed.
func noEcho(f *os.File) (restore func()) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	if unix.IoctlSetTermios(fd, setTermios, &quiet) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }
}

// noEchoAgain does so after the process was stopped and its shell had the terminal. In the background it leaves the terminal to
// whom it belongs.
func noEchoAgain(f *os.File) {
	if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
		noEcho(f)
	}
}

// whenResumed calls f whenever the process goes on after ^Z, until the function it returns was called.
func whenResumed(f func()) (stop func()) {
	resumed, stopped := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(resumed, unix.SIGCONT)
	var watching sync.WaitGroup
	watching.Go(func() { // ends with stop
		for {
			select {
			case <-resumed:
				f()
			case <-stopped:
				return
			}
		}
	})
	return func() {
		signal.Stop(resumed)
		close(stopped)
		watching.Wait()
	}
}
