// Package tools is the catalogue of what a model can do: one file per tool, its description beside it in a .md file. A
// tool's failure is a [Result] that the model can read; a Go error would mean that fermata's own machinery failed, and no
// tool returns one. Tools reach files only through tools/workspace. They know neither the agent nor rpc.
//
// A tool's Run may be called from any goroutine, several at once for read-only tools. Cancelling its context is a stop
// (S7): it must come back soon with what it has, in state Stopped, leaving no process behind (S14).
package tools

import (
	"context"
	"encoding/json"

	"fermata/agent/permit"
	"fermata/tools/workspace"
)

// State is what became of a run; the words are those of transcript.ToolState.
type State string

// The states a tool can end in.
const (
	Done    State = "done"
	Failed  State = "failed"
	Stopped State = "stopped"
)

// Result is what a run came to. Output is for the model: bounded, valid UTF-8. Full is the whole output when Output is a
// cut of it, else nil. Exit is the exit status of a process, nil when there was none.
type Result struct {
	State  State
	Output string
	Full   []byte
	Exit   *int
}

// Change is a file a tool is about to change: content before and after, nil for a file that does not exist.
type Change struct {
	Path          string // relative to the root, slash-separated
	Before, After []byte
	Buffer        bool // goes to an editor's open document instead of the disk
}

// Env is what a run is given besides its arguments.
type Env struct {
	Workspace *workspace.Workspace
	Permit    permit.Permit // valid for mutating tools
	// Intent is called before each file is touched and must succeed first (C3). Never nil.
	Intent func(ctx context.Context, c Change) error
	// Progress gets output as it comes, for people; it may be nil. It never blocks.
	Progress func(text string)
}

// Tool is one entry of the catalogue.
type Tool struct {
	Name        string
	Description string          // from the .md file
	Schema      json.RawMessage // JSON Schema of the arguments, compact, property order fixed (M4)
	ReadOnly    bool            // changes nothing: needs no permit and may run beside others
	// Summary is one line for people, e.g. "read_file go.mod 1-40"; it must not fail on any args.
	Summary func(args json.RawMessage) string
	// Run does it. args can be empty (means {}), cut or malformed: then the result is Failed and says so.
	Run func(ctx context.Context, env Env, args json.RawMessage) Result
}
