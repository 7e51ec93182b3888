package wire

import "fermata/transcript"

// SessionForkParams begin a session that goes on from a turn of another one. All may be absent. The result is the new
// session, with its Parent. It holds the conversation up to that turn, under turn ids of its own; files stay as they are.
type SessionForkParams struct {
	// Session is the session to fork. Absent: the one used last.
	Session transcript.SessionID `json:"session,omitzero"`
	// After is the last turn that the fork keeps; it must have ended. Absent: the last that has.
	After transcript.TurnID `json:"after,omitzero"`
}

// SessionRenameParams give a session another title. The result is the session.
type SessionRenameParams struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Title is one line, at most 200 characters. No model sees it.
	Title string `json:"title"`
}

// SessionDeleteParams delete a session for good. It is refused while a turn runs in it. The session's followers are sent no
// more events.
type SessionDeleteParams struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
}

// SessionDeleteResult says what was removed. Other sessions stay as they are, also forks of this one.
type SessionDeleteResult struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Turns is how many turns it had.
	Turns int `json:"turns"`
	// Entries is how many entries its log had.
	Entries int `json:"entries"`
	// Requests is how many model inputs can no longer be shown.
	Requests int `json:"requests"`
	// Blobs is how many contents of files and outputs were kept for it alone.
	Blobs int `json:"blobs"`
	// Bytes is the length of all that.
	Bytes int64 `json:"bytes"`
	// Reclaimed is by how many bytes the database file is smaller now; the rest of the room is used again.
	Reclaimed int64 `json:"reclaimed"`
}
