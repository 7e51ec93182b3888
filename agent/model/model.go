// Package model is what the agent knows of models: a [Dialect] that turns the transcript's messages into the bytes of a
// request and the bytes of a response stream into [Delta]s. It knows entries, but no tools and no rpc. Each wire dialect
// is a package below this one. Providers hold no conversation state: a request's body is all they are given.
//
// A [Provider] may be used from any goroutine. Cancelling the context of [Provider.Stream] closes the connection at once,
// also before the response headers, and is how a stop reaches the model (S3).
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"fermata/transcript"
)

// Tool is a tool as a model is told of it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, compact
}

// Head is what the head and tail of a body are made of. Equal Heads give equal bytes, always (M4).
type Head struct {
	Model        string
	Instructions string
	Tools        []Tool // in the order in which they are sent
}

// Dialect makes bodies: head + fragments joined by "," + tail (M3). All of it is pure.
type Dialect interface {
	transcript.Encoder
	// Frame returns what stands before the first fragment and after the last.
	Frame(h Head) (head, tail []byte, err error)
	// Unsendable says which parts of a message Encode leaves out or changes, and why (T2); nil when it sends all of it.
	Unsendable(m transcript.Message) []string
}

// Unsendable is what the dialect of a request left out of its messages or changed, by the seq of the entry that a message
// says (T2).
func Unsendable(d Dialect, messages []transcript.Message) map[int64][]string {
	out := map[int64][]string{}
	for _, m := range messages {
		if why := d.Unsendable(m); len(why) > 0 {
			out[m.Source] = why
		}
	}
	return out
}

// Request is one request, its body already in the log (M2).
type Request struct {
	ID    transcript.RequestID
	Body  func() (io.ReadCloser, error) // the stored bytes; called once for each connection tried
	Bytes int64
}

// DeltaKind says what a Delta brings.
type DeltaKind int

// The kinds of deltas.
const (
	Headers   DeltaKind = iota // the response began; Status
	Text                       // Text
	Reasoning                  // Text
	CallPiece                  // a piece of a tool call arrived; nothing of it may be acted on (S5)
	PartExtra                  // what goes back with a part: Part, Type, Extra
	End                        // the dialect's terminal event came; Parts, Finish, Usage. The last delta
)

// Delta is one step of a response. Text is never empty and always whole characters: what a provider split within a
// character is joined first.
//
// A dialect whose blocks carry more than text (a signature, an encrypted form) begins each such block with a PartExtra, and
// gives another one for it as soon as more is known: when its signature comes, and not at End (T3). Which part it is of
// follows from [transcript.Spoken]: Text and Reasoning are its Say, PartExtra is its Carry. So a stop keeps a block that
// ended with its signature, and of one that was cut what Encode needs to see that it was.
type Delta struct {
	Kind   DeltaKind
	Status int
	Text   string
	Part   int                 // counted from 0 over the answer's text and reasoning; it can be an earlier one
	Type   transcript.PartType // of Part
	Extra  json.RawMessage     // as in [transcript.Part]; nil for a part that only has to begin
	Parts  []transcript.Part   // the whole answer in order, calls included, ids unique and not empty
	Finish string
	Usage  *transcript.Usage
}

// Provider is one configured model service.
type Provider interface {
	Dialect() Dialect
	// Route names the provider and its address for the log: never a key (M6).
	Route() string
	// Stream sends the request and yields its deltas. The sequence ends after End, or after a non-nil error, which is
	// an [*Error]; after ctx ends it is ctx's cause. Breaking off the loop closes the connection. A stream that ends
	// without the dialect's terminal event is an error of class Truncated (F1).
	Stream(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// Class sorts failures by what may help.
type Class string

// The classes of failure.
const (
	Auth        Class = "auth"         // 401, 403: the key
	Rejected    Class = "rejected"     // other 4xx: the request will never pass
	RateLimited Class = "rate_limited" // 429
	Overloaded  Class = "overloaded"   // 408, 5xx, error events
	Connection  Class = "connection"   // could not connect, or the connection broke
	Truncated   Class = "truncated"    // the stream ended without its terminal event
	Idle        Class = "idle"         // nothing came for the idle timeout
	Malformed   Class = "malformed"    // not the protocol: HTML, broken JSON, a line over the bound
)

// Error is a failed request. Its text is for people and holds no key (M6).
type Error struct {
	Class      Class
	Status     int           // HTTP status, 0 when there was none
	Message    string        // what the provider said, bounded and cleaned of control characters
	RetryAfter time.Duration // 0 when the provider did not say
	Err        error         // the cause below, or nil
}

func (e *Error) Error() string {
	s := string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		return s + ": " + e.Message
	}
	if e.Err != nil {
		return s + ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Transient says whether the same request may succeed later (F2).
func (e *Error) Transient() bool {
	switch e.Class {
	case RateLimited, Overloaded, Connection, Truncated, Idle:
		return true
	}
	return false
}

// ErrNoModel is returned when a model is named that no provider serves.
var ErrNoModel = errors.New("no such model")
