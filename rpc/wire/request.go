package wire

import (
	"time"

	"fermata/transcript"
)

// RequestListParams ask for the model requests of a session.
type RequestListParams struct {
	// Session is its id. Absent: the one used last.
	Session transcript.SessionID `json:"session,omitzero"`
}

// RequestListResult are the model requests of a session.
type RequestListResult struct {
	// Session is its id.
	Session transcript.SessionID `json:"session"`
	// Requests are in the order in which they were sent.
	Requests []Request `json:"requests"`
}

// Request is one request to a model.
type Request struct {
	// Request is its id.
	Request transcript.RequestID `json:"request"`
	// Session is the session it was sent in.
	Session transcript.SessionID `json:"session"`
	// Seq is the entry that recorded it.
	Seq int64 `json:"seq"`
	// Turn is the turn that sent it.
	Turn transcript.TurnID `json:"turn"`
	// Step counts from 1 in each turn.
	Step int `json:"step"`
	// Try counts from 1 in each step.
	Try int `json:"try"`
	// Epoch is the run of requests, each of which begins with the one before.
	Epoch int `json:"epoch"`
	// Messages is how many messages it holds.
	Messages int `json:"messages"`
	// Bytes is the length of the body.
	Bytes int64 `json:"bytes"`
	// SHA256 is that of the body as it was sent, in hex.
	SHA256 string `json:"sha256"`
	// Route is the provider's name and address.
	Route string `json:"route"`
	// Model is the model as the provider knows it.
	Model string `json:"model"`
	// Dialect is how the body was encoded.
	Dialect string `json:"dialect"`
	// At is when it was recorded, just before it was sent.
	At time.Time `json:"at"`
	// Outcome is "complete", "stopped" or "broken"; absent while it runs.
	Outcome string `json:"outcome,omitzero"`
	// Status is the HTTP status, absent when there was no response.
	Status int `json:"status,omitzero"`
	// Error is for people.
	Error string `json:"error,omitzero"`
	// Usage is the provider's count of tokens.
	Usage *transcript.Usage `json:"usage,omitzero"`
	// FirstDeltaMillis is the time to the first text.
	FirstDeltaMillis int64 `json:"firstDeltaMillis,omitzero"`
	// Millis is the time it took.
	Millis int64 `json:"millis,omitzero"`
}

// RequestInputParams ask for the exact bytes that a model was sent. All may be absent.
type RequestInputParams struct {
	// Request is its id. Absent: the newest.
	Request transcript.RequestID `json:"request,omitzero"`
	// Session keeps the newest to one session.
	Session transcript.SessionID `json:"session,omitzero"`
}

// RequestInputResult is the exact model input of a request (M7).
type RequestInputResult struct {
	// Request is what is known of it.
	Request Request `json:"request"`
	// Body is what was sent; absent when it is not UTF-8.
	Body *string `json:"body,omitzero"`
	// BodyBase64 is what was sent, when that is not UTF-8.
	BodyBase64 []byte `json:"bodyBase64,omitzero"`
	// Bytes is the length of what was sent.
	Bytes int64 `json:"bytes"`
	// SHA256 is the one taken when the request was sent, in hex.
	SHA256 string `json:"sha256"`
	// Verified says that the bytes shown here have it.
	Verified bool `json:"verified"`
	// Parts say where each part of the body comes from, in order; the comma between two messages is in neither.
	Parts []InputPart `json:"parts"`
	// Previous is the request before it in the session.
	Previous transcript.RequestID `json:"previous,omitzero"`
	// SharedPrefix is with how many bytes of that one it begins.
	SharedPrefix int64 `json:"sharedPrefix"`
}

// InputPart is where a part of a body comes from.
type InputPart struct {
	// Kind is what it is: "head", "message" or "tail".
	Kind string `json:"kind"`
	// Offset is where it begins in the body.
	Offset int64 `json:"offset"`
	// Length is its length.
	Length int64 `json:"length"`
	// Role is whose message it is, of a message.
	Role transcript.Role `json:"role,omitzero"`
	// Source is the entry that it says, of a message.
	Source int64 `json:"source,omitzero"`
	// Turn is the turn of that entry.
	Turn transcript.TurnID `json:"turn,omitzero"`
	// Unsendable says what of the entry is not in the body or is changed in it, and why: "reasoning: not sendable, because …".
	Unsendable []string `json:"unsendable,omitzero"`
}
