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
	"fmt"
	"strings"

	"fermata/agent/permit"
	"fermata/tools/process"
	"fermata/tools/workspace"
)

// State is what became of a run; the words are those of transcript.ToolState.
type State string

// The states a tool can end in.
const (
	Done    State = "done"
	Failed  State = "failed"
	Stopped State = "stopped"
	Unknown State = "unknown" // it may still come, as Later
)

// Result is what a run came to. Output is for the model: bounded, valid UTF-8, never empty. Full is the whole output when
// Output is a cut of it, else nil. Exit is the exit status of a process (128 + n when signal n ended it), nil when there
// was none. A command that exits with another status than 0 is Done: the tool did what it was asked to.
type Result struct {
	State  State
	Output string
	Full   []byte
	Exit   *int
	// Later gives what came of a run whose State is Unknown, if anything does, and is closed. nil: nothing more comes.
	Later <-chan Result
	Seen  []Seen // files that Output has shown, or given an exact account of
}

// Change is a file a tool is about to change: content before and after, nil for a file that does not exist.
type Change struct {
	Path          string // relative to the root, slash-separated, links resolved
	Before, After []byte
	Buffer        bool           // goes to an editor's open document instead of the disk
	From          string         // the path it is moved from, as Path; Before is its content there. "": it is not moved
	Mode          workspace.Mode // of a file that is created, deleted or moved; "" is one of no special mode
}

// Env is what a run is given besides its arguments.
type Env struct {
	Workspace *workspace.Workspace
	Permit    permit.Permit // for mutating tools: minted by a decision about the tool's own Ask of the same arguments
	// Intent is called before each file is touched and must succeed first (C3). Never nil.
	Intent func(ctx context.Context, c Change) error
	// Progress gets output as it comes, for people; it may be nil. It never blocks, and is not called after Run returned.
	Progress func(text string)
	// Memory is what the model has read so far; nil: nobody remembers.
	Memory Memory
	// MayRead tells of a file's resolved path whether it may be read without asking, and why not. A file that Permit
	// covers may be read; nil means that any may be.
	MayRead func(path string) (why string, ok bool)
	// Secrets names variables of the daemon's environment that no command is given, besides those whose name tells.
	Secrets []string
	// Sandbox confines commands; nil: none.
	Sandbox *process.Sandbox

	preview func(c Change) // gets what would be changed, which then is not; nil: it is
}

// Tool is one entry of the catalogue. Its functions take the arguments as the model issued them: they can be empty (means
// {}), cut or malformed.
type Tool struct {
	Name        string
	Description string          // from the .md file
	Schema      json.RawMessage // JSON Schema of the arguments, compact, property order fixed (M4)
	ReadOnly    bool            // changes nothing: needs no permit and may run beside others
	// Summary is one line for people, e.g. "read_file go.mod 1-40"; it does not fail on any args.
	Summary func(args json.RawMessage) string
	// Check tells whether args can be run at all. If not, bad is the result that Run would give, and there is no need to
	// ask the user first: malformed arguments, or a file to change that lies outside. w may be nil.
	Check func(w *workspace.Workspace, args json.RawMessage) (bad Result, ok bool)
	// Ask is the question to decide about before Run; env.Permit must be the answer to it. It follows the links in the
	// paths that the arguments name; without a workspace, when w is nil, it has no paths.
	Ask func(w *workspace.Workspace, args json.RawMessage) permit.Call
	// Preview tells what Run would change now, and changes nothing; nil for a tool that does not only change files. env
	// needs no permit. When result is Failed it is what Run would give, as long as env may read the files of the call's Ask.
	Preview func(ctx context.Context, env Env, args json.RawMessage) (changes []Change, result Result)
	// Run does it.
	Run func(ctx context.Context, env Env, args json.RawMessage) Result
}

// All is the catalogue in its fixed order (M4). The slice is the caller's.
func All() []Tool {
	return []Tool{readFile(), listDir(), globFiles(), grepFiles(), writeFile(), editFile(), applyPatch(), movePath(), deletePath(), runCommand()}
}

