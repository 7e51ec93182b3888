//go:build !unix

package main

import "os/exec"

// ownGroup does nothing here: the program alone is killed when its context ends.
func ownGroup(*exec.Cmd) {}
