//go:build !linux && !darwin

package main

import "os"

// noEcho does nothing here: what is typed while an answer streams is echoed by the terminal.
func noEcho(*os.File) (restore func()) { return func() {} }

// discardTyped does nothing here.
func discardTyped(*os.File) {}
