package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
)

// DefaultMaxMessage is the length of the longest message that is read, in bytes.
const DefaultMaxMessage = 64 << 20

// StreamOptions say how a [Stream] behaves; the zero value is useful.
type StreamOptions struct {
	// MaxMessage is the length of the longest body, in bytes; 0 means DefaultMaxMessage.
	MaxMessage int64
	// Hangup is called once, when the client is gone: its input ended or its output cannot be written. Read returns only
	// after it has returned, so that what it waits for can still be written to a client that only closed its input.
	Hangup func(err error)
}

// OutputError is what Hangup is given when the client does not take what is written any more.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "write to the client: " + e.Err.Error() }
func (e *OutputError) Unwrap() error { return e.Err }

// Stream is a [jsonrpc2.Stream] with the framing of LSP. What cannot be a message is answered with an error and skipped;
// Read fails only when the input has ended.
type Stream struct {
	o  StreamOptions
	in *bufio.Reader
	c  io.Closer // of the input, nil when it has none

	body []byte // of the message being handled
	garb garbage

	hanging sync.Once

	mu  sync.Mutex // held while a message is written: for as long as the client does not read
	out io.Writer
	buf []byte

	afterMu sync.Mutex // never held while writing, so that After does not block
	after   []afterwards
}

// afterwards is what follows the writing of a response.
type afterwards struct {
	head []byte // how that response begins
	f    func()
}

var _ jsonrpc2.Stream = (*Stream)(nil)

// NewStream makes a stream. Close closes in if it is an [io.Closer]; out is left open.
func NewStream(in io.Reader, out io.Writer, o StreamOptions) *Stream {
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	s := &Stream{o: o, in: bufio.NewReaderSize(in, maxHeader), out: out}
	s.c, _ = in.(io.Closer)
	return s
}

// Read returns the next message. It borrows the stream's buffer until the next Read. Its only error is the end of input.
func (s *Stream) Read(context.Context) (jsonrpc2.Message, int64, error) {
	for {
		body, err := s.next()
		if err != nil {
			s.hang(err)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return nil, 0, err
		}
		if msg := s.decode(body); msg != nil {
			return msg, int64(len(body)), nil
		}
	}
}

// hang reports the end of the client, and waits until that was dealt with.
func (s *Stream) hang(err error) {
	s.hanging.Do(func() {
		if s.o.Hangup != nil {
			s.o.Hangup(err)
		}
	})
}

// decode makes a message of a body; nil when it was refused instead.
func (s *Stream) decode(body []byte) jsonrpc2.Message {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		s.refuse(nil, jsonrpc2.ParseError, "the message is empty")
		return nil
	case !utf8.Valid(body):
		s.refuse(nil, jsonrpc2.ParseError, "the message is not UTF-8")
		return nil
	case !json.Valid(body):
		s.refuse(nil, jsonrpc2.ParseError, "the message is not JSON")
		return nil
	case body[0] == '[':
		s.refuseBatch(body)
		return nil
	}
	msg, err := jsonrpc2.DecodeMessage(body)
	if err != nil {
		return s.decodeOdd(body)
	}
	switch m := msg.(type) {
	case *jsonrpc2.Call:
		if id, _ := m.ID().StringValue(); strings.HasPrefix(id, numberMark) {
			s.refuse(nil, jsonrpc2.InvalidRequest, "the id begins with a NUL character")
			return nil
		}
	case *jsonrpc2.Notification:
		if hasNullID(body) {
			s.refuse(nil, jsonrpc2.InvalidRequest, "the id is null; a request needs a string or a number, a notification has none")
			return nil
		}
	}
	return msg
}

// hasNullID tells a request whose id is null from a notification: its sender waits for an answer.
func hasNullID(body []byte) bool {
	if !bytes.Contains(body, []byte(`"id"`)) {
		return false
	}
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	return json.Unmarshal(body, &m) == nil && string(m.ID) == "null"
}

// envelope is a message whose parts may be anything.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// decodeOdd makes a call of one whose id is a number that no int64 holds; all else that jsonrpc2 did not take is refused,
// with its id as far as it has one, so that no caller waits for ever.
func (s *Stream) decodeOdd(body []byte) jsonrpc2.Message {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		var id struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(body, &id) // no object has no id
		s.refuse(id.ID, jsonrpc2.InvalidRequest, "the message is no JSON-RPC request")
		return nil
	}
	if e.Version == "2.0" && e.Method != nil && e.Result == nil && e.Error == nil && isNumber(e.ID) {
		params := e.Params
		if string(params) == "null" {
			params = nil
		}
		return jsonrpc2.NewCall(jsonrpc2.NewStringID(numberMark+string(e.ID)), *e.Method, jsonrpc2.RawMessage(params))
	}
	why := "the message is no JSON-RPC request"
	if e.Version != "2.0" {
		why = `"jsonrpc" must be "2.0"`
	}
	s.refuse(e.ID, jsonrpc2.InvalidRequest, why)
	return nil
}

