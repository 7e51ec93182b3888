package agent

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"

	"fermata/tools/workspace"
)

// MaxDiff is how many bytes each side of a file may have for a diff of it to be made.
const MaxDiff = 4 << 20

// FileDiff is the difference of two contents of a file, as text: an encoding or a byte order mark makes none.
type FileDiff struct {
	Unified        []byte // a unified diff with its header, as patch and git apply take it; nil when there is no difference
	Added, Removed int    // lines
	Binary         bool   // one of the two is no text, or is longer than MaxDiff: Unified only says so
}

// Diff compares what a file held before and after, nil being no file.
func Diff(path string, before, after []byte) FileDiff { return diffMoved(path, path, before, after) }

// diffMoved is Diff of a file that had another path.
func diffMoved(oldPath, path string, before, after []byte) FileDiff {
	from, to := "a/"+oldPath, "b/"+path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	from, to = workspace.Show(from), workspace.Show(to)
	switch {
	case before == nil && after == nil, before != nil && after != nil && bytes.Equal(before, after):
		return FileDiff{}
	}
	old, ok := diffable(before)
	new, ok2 := diffable(after)
	if !ok || !ok2 {
		return FileDiff{Binary: true, Unified: fmt.Appendf(nil, "Binary files %s and %s differ\n", from, to)}
	}
	d := FileDiff{Unified: fmt.Appendf(nil, "--- %s\n+++ %s\n", from, to)}
	text := diff.Diff("a", old, "b", new)
	for range 3 { // its own header
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	for line := range bytes.Lines(text) {
		switch line[0] {
		case '+':
			d.Added++
		case '-':
			d.Removed++
		}
	}
	d.Unified = append(d.Unified, text...)
	return d
}

// diffable is a content as text.
func diffable(b []byte) ([]byte, bool) {
	if b == nil || len(b) > MaxDiff {
		return nil, b == nil
	}
	text, ok := textOf(b)
	return []byte(text), ok
}
