package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"fermata/transcript"
)

// Server plays a [Scenario] and records what it is sent. It is a handler; [Start] makes one that listens.
type Server struct {
	URL string // base URL of a started server, ending in /v1

	scenario *Scenario
	http     *http.Server
	serving  chan struct{} // closed when Serve has returned

	mu       sync.Mutex
	more     chan struct{} // closed and replaced with each request
	requests []*Recorded
	used     []bool // replies of this round
	last     int    // reply that was used last
}

// Recorded is one request that a [Server] got.
type Recorded struct {
	N      int // from 1
	Path   string
	Header http.Header
	Body   []byte    // exactly as it came; nil after Forget
	Began  time.Time // when the headers were in
	At     time.Time // when the body was in

	ended    chan struct{}
	closed   chan struct{}
	closedAt time.Time
}

// Closed is closed when the client closed the connection or cancelled the request before the reply was over; it never is
// when the reply came to its end. ClosedAt says when, after that.
func (r *Recorded) Closed() <-chan struct{} { return r.closed }

// ClosedAt is when Closed was closed: read it only afterwards.
func (r *Recorded) ClosedAt() time.Time { return r.closedAt }

// Ended is closed when the server is done with the request, in whatever way.
func (r *Recorded) Ended() <-chan struct{} { return r.ended }

// NewServer makes a server of a scenario; it does not listen.
func NewServer(sc *Scenario) *Server {
	return &Server{scenario: sc, used: make([]bool, len(sc.Replies)), more: make(chan struct{})}
}

// Start parses a scenario and plays it on a free port of 127.0.0.1. Close ends it.
func Start(scenario string) (*Server, error) {
	sc, err := Parse(scenario)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a scenario: %w", err)
	}
	s := NewServer(sc)
	s.URL = "http://" + l.Addr().String() + "/v1"
	s.http = &http.Server{Handler: s}
	s.serving = make(chan struct{})
	go func() { // ended by Close
		defer close(s.serving)
		_ = s.http.Serve(l) // always ErrServerClosed
	}()
	return s, nil
}

// Close closes all connections of a started server, and waits until it is done with every request.
func (s *Server) Close() {
	_ = s.http.Close() // the listener's error means nothing here
	<-s.serving
	for _, r := range s.Requests() {
		<-r.ended
	}
}

// Requests are the requests so far, in the order in which their bodies were in.
func (s *Server) Requests() []*Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await returns the nth request, from 1, as soon as its body is in, or ctx's cause.
func (s *Server) Await(ctx context.Context, n int) (*Recorded, error) {
	for {
		s.mu.Lock()
		requests, more := s.requests, s.more
		s.mu.Unlock()
		if len(requests) >= n {
			return requests[n-1], nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Forget lets go of the bodies of the requests so far: those of a long session are as large as its square.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		r.Body = nil
	}
}

// ServeHTTP plays the next reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	var into bytes.Buffer
	if r.ContentLength > 0 {
		into.Grow(int(min(r.ContentLength, 64<<20)) + bytes.MinRead)
	}
	if _, err := into.ReadFrom(r.Body); err != nil {
		return // the client is gone
	}
	body := into.Bytes()
	rec := &Recorded{
		Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Began: began, At: time.Now(),
		ended: make(chan struct{}), closed: make(chan struct{}),
	}
	defer close(rec.ended)
	reply := s.take(rec)
	closed := func() {
		rec.closedAt = time.Now()
		close(rec.closed)
	}
	stop := context.AfterFunc(r.Context(), closed)
	defer func() {
		switch {
		case !stop():
			<-rec.closed
		case r.Context().Err() != nil:
			closed() // a context is done a moment before what waits for it is called, and stop came in between
		}
	}()
	play(newStream(r.Context(), w, 0), reply.Steps)
}

// take records a request and chooses its reply.
func (s *Server) take(rec *Recorded) Reply {
	said := ""
	if q, err := readRequest(rec.Body); err == nil {
		said = q.messages[q.last].Content
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
	rec.N = len(s.requests)
	close(s.more)
	s.more = make(chan struct{})
	for range 2 {
		for i, r := range s.scenario.Replies {
			if !s.used[i] && strings.Contains(said, r.Match) {
				s.used[i], s.last = true, i
				return r
			}
		}
		if !s.scenario.Loop {
			break
		}
		clear(s.used)
	}
	for i := len(s.scenario.Replies) - 1; i >= 0; i-- { // used up: the last that matches, else the last used, again
		if r := s.scenario.Replies[i]; r.Match != "" && strings.Contains(said, r.Match) {
			return r
		}
	}
	return s.scenario.Replies[s.last]
}

// play does a reply's steps on a stream.
func play(s *stream, steps []Step) {
	status, contentType, finish := http.StatusOK, "text/event-stream", "stop"
	begun, calls, words := false, 0, 0
	var usage *transcript.Usage
	begin := func() {
		if !begun {
			begun = true
			s.head(status, contentType)
		}
	}
	for _, st := range steps {
		if s.gone() {
			return
		}
		switch st.Do { // what comes before the headers, or is only noted
		case "headers":
			s.wait(st.For)
			begin()
			continue
		case "status":
			status, contentType = st.Count, "application/json"
			continue
		case "header":
			if http.CanonicalHeaderKey(st.Name) == "Content-Type" {
				contentType = st.Text
			}
			s.w.Header().Set(st.Name, st.Text)
			continue
		case "rate":
			s.rate, s.due = st.Number, time.Time{}
			continue
		case "size":
			s.size = st.Count
			continue
		case "stamp":
			s.stamp = true
			continue
		case "usage":
			usage = st.Usage
			continue
		case "finish":
			finish = st.Text
			continue
		case "hang":
			<-s.ctx.Done() // also before the headers
			return
		case "drop":
			panic(http.ErrAbortHandler)
		case "html":
			contentType = "text/html; charset=utf-8"
		}
		begin()
		switch st.Do {
		case "body", "html":
			s.raw([]byte(st.Text))
			return
		case "say":
			s.text("content", st.Text)
		case "think":
			s.text("reasoning_content", st.Text)
		case "words":
			s.text("content", filler("w", words, st.Count))
			words += st.Count
		case "musing":
			s.text("reasoning_content", filler("m", words, st.Count))
			words += st.Count
		case "call", "cutcall":
			id := st.ID
			if id == "auto" {
				id = fmt.Sprintf("call_%d", calls+1)
			}
			if st.Do == "call" {
				s.call(calls, id, st.Name, st.Text)
			} else {
				s.callHead(calls, id, st.Name)
				half := len(st.Text) / 2
				for half > 0 && !utf8.RuneStart(st.Text[half]) {
					half--
				}
				s.callArgs(calls, st.Text[:half])
			}
			if finish == "stop" {
				finish = "tool_calls"
			}
			calls++
		case "wait":
			s.wait(st.For)
		case "comment":
			s.raw([]byte(": " + st.Text + "\n\n"))
		case "event":
			s.raw([]byte("data: " + st.Text + "\n\n"))
		case "raw":
			s.raw([]byte(st.Text))
		case "truncate":
			return
		}
	}
	begin()
	if status == http.StatusOK {
		s.end(finish, usage)
	}
}

// filler is n numbered words, each with a space after it.
func filler(prefix string, from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(prefix + strconv.Itoa(from+i+1) + " ")
	}
	return b.String()
}
