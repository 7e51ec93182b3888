package wire

import (
	"encoding/json"

	"fermata/transcript"
)

// Position is a place in a document as LSP counts: both from 0, characters in the encoding agreed in initialize.
type Position struct {
	// Line is the line, from 0.
	Line uint32 `json:"line"`
	// Character is the place in the line, from 0.
	Character uint32 `json:"character"`
}

// Range is a part of a document; End is not in it.
type Range struct {
	// Start is the first place in it.
	Start Position `json:"start"`
	// End is the first place behind it.
	End Position `json:"end"`
}

// PromptPart is a piece of what the user says.
type PromptPart struct {
	// Type is "text", "file" (whole lines of a file, or all of it) or "selection" (exactly a range).
	Type string `json:"type"`
	// Text is what was said. For a file or selection it is the content; absent: the daemon reads it, from the client's
	// open document if there is one.
	Text string `json:"text,omitzero"`
	// URI names the file of a file or selection.
	URI string `json:"uri,omitzero"`
	// Path names it instead, absolute or relative to the workspace.
	Path string `json:"path,omitzero"`
	// Range is the part of the file. Absent: all of it.
	Range *Range `json:"range,omitzero"`
}

// Anchor is where in an editor a turn was asked for: where its answer and its stop control are shown.
type Anchor struct {
	// URI names the document.
	URI string `json:"uri"`
	// Range is the place in it.
	Range Range `json:"range"`
}

// TurnStartParams start a turn. The request is answered at the turn's end; cancelling it is a stop.
type TurnStartParams struct {
	// Session is where it runs; a client that does not follow the session yet does so from now on.
	Session transcript.SessionID `json:"session"`
	// Prompt is what the user says: at least one part.
	Prompt []PromptPart `json:"prompt"`
	// Anchor is where it was asked.
	Anchor *Anchor `json:"anchor,omitzero"`
	// Redirects names the stopped turn whose course this one replaces (D2).
	Redirects transcript.TurnID `json:"redirects,omitzero"`
	// ClientID makes the start safe to repeat: the second one joins the turn of the first and gets the same result.
	ClientID string `json:"clientId,omitzero"`
	// Model is the model to use. Absent: the session's.
	Model string `json:"model,omitzero"`
	// WorkDoneToken is LSP's: progress is reported on it.
	WorkDoneToken json.RawMessage `json:"workDoneToken,omitzero"`
}

// TurnStopParams stop a turn. All may be absent.
type TurnStopParams struct {
	// Turn names it. Absent: the newest that runs.
	Turn transcript.TurnID `json:"turn,omitzero"`
}

// TurnRedirectParams stop a turn, if it still runs, and start the one that replaces its course, with nothing in between
// (D4). The request is answered at the end of the new turn.
type TurnRedirectParams struct {
	// Turn names the turn to replace. Absent: the newest that runs, else the last one.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Prompt is what it should do instead.
	Prompt []PromptPart `json:"prompt"`
	// Anchor is where it was asked.
	Anchor *Anchor `json:"anchor,omitzero"`
	// ClientID is as in TurnStartParams.
	ClientID string `json:"clientId,omitzero"`
	// Model is as in TurnStartParams.
	Model string `json:"model,omitzero"`
	// WorkDoneToken is LSP's: progress is reported on it.
	WorkDoneToken json.RawMessage `json:"workDoneToken,omitzero"`
}

// TurnResult says how a turn ended. All of the turn's events were sent before it.
type TurnResult struct {
	// Session is where it ran.
	Session transcript.SessionID `json:"session"`
	// Turn is its id.
	Turn transcript.TurnID `json:"turn"`
	// Outcome is "completed", "stopped", "failed" or "abandoned".
	Outcome transcript.Outcome `json:"outcome"`
	// Cause is, of a stop, "user", "client_gone" or "shutdown"; of a failure, its class.
	Cause string `json:"cause,omitzero"`
	// Error is for people.
	Error string `json:"error,omitzero"`
	// Silent says that nothing was said before the stop: offer Prompt back for editing (S6).
	Silent bool `json:"silent,omitzero"`
	// Kept says what the stop kept of the answer.
	Kept *transcript.Kept `json:"kept,omitzero"`
	// Withheld says which checks the turn's last answer has not passed, so that no later model input holds it (K1). A turn
	// that ended by it is "failed", with the cause "rejected" or "unverified". Absent: it is not withheld.
	Withheld []Withholding `json:"withheld,omitzero"`
	// Tools are the turn's tool calls and what became of them.
	Tools []ToolFate `json:"tools"`
	// Prompt is what the user had said.
	Prompt []transcript.PromptPart `json:"prompt"`
	// Returned are the messages that waited behind the turn and were handed back, oldest first (S10); of a redirect also
	// those that waited behind the turn that it stopped.
	Returned []Returned `json:"returned"`
}

// ToolFate is what became of one tool call.
type ToolFate struct {
	// Step is the model request whose answer made the call, from 1 in each turn.
	Step int `json:"step"`
	// Call is its id, unique within the step.
	Call transcript.CallID `json:"call"`
	// Name is the tool's.
	Name string `json:"name"`
	// Summary is one line for people.
	Summary string `json:"summary,omitzero"`
	// State is "done", "failed", "stopped", "not_started" or "unknown".
	State transcript.ToolState `json:"state"`
	// Cause says why a call has no result of its own (S8).
	Cause string `json:"cause,omitzero"`
}
