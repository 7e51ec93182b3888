// Package workspace is the one door to the files of a project. It promises that nothing a model or a repository says
// makes the daemon read or write outside the root: every access goes through [os.Root], only regular files are opened,
// and no link, FIFO or device hangs it or leads it out. Where an editor has a file open, the editor's text is the file:
// it is what is read, and changes are handed to the editor instead of the disk.
//
// It runs no program and knows nothing of tools, models or protocols. All methods may be called from any goroutine.
// Their errors say what was wrong in words that a model can act on. Cancelling a context ends a walk between two files
// and a write before it has happened, never in its middle.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// MaxRead is how many bytes Read loads into memory; a longer file can only be streamed.
const MaxRead = 64 << 20

// Conditions that errors of this package wrap.
var (
	ErrPath       = errors.New("not a usable path")
	ErrOutside    = errors.New("outside the workspace")
	ErrNotRegular = errors.New("not a regular file")
	ErrNotText    = errors.New("not text")
	ErrTooLarge   = errors.New("too large")
	ErrChanged    = errors.New("changed meanwhile")
	ErrProtected  = errors.New("may not be written")
)

// Overlay is the editor's open documents. Paths are relative to the root, slash-separated. Its methods may be called from
// any goroutine; Text and Paths must not block on the editor.
type Overlay interface {
	// Text is the document's text as the editor has it, saved or not; ok is false when it is not open.
	Text(path string) (text string, ok bool)
	// Paths are the open documents, in any order.
	Paths() []string
	// Apply changes an open document from before to after. It is an error, and nothing is changed, when the document's
	// text is no longer before.
	Apply(ctx context.Context, path string, before, after string) error
}

// Workspace is an open root. Close releases it.
type Workspace struct {
	root    *os.Root
	dir     string // absolute, as opened
	real    string // dir with links resolved; models see either
	overlay Overlay

	writing sync.Mutex // held from the check of a file's content until it is replaced

	stage func(name string) // for the tests that end the process in the middle of a write; else nil
}

// Open opens the directory root, which is made absolute; it may itself be a link. ov may be nil: no editor.
func Open(root string, ov Overlay) (*Workspace, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &Workspace{root: r, dir: dir, real: real, overlay: ov}, nil
}

// Close releases the root. Files already open stay open.
func (w *Workspace) Close() error { return w.root.Close() }

// Root is the absolute path of the root.
func (w *Workspace) Root() string { return w.dir }

// RealRoot is the absolute path of the root with its links resolved.
func (w *Workspace) RealRoot() string { return w.real }

// Contains reports whether the absolute path name, or what it resolves to, lies within the root: such a program must not
// be run by the daemon of its own accord.
func (w *Workspace) Contains(name string) bool {
	if _, ok := w.relative(name); ok {
		return true
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		_, ok := w.relative(real)
		return ok
	}
	return false
}

// OpenPaths are the documents open in the editor, as it names them and in any order; empty without an editor.
func (w *Workspace) OpenPaths() []string {
	if w.overlay == nil {
		return nil
	}
	return w.overlay.Paths()
}

// buffer finds the open document of a file by the name it was asked for and by the one its links lead to. key is the
// editor's name for it.
func (w *Workspace) buffer(names ...string) (key, text string, ok bool) {
	if w.overlay == nil {
		return "", "", false
	}
	for _, n := range names {
		if text, ok := w.overlay.Text(n); ok {
			return n, text, true
		}
	}
	return "", "", false
}
