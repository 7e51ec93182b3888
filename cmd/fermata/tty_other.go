//go:build !linux && !darwin

package main

import "os"

// noEcho does nothing here: what is typed while an answer streams is echoed by the terminal.
func noEcho(*os.File) (restore func()) { return func() {} }

// noEchoAgain does nothing here.
func noEchoAgain(*os.File) {}

// whenResumed does nothing here.
func whenResumed(func()) (stop func()) { return func() {} }

// discardTyped does nothing here.
func discardTyped(*os.File) {}
