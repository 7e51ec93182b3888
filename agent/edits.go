package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fermata/agent/check"
	"fermata/transcript"
)

// edits folds the entries of a turn into the files that it has changed. What a command did to files is not among them:
// commands do not tell.
type edits struct {
	changes []*transcript.FileChanged
	undone  map[callOfStep]bool // calls that told a change and then did not make it
}

type callOfStep struct {
	step int
	call transcript.CallID
}

func (e *edits) add(b transcript.Body) {
	switch b := b.(type) {
	case *transcript.FileChanged:
		e.changes = append(e.changes, b)
	case *transcript.ToolSettled:
		if !b.Late && (b.State == transcript.ToolFailed || b.State == transcript.ToolNotStarted) {
			if e.undone == nil {
				e.undone = map[callOfStep]bool{}
			}
			e.undone[callOfStep{b.Step, b.Call}] = true
		}
	}
}

// done are the changes that were made, or may have been.
func (e *edits) done() []*transcript.FileChanged {
	var out []*transcript.FileChanged
	for _, c := range e.changes {
		if !e.undone[callOfStep{c.Step, c.Call}] {
			out = append(out, c)
		}
	}
	return out
}

// files are the changed files, by path: each from before its first change to after its last.
func (e *edits) files(ctx context.Context, store *transcript.Store) ([]check.File, error) {
	type span struct {
		before, after string
		buffer        bool
	}
	spans := map[string]span{}
	var paths []string
	for _, c := range e.done() {
		s, again := spans[c.Path]
		if !again {
			paths = append(paths, c.Path)
			s.before = c.Before
		}
		s.after, s.buffer = c.After, s.buffer || c.Buffer
		spans[c.Path] = s
	}
	slices.SortFunc(paths, strings.Compare)
	blob := func(sum string) ([]byte, error) {
		if sum == "" {
			return nil, nil
		}
		b, err := store.Blob(ctx, sum)
		if b == nil {
			b = []byte{} // an empty file is a file
		}
		return b, err
	}
	var out []check.File
	for _, path := range paths {
		s := spans[path]
		before, err := blob(s.before)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		after, err := blob(s.after)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, check.File{Path: path, Before: before, After: after, Buffer: s.buffer})
	}
	return out, nil
}
