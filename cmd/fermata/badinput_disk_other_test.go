//go:build !linux

package main

import "testing"

// mountSmall mounts a disk of a size over a folder until the test ends; false where that is not allowed.
func mountSmall(*testing.T, string, int) bool { return false }
