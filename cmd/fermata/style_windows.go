package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// understandsEscapes makes the console understand escapes, and reports whether it does: old ones have to be asked.
func understandsEscapes(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