// maxBatch is how many requests of a batch are answered one by one.
const maxBatch = 100

// refuseBatch answers the requests of a batch, which LSP does not have.
func (s *Stream) refuseBatch(body []byte) {
	const why = "batches are not supported; send each request as its own message"
	var members []json.RawMessage
	_ = json.Unmarshal(body, &members) // it is valid
	answered := false
	if len(members) <= maxBatch {
		for _, m := range members {
			var e envelope
			if json.Unmarshal(m, &e) == nil && e.Method != nil && isID(e.ID) {
				s.refuse(e.ID, jsonrpc2.InvalidRequest, why)
				answered = true
			}
		}
	}
	if !answered {
		s.refuse(nil, jsonrpc2.InvalidRequest, why)
	}
}

// refuse answers what never became a request. id is the request's as it was sent, or nil.
func (s *Stream) refuse(id json.RawMessage, code jsonrpc2.Code, why string) {
	if !isID(id) {
		id = json.RawMessage("null")
	}
	raw := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	rest := jsonrpc2.AppendResponse(nil, jsonrpc2.ID{}, nil, jsonrpc2.NewError(code, why))
	raw = append(raw, bytes.TrimPrefix(rest, []byte(`{"jsonrpc":"2.0","id":null`))...)
	_, _ = s.write(func(dst []byte) []byte { return append(dst, raw...) }) // a broken output hangs up by itself
}

// Write writes one message. It ignores ctx: half a message would be worse than a late one.
func (s *Stream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	return s.write(func(dst []byte) []byte { return jsonrpc2.AppendMessage(dst, msg) })
}

// Notify writes a notification whose params are JSON already; they may be changed after it returns.
func (s *Stream) Notify(method string, params []byte) error {
	_, err := s.write(func(dst []byte) []byte { return jsonrpc2.AppendNotification(dst, method, params) })
	return err
}

// After has f called once the response to a request was written, or could not be, by the goroutine that wrote it. f must
// not block. After itself never does, also while another goroutine writes to a client that does not read (S13).
func (s *Stream) After(id jsonrpc2.ID, f func()) {
	head := bytes.TrimSuffix(jsonrpc2.AppendResponse(nil, id, nil, nil), []byte(`"result":null}`))
	s.afterMu.Lock()
	defer s.afterMu.Unlock()
	s.after = append(s.after, afterwards{head, f})
}

// maxKept is the capacity of the longest buffer that is kept for the next message.
const maxKept = 1 << 20

// room is what is left free before a body for the header.
const room = len("Content-Length: ") + 19 + len("\r\n\r\n")

// write writes the message that app appends, in one write.
func (s *Stream) write(app func(dst []byte) []byte) (int64, error) {
	after, n, err := s.writeLocked(app)
	for _, f := range after {
		f()
	}
	if err != nil {
		go s.hang(&OutputError{err}) // ends when Hangup returns, which may wait for other writers
	}
	return n, err
}

func (s *Stream) writeLocked(app func(dst []byte) []byte) (after []func(), n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(s.buf) < room {
		s.buf = make([]byte, 0, 4<<10)
	}
	msg := app(s.buf[:room])
	if cap(msg) <= maxKept {
		s.buf = msg[:0]
	} else {
		s.buf = nil
	}
	after = s.takeAfter(msg[room:])
	msg = msg[:room+len(restoreID(msg[room:]))]
	start := putHeader(msg)
	if _, err := s.out.Write(msg[start:]); err != nil {
		return after, 0, err
	}
	return after, int64(len(msg) - start), nil
}

// takeAfter is what was asked for after the response that body is.
func (s *Stream) takeAfter(body []byte) (fs []func()) {
	s.afterMu.Lock()
	defer s.afterMu.Unlock()
	s.after = slices.DeleteFunc(s.after, func(a afterwards) bool {
		if !bytes.HasPrefix(body, a.head) {
			return false
		}
		fs = append(fs, a.f)
		return true
	})
	return fs
}

// Close closes the input.
func (s *Stream) Close() error {
	if s.c == nil {
		return nil
	}
	return s.c.Close()
}
