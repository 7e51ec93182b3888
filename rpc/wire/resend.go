package wire

import "fermata/transcript"

// RequestResendParams send a request again, outside of any session (M8): for finding out why. Nothing of it is recorded, no
// call is run, nothing is tried again. What is said comes as events of the kind "resend"; the request is answered at the end.
// Cancelling it is a stop, whose reply is a result.
type RequestResendParams struct {
	// Request is its id.
	Request transcript.RequestID `json:"request"`
	// Body is an edited copy of its body: JSON. Absent: the very bytes that were sent.
	Body *string `json:"body,omitzero"`
	// ClientID is given back in the events, to tell one resend from another.
	ClientID string `json:"clientId,omitzero"`
}

// RequestResendResult is what came of it.
type RequestResendResult struct {
	// Request is the request that was sent again.
	Request transcript.RequestID `json:"request"`
	// Route is the provider's name and address now.
	Route string `json:"route"`
	// Model is the model that the request was for; an edited body can name another.
	Model string `json:"model"`
	// Bytes is the length of the body that was sent.
	Bytes int64 `json:"bytes"`
	// SHA256 is that of the body that was sent, in hex.
	SHA256 string `json:"sha256"`
	// Same says that it is the body of the request.
	Same bool `json:"same"`
	// Outcome is "complete", "stopped" or "broken".
	Outcome string `json:"outcome"`
	// Status is the HTTP status, absent when there was no response.
	Status int `json:"status,omitzero"`
	// Error is for people.
	Error string `json:"error,omitzero"`
	// Parts are what was said, in order; the calls among them were not run.
	Parts []transcript.Part `json:"parts"`
	// Finish is the provider's finish reason.
	Finish string `json:"finish,omitzero"`
	// Usage is the provider's count of tokens.
	Usage *transcript.Usage `json:"usage,omitzero"`
	// FirstDeltaMillis is the time to the first text.
	FirstDeltaMillis int64 `json:"firstDeltaMillis,omitzero"`
	// Millis is the time it took.
	Millis int64 `json:"millis"`
}

// EventResend is the kind of a [ResendEvent].
const EventResend = "resend"

// ResendEvent is text that a model says in answer to a request that was sent again. It is no part of the session.
type ResendEvent struct {
	// Session is where the request was sent first.
	Session transcript.SessionID `json:"session"`
	// Kind is "resend".
	Kind string `json:"kind"`
	// Request is the request that was sent again.
	Request transcript.RequestID `json:"request"`
	// ClientID is that of the params.
	ClientID string `json:"clientId,omitzero"`
	// Part is "text" or "reasoning".
	Part transcript.PartType `json:"part"`
	// Offset is how many bytes of that part came before.
	Offset int64 `json:"offset"`
	// Text is never empty and whole characters.
	Text string `json:"text"`
}
