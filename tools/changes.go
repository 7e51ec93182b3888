package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"fermata/tools/workspace"
)

// putBack is how long changes that were made are being put back, after a stop too: less than a stop waits for its tools (S7).
const putBack = 3 * time.Second

// step is one of several changes that are made together. A step is made whole or not at all.
type step struct {
	name    string   // what it is about, for people
	changes []Change // to be recorded before and shown; nil when another step's say it
	check   func() error
	do      func(ctx context.Context) error
	undo    func(ctx context.Context) error
	// made and unmade tell by what is there now: an editor can fail after it acted. Neither is so when somebody else was there.
	made, unmade func() bool
}

// changeAll makes all steps, in order, or none: it is change for several files. When one fails, those that were made are put
// back; made is then false, and bad says what happened, also of what could not be put back. Invariant: Intent has succeeded for
// every file before the first is touched (C3), so that what a crash left can be told file by file. Tested by
// TestIntentsOfAllFilesComeBeforeTheFirstChange.
func changeAll(ctx context.Context, env Env, tool string, steps []step) (bad Result, made bool) {
	var all []Change
	for _, s := range steps {
		if s.check != nil {
			if err := s.check(); err != nil {
				return failf("%s: nothing was changed: %v", tool, err), false
			}
		}
		all = append(all, s.changes...)
	}
	if env.preview != nil {
		for _, c := range all {
			env.preview(c)
		}
		return done(""), false
	}
	for _, c := range all {
		if !env.Permit.Covers(c.Path) || c.From != "" && !env.Permit.Covers(c.From) { // a link has changed since the decision
			return failf("%s: permission denied: it was given for other files than %s", tool, workspace.Show(c.Path)), false
		}
	}
	for _, c := range all {
		if err := env.Intent(ctx, c); err != nil {
			if ctx.Err() != nil {
				return Result{State: Stopped, Output: "stopped before anything was changed"}, false
			}
			return failf("%s: nothing was changed, because the change of %s could not be recorded first: %v", tool, workspace.Show(c.Path), err), false
		}
	}
	for i, s := range steps {
		if err := s.do(ctx); err != nil && !s.made() {
			return undoAll(ctx, tool, steps[:i], s, err), false
		}
	}
	return Result{}, true
}

// undoAll puts back what was made before a step failed.
func undoAll(ctx context.Context, tool string, made []step, failed step, cause error) Result {
	undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBack) // a stop must not leave half of it
	defer cancel()
	var back, stuck []string
	for i := len(made) - 1; i >= 0; i-- {
		s := made[i]
		if err := s.undo(undoing); err != nil && !s.unmade() {
			stuck = append(stuck, fmt.Sprintf("%s (%v)", s.name, err))
		} else {
			back = append(back, s.name)
		}
	}
	r := failf("%s: %v", tool, cause)
	if ctx.Err() != nil {
		r = Result{State: Stopped, Output: tool + ": stopped before " + failed.name + " was changed"}
	}
	if len(stuck) == 0 {
		r.Output += "\nNothing was changed"
		if len(back) > 0 {
			r.Output += ": put back " + someOf(back)
		}
		return r
	}
	if r.State == Failed {
		r.State = Unknown // a failed call is one that has changed nothing
	}
	r.Output += "\nCould not be put back, and is changed: " + someOf(stuck)
	if len(back) > 0 {
		r.Output += "\nPut back: " + someOf(back)
	}
	return r
}

// someOf lists names, the first of many.
func someOf(names []string) string {
	const most = 20
	if n := len(names); n > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(names, ", ")
}

// writeStep replaces the content of a file, or creates it.
func writeStep(w *workspace.Workspace, old workspace.File, after []byte) step {
	c := Change{Path: old.Path, Before: old.Content, After: after, Buffer: old.Buffer}
	if !old.Exists() {
		c.Mode = old.Mode
	}
	holds := func(content []byte) bool {
		now, err := w.ReadOrNew(old.Path)
		return err == nil && now.Exists() == (content != nil) && bytes.Equal(now.Content, content)
	}
	return step{
		name: workspace.Show(old.Path), changes: []Change{c},
		check: func() error { return w.CheckWrite(old) },
		do:    func(ctx context.Context) error { return w.Write(ctx, old, after) },
		undo: func(ctx context.Context) error {
			now, err := w.ReadItself(old.Path)
			switch {
			case err != nil:
				return err
			case !bytes.Equal(now.Content, after):
				return errChangedAgain
			case !old.Exists():
				return w.Remove(ctx, now)
			}
			return w.Write(ctx, now, old.Content)
		},
		made:   func() bool { return holds(after) },
		unmade: func() bool { return holds(old.Content) },
	}
}

var errChangedAgain = errors.New("it was changed again meanwhile")

// removeStep deletes a file or a link. old is from ReadItself, and not open in the editor.
func removeStep(w *workspace.Workspace, old workspace.File) step {
	return step{
		name:    workspace.Show(old.Path),
		changes: []Change{{Path: old.Path, Before: old.Content, Mode: old.Mode}},
		check: func() error {
			if old.Mode == workspace.ModeLink {
				return nil
			}
			return w.CheckWrite(old)
		},
		do: func(ctx context.Context) error { return w.Remove(ctx, old) },
		undo: func(ctx context.Context) error {
			return w.Write(ctx, workspace.File{Path: old.Path, Mode: old.Mode}, old.Content)
		},
		made: func() bool {
			now, err := w.ReadItself(old.Path)
			return err == nil && !now.Exists()
		},
		unmade: func() bool {
			now, err := w.ReadItself(old.Path)
			return err == nil && now.Exists() && bytes.Equal(now.Content, old.Content)
		},
	}
}

// moveStep moves a file, link or folder. files are those that are moved by it, as ReadItself gave them.
func moveStep(w *workspace.Workspace, from, to string, files []workspace.File) step {
	s := step{
		name:   workspace.Show(from),
		check:  func() error { return w.CheckMove(from, to) },
		do:     func(ctx context.Context) error { return w.Move(ctx, from, to, files) },
		undo:   func(ctx context.Context) error { return w.Move(ctx, to, from, nil) },
		made:   func() bool { return w.HasName(to) && !w.HasName(from) },
		unmade: func() bool { return w.HasName(from) && !w.HasName(to) },
	}
	for _, f := range files {
		path := to + strings.TrimPrefix(f.Path, from)
		s.changes = append(s.changes, Change{Path: path, From: f.Path, Before: f.Content, After: f.Content, Mode: f.Mode})
	}
	return s
}
