//go:build !linux && !darwin

package workspace

import "os"

// keepAttributes does nothing: extended attributes are not read on this system.
func keepAttributes(_, _ *os.File) {}
