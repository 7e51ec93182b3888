package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fermata/agent/check"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// edits folds the entries of turns into the files that they have changed.
type edits struct {
	changes []*transcript.FileChanged
	undone  map[callOfTurn]bool // calls that told a change and then did not make it
}

type callOfTurn struct {
	turn transcript.TurnID
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
				e.undone = map[callOfTurn]bool{}
			}
			e.undone[callOfTurn{b.Turn, b.Step, b.Call}] = true
		}
	}
}

// made reports whether a change was made, or may have been. What a command was seen to have changed is changed, also when the
// command failed.
func (e *edits) made(c *transcript.FileChanged) bool {
	return c.By == transcript.ByCommand || !e.undone[callOfTurn{c.Turn, c.Step, c.Call}]
}

// done are the changes that were made, or may have been.
func (e *edits) done() []*transcript.FileChanged {
	var out []*transcript.FileChanged
	for _, c := range e.changes {
		if e.made(c) {
			out = append(out, c)
		}
	}
	return out
}

// files are the changed files, by path: each from before its first change to after its last.
func (e *edits) files(ctx context.Context, store *transcript.Store) ([]check.File, error) {
	var steps []fileStep
	for _, c := range e.done() {
		steps = append(steps, stepOf(c))
	}
	var out []check.File
	for _, s := range spans(steps) {
		before, err := content(ctx, store, s.before)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		after, err := content(ctx, store, s.after)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		out = append(out, check.File{Path: s.path, Before: before, After: after, Buffer: s.buffer})
	}
	return out, nil
}

// content is a blob by its SHA-256 in hex; nil for "", which is no file. An empty file is not nil.
func content(ctx context.Context, store *transcript.Store, sum string) ([]byte, error) {
	if sum == "" {
		return nil, nil
	}
	b, err := store.Blob(ctx, sum)
	if b == nil {
		b = []byte{}
	}
	return b, err
}

// fileStep is one change of one file, by a turn or by a revert. before and after are SHA-256 in hex, "" for no file.
type fileStep struct {
	seq           int64             // of its entry, where that matters
	turn          transcript.TurnID // "" of a revert
	path          string
	before, after string
	buffer        bool
	command       bool // a command made it
	mode          workspace.Mode
	from          string // the path that it was moved from
}

func stepOf(c *transcript.FileChanged) fileStep {
	return fileStep{
		turn: c.Turn, path: c.Path, before: c.Before, after: c.After, buffer: c.Buffer, command: c.By == transcript.ByCommand,
		mode: workspace.Mode(c.Mode), from: c.From,
	}
}

// movedFrom is what is recorded of a change: of a file that moves, that it goes where it was and comes where it will be.
func movedFrom(from string, c *transcript.FileChanged) []transcript.Body {
	if from == "" {
		return []transcript.Body{c}
	}
	gone := *c
	gone.Path, gone.After = from, ""
	c.Before, c.From = "", from
	return []transcript.Body{&gone, c}
}

// span is what some steps came to for one file.
type span struct {
	path          string
	before, after string
	buffer        bool
	command       bool            // commands alone changed it
	foreign       bool            // somebody else changed it between two of the steps
	known         map[string]bool // what it held before and after each step
	mode          workspace.Mode  // of before, where it is known
	from          string          // the path that it was moved from with the first step, in the end
}

// spans joins steps, which are in the order of the log, by path. Where a step does not begin with what the ones before it
// knew, somebody else had changed the file between them.
func spans(steps []fileStep) []span {
	byPath := map[string]*span{}
	var out []*span
	for _, c := range steps {
		s := byPath[c.path]
		if s == nil {
			s = &span{path: c.path, before: c.before, command: true, known: map[string]bool{c.before: true}, from: c.from}
			if origin := byPath[c.from]; origin != nil && origin.from != "" {
				s.from = origin.from // it was moved before
			}
			byPath[c.path] = s
			out = append(out, s)
		}
		if s.mode == "" && c.before == s.before {
			s.mode = c.mode
		}
		s.foreign = s.foreign || !s.known[c.before]
		s.known[c.before], s.known[c.after] = true, true
		s.after, s.buffer, s.command = c.after, s.buffer || c.buffer, s.command && c.command
	}
	slices.SortFunc(out, func(a, b *span) int { return strings.Compare(a.path, b.path) })
	list := make([]span, len(out))
	for i, s := range out {
		list[i] = *s
	}
	return list
}
