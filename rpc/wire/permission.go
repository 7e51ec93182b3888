package wire

import "fermata/transcript"

// PermissionParams ask the user whether a tool call may act. A stop answers the question: the daemon then cancels it.
type PermissionParams struct {
	// Session is where the turn runs.
	Session transcript.SessionID `json:"session"`
	// Turn is the turn that wants it.
	Turn transcript.TurnID `json:"turn"`
	// Step is the model request whose answer made the call.
	Step int `json:"step"`
	// Call is the call's id.
	Call transcript.CallID `json:"call"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Summary is one line for people.
	Summary string `json:"summary"`
	// Command is exactly what the shell would be given, of a tool that runs one. It can hold control characters: show them
	// as such.
	Command string `json:"command,omitzero"`
	// Path is the file that the call is about when it is about one; see Paths.
	Path string `json:"path,omitzero"`
	// Paths are the files that would be changed, or read when ReadOnly is set: from the root, links resolved.
	Paths []string `json:"paths,omitzero"`
	// ReadOnly says that nothing would be changed: the user is asked because of what would be read.
	ReadOnly bool `json:"readOnly,omitzero"`
	// Diff is what would change in the files, as a unified diff of at most about 32 KiB. Absent: that cannot be told.
	Diff string `json:"diff,omitzero"`
	// Why says why the user is asked: the mode, a rule, a secret file.
	Why string `json:"why"`
	// Sandbox says what would confine the command, or why nothing does. Absent: no sandbox is configured.
	Sandbox string `json:"sandbox,omitzero"`
	// Scope is what the answer "session" covers from then on: "tool", all changes of this tool; "files", this tool on these
	// files; "command", this very command.
	Scope string `json:"scope"`
}

// PermissionResult is the user's answer. Anything but the two that allow denies.
type PermissionResult struct {
	// Answer is "once", "session" or "deny".
	Answer string `json:"answer"`
	// Why is the user's reason for a denial; the model is told.
	Why string `json:"why,omitzero"`
}

// SessionModeParams set the permission mode of a session, from its next tool call on, or ask for it. All may be absent.
type SessionModeParams struct {
	// Session names it. Absent: the one that this client used last.
	Session transcript.SessionID `json:"session,omitzero"`
	// Mode is "read-only", "ask", "edit" or "trust"; "default" is the configured one again. Absent: nothing is changed.
	Mode string `json:"mode,omitzero"`
}

// SessionModeResult tells the permission mode. It lasts as long as the daemon.
type SessionModeResult struct {
	// Session is whose it is.
	Session transcript.SessionID `json:"session"`
	// Mode is the mode now.
	Mode string `json:"mode"`
}
