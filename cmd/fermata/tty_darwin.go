package main

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// discardTyped forgets what was typed and not read yet.
func discardTyped(f *os.File) {
	const read = 1                                                 // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, read) // when it fails, it is read: as before
}
