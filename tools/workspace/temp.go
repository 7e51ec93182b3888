package workspace

import (
	"crypto/rand"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A file is written under a temporary name in its own folder first. A daemon that is killed in between leaves it behind.
const (
	tempStart = ".fermata-"
	tempEnd   = ".tmp"
	// staleAfter is the age from which a temporary file is no write that is still going on. Should it be one all the same, on a
	// machine that was asleep, then that write fails and changes nothing.
	staleAfter = 10 * time.Minute
)

func tempName() string { return tempStart + rand.Text() + tempEnd }

// isTemp reports whether the last part of a name is one that tempName made: no other file is hidden or removed.
func isTemp(name string) bool {
	middle, starts := strings.CutPrefix(path.Base(name), tempStart)
	middle, ends := strings.CutSuffix(middle, tempEnd)
	return starts && ends && len(middle) == len(rand.Text()) &&
		strings.Trim(middle, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// leftover reports whether the resolved name is a temporary file, which nobody is shown, and removes it once it is stale.
func (w *Workspace) leftover(name string) bool {
	if !isTemp(name) {
		return false
	}
	local := filepath.FromSlash(name)
	fi, err := w.root.Lstat(local)
	if err == nil && fi.Mode().IsRegular() && time.Since(fi.ModTime()) > staleAfter {
		_ = w.root.Remove(local) // or another time
	}
	return err != nil || fi.Mode().IsRegular()
}