// Lookup finds a tool by its name.
func Lookup(name string) (Tool, bool) {
	for _, t := range All() {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// definition is a tool whose arguments decode into an A.
type definition[A any] struct {
	name, description string
	readOnly          bool
	schema            string
	required          []string
	example           string             // arguments as they should be, for a model that got them wrong
	summary           func(a A) string   // less the name
	command           func(a A) string   // what the shell is given; nil for a tool that runs nothing
	paths             func(a A) []string // what it changes, or was told to read, as the model named it; nil for none
	run               func(ctx context.Context, env Env, a A) Result

	valid func(a A) error // what else makes arguments unusable, in words that follow the tool's name; nil for nothing
	// reach are the resolved paths of all that it changes, instead of paths, for a tool that knows better than to follow links.
	reach func(w *workspace.Workspace, a A) ([]string, error)
}

// tool makes the catalogue's entry. Invariant: run of a mutating tool is called only with a permit for this very call.
// Tested by TestAMutatingToolNeedsAPermitForThisVeryCall.
func (d definition[A]) tool() Tool {
	decode := func(args json.RawMessage) (A, Result, bool) {
		a, err := decodeArgs[A](args, d.required)
		if err != nil {
			return a, failf("%s: %v\nexpected: %s", d.name, err, d.example), false
		}
		if d.valid != nil {
			if err := d.valid(a); err != nil {
				return a, failf("%s: nothing was done: %v", d.name, err), false
			}
		}
		return a, Result{}, true
	}
	summary := func(args json.RawMessage) string {
		a, _, ok := decode(args)
		if !ok {
			return d.name + " (malformed arguments)"
		}
		return strings.TrimSpace(d.name + " " + oneLine(d.summary(a), 160))
	}
	ask := func(w *workspace.Workspace, args json.RawMessage) permit.Call {
		c := permit.Call{Tool: d.name, ReadOnly: d.readOnly, Summary: summary(args)}
		a, _, ok := decode(args)
		if ok && d.command != nil {
			c.Command = d.command(a)
		}
		if w != nil {
			c.Root = w.RealRoot()
			c.Leads = leads(w, c.Command)
		}
		if ok && w != nil {
			c.Paths, _ = d.resolve(w, a)
		}
		return c
	}
	t := Tool{
		Name: d.name, Description: strings.TrimSpace(d.description), Schema: json.RawMessage(d.schema),
		ReadOnly: d.readOnly, Summary: summary, Ask: ask,
		Check: func(w *workspace.Workspace, args json.RawMessage) (Result, bool) {
			a, bad, ok := decode(args)
			if ok && w != nil && !d.readOnly {
				if _, err := d.resolve(w, a); err != nil {
					return failf("%s: %v", d.name, err), false
				}
			}
			return bad, ok
		},
		Run: func(ctx context.Context, env Env, args json.RawMessage) Result {
			a, bad, ok := decode(args)
			if !ok {
				return bad
			}
			if !d.readOnly && !env.Permit.Allows(ask(env.Workspace, args)) {
				if env.Permit.Valid() {
					return failf("%s: permission denied: it was given for other files than this is about now", d.name)
				}
				return failf("%s: permission denied", d.name)
			}
			if ctx.Err() != nil {
				return Result{State: Stopped, Output: "stopped before it began: nothing was done"}
			}
			return d.run(ctx, env, a)
		},
	}
	if !d.readOnly && d.command == nil && (d.paths != nil || d.reach != nil) {
		t.Preview = d.preview
	}
	return t
}

// mayRead says whether a tool may read the file that it found at a resolved path.
func (env Env) mayRead(path string) (why string, ok bool) {
	if env.MayRead == nil || env.Permit.Covers(path) {
		return "", true
	}
	return env.MayRead(path)
}

// resolve follows the links in the paths that a call names. A path that leads nowhere is left out and is the error.
func (d definition[A]) resolve(w *workspace.Workspace, a A) (paths []string, failed error) {
	if d.reach != nil {
		return d.reach(w, a)
	}
	if d.paths == nil {
		return nil, nil
	}
	for _, name := range d.paths(a) {
		real, err := w.Resolve(name)
		if err != nil {
			failed = err
			continue
		}
		paths = append(paths, real)
	}
	return paths, failed
}

// leads are where the links lead that a command names.
func leads(w *workspace.Workspace, command string) (files []string) {
	const looked = 5000 // names at most: padding must not hide one
	names := permit.Names(command)
	for _, name := range names[:min(len(names), looked)] {
		clean, err := w.Clean(name)
		if err != nil {
			continue
		}
		if real, err := w.Resolve(clean); err == nil && real != clean {
			files = append(files, real)
		}
	}
	return files
}

func done(output string) Result { return Result{State: Done, Output: output} }

func failf(format string, args ...any) Result {
	return Result{State: Failed, Output: fmt.Sprintf(format, args...)}
}

func stopped(soFar string) Result {
	if soFar == "" {
		return Result{State: Stopped, Output: "stopped before there was any output"}
	}
	return Result{State: Stopped, Output: strings.TrimSuffix(soFar, "\n") + "\n(stopped here)"}
}
