package wire

import "fermata/transcript"

// TurnChangesParams ask what a turn did to files. All may be absent.
type TurnChangesParams struct {
	// Turn is the turn; it may still run. Absent: the last one that changed a file, of Session.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Session is where to look when no turn is named. Absent: the one used last.
	Session transcript.SessionID `json:"session,omitzero"`
}

// TurnChangesResult is what a turn did to files, each from before its first change to after its last. A file that it changed
// and changed back is not listed.
type TurnChangesResult struct {
	// Session is the turn's.
	Session transcript.SessionID `json:"session"`
	// Turn is the turn.
	Turn transcript.TurnID `json:"turn"`
	// Files are in the order of their paths.
	Files []FileChange `json:"files"`
}

// FileChange is one file of a turn.
type FileChange struct {
	// Path is relative to the workspace, slash-separated.
	Path string `json:"path"`
	// URI is the file.
	URI string `json:"uri"`
	// State is "created", "changed" or "deleted".
	State string `json:"state"`
	// Before is the SHA-256 of what it held before, in hex; absent: there was no file.
	Before string `json:"before,omitzero"`
	// After is likewise what the turn left.
	After string `json:"after,omitzero"`
	// BeforeText is that content as text without a byte order mark, when it is text of at most 1 MiB.
	BeforeText *string `json:"beforeText,omitzero"`
	// AfterText is likewise what the turn left.
	AfterText *string `json:"afterText,omitzero"`
	// Binary says that one of the two is no text.
	Binary bool `json:"binary,omitzero"`
	// Added and Removed are the numbers of lines that differ; 0 of a binary file, and of one that was moved elsewhere. Those of a
	// file that was moved here are what differs from what it was.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// From is where a created file was moved from, which is listed as deleted; absent: it was not moved.
	From string `json:"from,omitzero"`
	// To is likewise where a deleted file was moved to.
	To string `json:"to,omitzero"`
	// Buffer says that it was changed in an open document.
	Buffer bool `json:"buffer,omitzero"`
	// By is "tool", or "command" when nothing but commands changed it, as it was found out after they had run.
	By string `json:"by"`
	// Now is "as_left", "reverted" (as before the turn), "changed" (something else) or "unknown" (it cannot be read).
	Now string `json:"now"`
}

// MaxChangeText is the length in bytes up to which a FileChange holds texts.
const MaxChangeText = 1 << 20

// TurnRevertParams say what to take back. All may be absent: then it is all changes of the last turn that changed a file, in
// the session used last.
type TurnRevertParams struct {
	// Turn is the turn whose changes are taken back. Absent: the last one that changed a file, of Session.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Session is where to look when no turn is named. Absent: the one used last.
	Session transcript.SessionID `json:"session,omitzero"`
	// Paths keeps to these files and folders, as in FileChange, or absolute. Absent: all.
	Paths []string `json:"paths,omitzero"`
	// Since takes back also what all later turns changed: back to before the turn.
	Since bool `json:"since,omitzero"`
	// Revert is a revert to undo instead. An undo can be undone too.
	Revert transcript.RevertID `json:"revert,omitzero"`
	// Undo undoes the last revert of Session that was not undone.
	Undo bool `json:"undo,omitzero"`
	// Preview writes nothing: "reverted" is then what would be reverted.
	Preview bool `json:"preview,omitzero"`
}

// TurnRevertResult says what a revert came to. It is answered when every file was written or kept.
type TurnRevertResult struct {
	// Session is the turn's.
	Session transcript.SessionID `json:"session"`
	// Revert names the revert, to undo it; absent when no file was to be written.
	Revert transcript.RevertID `json:"revert,omitzero"`
	// Files are in the order of their paths.
	Files []RevertedFile `json:"files"`
}

// RevertedFile is one file of a revert.
type RevertedFile struct {
	// Path is relative to the workspace, slash-separated.
	Path string `json:"path"`
	// State is "reverted", or "kept" when the file was not touched.
	State transcript.RevertState `json:"state"`
	// Why says of a kept one what was in the way, for people.
	Why string `json:"why,omitzero"`
	// Buffer says that it was reverted in an open document, which is not saved.
	Buffer bool `json:"buffer,omitzero"`
}
