package wire

import "fermata/transcript"

// TranscriptRenderParams ask for a session as text.
type TranscriptRenderParams struct {
	// Session is its id. Absent: the one used last.
	Session transcript.SessionID `json:"session,omitzero"`
	// Format is "markdown" (also when absent) or "json": one entry a line.
	Format string `json:"format,omitzero"`
	// Since leaves out what is shown of this entry and those before it, and the heading: for a client that has them. A
	// negative one counts from the end: -300 is the newest 300 entries, for a first page at once.
	Since int64 `json:"since,omitzero"`
	// Until leaves out what is shown of this entry and those after it. A negative Since counts from there: 9701 with -300 is
	// the page before that of the newest 300 of 10,000.
	Until int64 `json:"until,omitzero"`
}

// TranscriptRenderResult is a session as text.
type TranscriptRenderResult struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Format is that of Text.
	Format string `json:"format"`
	// Since is the entry that Text begins behind, 0 at the start: Until of the page before is one more.
	Since int64 `json:"since"`
	// Text is the session.
	Text string `json:"text"`
	// Lines say from which entry the lines of Text come.
	Lines []LineRef `json:"lines"`
}

// LineRef says that a line of a text, and those after it up to the next LineRef, come from an entry.
type LineRef struct {
	// Line is the line of the text, from 1.
	Line int `json:"line"`
	// Seq is the number of the entry.
	Seq int64 `json:"seq"`
	// Turn is the turn of these lines and those after them; absent when it is that of the LineRef before.
	Turn transcript.TurnID `json:"turn,omitzero"`
}
