//go:build !linux && !darwin

package workspace

import "os"

// renameNew renames, and replaces nothing: that is fs.ErrExist.
func renameNew(r *os.Root, from, to string) error { return renameChecked(r, from, to) }
