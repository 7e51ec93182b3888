//go:build !linux

package main

import "testing"

// mountSmall mounts a disk of a size over a folder until the test ends; false where that is not allowed.
func mountSmall(*testing.T, string, int) bool { return false }

// failWrites makes every write of a process into a file fail, until mend is called; false where there is no way to.
func failWrites(*testing.T, int) (mend func(), ok bool) { return nil, false }
