package wire

import (
	"encoding/json"
	"time"

	"fermata/transcript"
)

// SessionNewParams begin a session. All may be absent.
type SessionNewParams struct {
	// Workspace is the root as an absolute path or file URI. Absent: the client's first workspace folder, else none.
	Workspace string `json:"workspace,omitzero"`
	// Model is the model that turns of this session use unless they name another. Absent: the configured one.
	Model string `json:"model,omitzero"`
	// Title is for lists of sessions. Absent: the first prompt.
	Title string `json:"title,omitzero"`
}

// Session is what is known of a session.
type Session struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Workspace is the absolute path of its root, "" for none.
	Workspace string `json:"workspace"`
	// Title is for people; it may be "".
	Title string `json:"title"`
	// Parent is the session it was forked from.
	Parent transcript.SessionID `json:"parent,omitzero"`
	// Created is when it began.
	Created time.Time `json:"created"`
	// Updated is when its newest entry was written.
	Updated time.Time `json:"updated"`
	// Turns is how many turns were started in it.
	Turns int `json:"turns"`
	// LastOutcome is how the last of them ended; absent when there is none, or it runs.
	LastOutcome transcript.Outcome `json:"lastOutcome,omitzero"`
	// Seq is the number of its newest entry.
	Seq int64 `json:"seq"`
}

// SessionListParams ask for a page of sessions, newest first. All may be absent.
type SessionListParams struct {
	// Workspace keeps to sessions with that root: an absolute path or file URI.
	Workspace string `json:"workspace,omitzero"`
	// Query keeps to sessions with these words in title or prompts.
	Query string `json:"query,omitzero"`
	// Cursor is where the page before ended.
	Cursor string `json:"cursor,omitzero"`
	// Limit is the length of the page. Absent: 50.
	Limit int `json:"limit,omitzero"`
}

// SessionListResult is a page of sessions.
type SessionListResult struct {
	// Sessions are newest first.
	Sessions []Session `json:"sessions"`
	// Cursor asks for the next page; absent on the last.
	Cursor string `json:"cursor,omitzero"`
}

// SessionOpenParams open a session and subscribe to its events.
type SessionOpenParams struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Since is the number of the last entry that the client knows. Absent: none, so that all are in the result.
	Since int64 `json:"since,omitzero"`
}

// SessionOpenResult is the session as it stands. What comes after the last of Entries is told by events.
type SessionOpenResult struct {
	// Session is what is known of it.
	Session Session `json:"session"`
	// Entries are those after since, in order.
	Entries []Entry `json:"entries"`
	// Running is the turn that runs in it, if this daemon runs one.
	Running transcript.TurnID `json:"running,omitzero"`
}

// Entry is one entry of the log.
type Entry struct {
	// Seq is its number, gapless from 1 in each session.
	Seq int64 `json:"seq"`
	// Kind is what it is: "turn.started", "answer", …, or "damaged" when it does not decode.
	Kind string `json:"kind"`
	// At is when it was written.
	At time.Time `json:"at"`
	// Entry is its body, by kind as in transcript/entry.go, e.g. {"turn": …, "outcome": "stopped"}; absent when damaged.
	Entry json.RawMessage `json:"entry,omitzero"`
	// Damaged says what is wrong with it; the others open all the same.
	Damaged string `json:"damaged,omitzero"`
}
