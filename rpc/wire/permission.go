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
	// Command is exactly what the shell would be given, of a tool that runs one.
	Command string `json:"command,omitzero"`
	// Path is the file that would be changed, of a tool that changes one.
	Path string `json:"path,omitzero"`
}

// PermissionResult is the user's answer. Anything but the two that allow denies.
type PermissionResult struct {
	// Answer is "once", "session" or "deny".
	Answer string `json:"answer"`
	// Why is the user's reason for a denial; the model is told.
	Why string `json:"why,omitzero"`
}
