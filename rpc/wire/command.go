package wire

import (
	"encoding/json"

	"fermata/transcript"
)

// The commands of workspace/executeCommand. Each takes at most one argument, a CommandArgs, and works without.
const (
	CommandAsk            = "fermata.ask"
	CommandStop           = "fermata.stop"
	CommandRedirect       = "fermata.redirect"
	CommandOpenTranscript = "fermata.openTranscript"
	CommandShowModelInput = "fermata.showModelInput"
	CommandRetry          = "fermata.retry"
	CommandKeep           = "fermata.keep"
	CommandShowChanges    = "fermata.showChanges"
	CommandRevert         = "fermata.revert"
)

// CommandArgs is the argument of a command. All may be absent.
type CommandArgs struct {
	// Session is where to ask, or whose transcript to open. Absent: the one used last; for a question while that is busy,
	// or belongs to another workspace, a new one.
	Session transcript.SessionID `json:"session,omitzero"`
	// Turn is the turn to stop, to redirect, to retry, to keep, to revert or whose changes to show. Absent: the newest that
	// runs; for a redirect, else the last one; for retry and keep the last one of the session; for changes and revert the last
	// one that changed a file.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Request is the one whose model input to show. Absent: the newest.
	Request transcript.RequestID `json:"request,omitzero"`
	// Prompt is what to ask: a string or an array of PromptPart. Absent: a file is opened to write it in, and saving that
	// file sends it.
	Prompt json.RawMessage `json:"prompt,omitzero"`
	// URI is the document that a question is about: its range is part of the prompt, and the anchor.
	URI string `json:"uri,omitzero"`
	// Range is the part of it that the question is about.
	Range *Range `json:"range,omitzero"`
	// TurnRevertParams' other fields say what to revert.
	Paths  []string            `json:"paths,omitzero"`
	Since  bool                `json:"since,omitzero"`
	Revert transcript.RevertID `json:"revert,omitzero"`
	Undo   bool                `json:"undo,omitzero"`
	// New asks in a new session.
	New bool `json:"new,omitzero"`
}

// CommandResult is the result of ask, redirect, retry, openTranscript, showModelInput and showChanges; that of stop is a
// TurnResult, that of keep a TurnAdoptResult, that of revert a TurnRevertResult.
type CommandResult struct {
	// Session is where it was asked, or whose transcript it is.
	Session transcript.SessionID `json:"session,omitzero"`
	// Turn is the turn that has begun; its end is told by events.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Request is the one whose model input it is.
	Request transcript.RequestID `json:"request,omitzero"`
	// URI is the file that was written: a transcript, a model input, a diff, or a prompt to fill in.
	URI string `json:"uri,omitzero"`
	// Bytes is the file with the exact bytes of a model input; URI is an indented copy.
	Bytes string `json:"bytes,omitzero"`
	// Shown says that the client has opened URI.
	Shown bool `json:"shown,omitzero"`
}
