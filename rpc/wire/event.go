package wire

import (
	"encoding/json"
	"time"

	"fermata/transcript"
)

// EntryEvent tells a new entry of the log. It is committed, and can be asked for again with fermata/session/open.
type EntryEvent struct {
	// Session is where it was written.
	Session transcript.SessionID `json:"session"`
	// Seq is its number.
	Seq int64 `json:"seq"`
	// Kind is what it is, as in Entry.
	Kind string `json:"kind"`
	// At is when it was written.
	At time.Time `json:"at"`
	// Entry is its body, as in Entry.
	Entry json.RawMessage `json:"entry,omitzero"`
	// Damaged says what is wrong with it.
	Damaged string `json:"damaged,omitzero"`
}

// The kinds of passing events, which have no seq and cannot be asked for again.
const (
	EventDelta     = "delta"
	EventOutput    = "tool.output"
	EventRetracted = "retracted"
	EventStopping  = "stopping"
	EventWarning   = "warning"
	EventDamaged   = "damaged" // of an EntryEvent
)

// DeltaEvent is text as it is said.
type DeltaEvent struct {
	// Session is where it is said.
	Session transcript.SessionID `json:"session"`
	// Kind is "delta".
	Kind string `json:"kind"`
	// Turn is the turn that says it.
	Turn transcript.TurnID `json:"turn"`
	// Step is the model request.
	Step int `json:"step"`
	// Part is "text" or "reasoning".
	Part transcript.PartType `json:"part"`
	// Offset is how many bytes of that part of this answer came before.
	Offset int64 `json:"offset"`
	// Text is never empty and whole characters.
	Text string `json:"text"`
}

// OutputEvent is a piece of a running tool's output, for people.
type OutputEvent struct {
	// Session is where it runs.
	Session transcript.SessionID `json:"session"`
	// Kind is "tool.output".
	Kind string `json:"kind"`
	// Turn is the turn that called the tool.
	Turn transcript.TurnID `json:"turn"`
	// Step is the model request whose answer called it.
	Step int `json:"step"`
	// Call is the call's id.
	Call transcript.CallID `json:"call"`
	// Text is the output.
	Text string `json:"text"`
}

// RetractedEvent says that a try of a step failed and another one comes after a wait. What was shown of the step, if
// anything, is an attempt now: its next text starts anew, at offset 0 (F2).
type RetractedEvent struct {
	// Session is where it was said.
	Session transcript.SessionID `json:"session"`
	// Kind is "retracted".
	Kind string `json:"kind"`
	// Turn is the turn that said it.
	Turn transcript.TurnID `json:"turn"`
	// Step is the model request.
	Step int `json:"step"`
	// Try is the one that failed, from 1.
	Try int `json:"try"`
	// Why is for people.
	Why string `json:"why"`
}

// StoppingEvent acknowledges a stop at once; the end of the turn follows.
type StoppingEvent struct {
	// Session is where the turn runs.
	Session transcript.SessionID `json:"session"`
	// Kind is "stopping".
	Kind string `json:"kind"`
	// Turn is the turn that was stopped.
	Turn transcript.TurnID `json:"turn"`
}

// WarningEvent tells the user of something that the turn has to do without, as an MCP server that does not start. It ends
// nothing.
type WarningEvent struct {
	// Session is where the turn runs.
	Session transcript.SessionID `json:"session"`
	// Kind is "warning".
	Kind string `json:"kind"`
	// Turn is the turn that begins.
	Turn transcript.TurnID `json:"turn"`
	// Text is for people.
	Text string `json:"text"`
}
