// Package peer is an LSP client for tests and benchmarks: it starts the real fermata binary and talks to it over stdio as
// an editor does. It shares no code with the daemon's own framing, so that a mistake there is seen here. A [Peer] may be
// used from any goroutine; what the daemon does wrong fails the test that owns it.
package peer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must come; only a broken daemon uses it up.
const patience = 60 * time.Second

// Options say how the daemon is started.
type Options struct {
	Path string   // the binary
	Args []string // after the name; nil means "lsp"
	Dir  string
	Env  []string // the whole environment
	// Answer replies to the daemon's requests; nil replies null to each. It runs in a goroutine of its own.
	Answer func(method string, params json.RawMessage) (result any, err *Error)
	// Deaf starts without reading the daemon's output; see [Peer.Listen].
	Deaf bool
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitzero"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Message is one message as it came.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	At     time.Time       `json:"-"` // when it was read
}

// Event is a fermata/event notification. Raw is all of it.
type Event struct {
	Session string          `json:"session"`
	Seq     int64           `json:"seq"`
	Kind    string          `json:"kind"`
	Turn    string          `json:"turn"`
	Step    int             `json:"step"`
	Part    string          `json:"part"`
	Offset  int64           `json:"offset"`
	Text    string          `json:"text"`
	Entry   json.RawMessage `json:"entry"`
	At      time.Time       `json:"-"`
}

// Peer is a started daemon and the client's end of its stdio.
type Peer struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
	o   Options

	writing sync.Mutex

	mu       sync.Mutex
	wake     *sync.Cond
	nextID   int
	replies  map[string]Message
	events   []Event
	notes    []Message // other notifications
	requests []Message // from the daemon
	order    []string  // "event KIND" and "reply ID" as they came
	eof      bool
	exited   bool
	stderr   bytes.Buffer
	waitErr  error
}

// Start starts the daemon; the test's end kills it when it still lives.
func Start(t testing.TB, o Options) *Peer {
	t.Helper()
	if o.Args == nil {
		o.Args = []string{"lsp"}
	}
	p := &Peer{t: t, o: o, replies: map[string]Message{}}
	p.wake = sync.NewCond(&p.mu)
	p.cmd = exec.Command(o.Path, o.Args...)
	p.cmd.Dir, p.cmd.Env = o.Dir, o.Env
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// Pipes of our own: cmd.Wait must not close what is still read.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out, p.cmd.Stdout = r, w
	p.cmd.Stderr = &lockedWriter{mu: &p.mu, w: &p.stderr}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	waited := make(chan struct{})
	go func() { // ends with the process
		defer close(waited)
		err := p.cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exited, p.waitErr = true, err
		p.wake.Broadcast()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-waited
		_ = r.Close()
		if t.Failed() {
			t.Logf("the daemon's stderr:\n%s", p.Stderr())
		}
	})
	if !o.Deaf {
		p.Listen()
	}
	return p
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Listen begins to read the daemon's output.
func (p *Peer) Listen() { go p.read(bufio.NewReaderSize(p.out, 1<<16)) } // ends with the daemon's stdout

func (p *Peer) read(r *bufio.Reader) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.eof = true
		p.wake.Broadcast()
	}()
	for {
		length := -1
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimRight(line, "\r\n")
			if line == "" {
				break
			}
			if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				length, _ = strconv.Atoi(v)
			} else {
				p.t.Errorf("not a header on stdout: %q", line) // invariant 6
			}
		}
		if length < 0 {
			p.t.Errorf("a message without Content-Length")
			return
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var m Message
		if err := json.Unmarshal(body, &m); err != nil {
			p.t.Errorf("the daemon wrote no JSON: %v: %q", err, body)
			return
		}
		m.At = time.Now()
		p.take(m)
	}
}

func (p *Peer) take(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wake.Broadcast()
	switch {
	case m.Method == "fermata/event":
		ev := Event{At: m.At}
		if err := json.Unmarshal(m.Params, &ev); err != nil {
			p.t.Errorf("event: %v: %s", err, m.Params)
		}
		p.events = append(p.events, ev)
		p.order = append(p.order, "event "+ev.Kind)
	case m.Method != "" && m.ID != nil:
		p.requests = append(p.requests, m)
		go p.answer(m) // ends when the reply is written
	case m.Method != "":
		p.notes = append(p.notes, m)
	default:
		p.replies[string(m.ID)] = m
		p.order = append(p.order, "reply "+string(m.ID))
	}
}

func (p *Peer) answer(m Message) {
	var result any
	var fail *Error
	if p.o.Answer != nil {
		result, fail = p.o.Answer(m.Method, m.Params)
	}
	reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	if fail != nil {
		reply["error"] = fail
	} else {
		reply["result"] = result
	}
	p.Write(Frame(reply))
}

// Frame encodes a message with its header.
func Frame(message any) []byte {
	body, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

// Request is a framed request and its id.
func (p *Peer) Request(method string, params any) (frame []byte, id string) {
	p.mu.Lock()
	p.nextID++
	id = strconv.Itoa(p.nextID)
	p.mu.Unlock()
	m := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		m["params"] = params
	}
	return Frame(m), id
}

// Write writes bytes in one write; an error (a dead daemon) shows elsewhere.
func (p *Peer) Write(b []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.in.Write(b)
}

// Go sends a request and returns its id.
func (p *Peer) Go(method string, params any) string {
	frame, id := p.Request(method, params)
	p.Write(frame)
	return id
}

// Notify sends a notification.
func (p *Peer) Notify(method string, params any) {
	p.Write(Frame(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}))
}

// Reply waits for the reply to a request.
func (p *Peer) Reply(id string) Message {
	p.t.Helper()
	var m Message
	p.WaitFor("the reply to request "+id, func() bool {
		var ok bool
		m, ok = p.replies[id]
		return ok
	})
	return m
}

// Call sends a request, waits for its result and decodes it into result, which may be nil. An error reply is returned.
func (p *Peer) Call(method string, params, result any) *Error {
	p.t.Helper()
	m := p.Reply(p.Go(method, params))
	if m.Error != nil {
		return m.Error
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			p.t.Fatalf("%s: %v in %s", method, err, m.Result)
		}
	}
	return nil
}

// Must is Call that fails the test on an error reply.
func (p *Peer) Must(method string, params, result any) {
	p.t.Helper()
	if err := p.Call(method, params, result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// WaitFor waits until cond, called with the peer's lock held, is true.
func (p *Peer) WaitFor(what string, cond func() bool) {
	p.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		late = true
		p.wake.Broadcast()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if late || p.eof {
			p.t.Fatalf("%s did not come (end of output: %v); what came: %v", what, p.eof, p.order)
		}
		p.wake.Wait()
	}
}

// Until waits until cond is true of what came so far; false means that the daemon's output ended first.
func (p *Peer) Until(cond func(events []Event, replies map[string]Message) bool) bool {
	p.t.Helper()
	met := false
	p.WaitFor("what a test waits for, or the daemon's end", func() bool {
		met = cond(p.events, p.replies)
		return met || p.eof
	})
	return met
}

// Event waits for the first event that matches.
func (p *Peer) Event(what string, match func(Event) bool) Event {
	p.t.Helper()
	var found Event
	seen := 0
	p.WaitFor("event: "+what, func() bool {
		for ; seen < len(p.events); seen++ {
			if match(p.events[seen]) {
				found = p.events[seen]
				return true
			}
		}
		return false
	})
	return found
}

// Kind waits for the first event of a kind.
func (p *Peer) Kind(kind string) Event {
	p.t.Helper()
	return p.Event(kind, func(e Event) bool { return e.Kind == kind })
}

// WaitForEvents waits until cond is true of the events so far.
func (p *Peer) WaitForEvents(what string, cond func([]Event) bool) {
	p.t.Helper()
	p.WaitFor(what, func() bool { return cond(p.events) })
}

// Events are the events so far.
func (p *Peer) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Event(nil), p.events...)
}

// Forget lets go of the events so far, for runs whose events would fill memory.
func (p *Peer) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events, p.order = nil, nil
}

// Requests are the daemon's requests so far.
func (p *Peer) Requests() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.requests...)
}

// Notes are the daemon's notifications so far, events excepted.
func (p *Peer) Notes() []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Message(nil), p.notes...)
}

// Order is what came, as "event KIND" and "reply ID", in the order in which it came.
func (p *Peer) Order() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.order...)
}

// Shown is what the client was shown of an answer: its deltas of a type joined, from the last try on. A gap or overlap fails the test.
func (p *Peer) Shown(turn string, step int, part string) string {
	p.t.Helper()
	var b strings.Builder
	for _, e := range p.Events() {
		if e.Kind == "retracted" && e.Turn == turn && e.Step == step {
			b.Reset()
		}
		if e.Kind != "delta" || e.Turn != turn || e.Step != step || e.Part != part {
			continue
		}
		if e.Offset != int64(b.Len()) {
			p.t.Errorf("a delta at offset %d after %d bytes", e.Offset, b.Len())
		}
		b.WriteString(e.Text)
	}
	return b.String()
}

// CloseStdin ends the daemon's input, as a dying editor does.
func (p *Peer) CloseStdin() { _ = p.in.Close() }

// Kill ends the daemon with SIGKILL and waits for its end.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill()
	p.Exit()
}

// Pid is the daemon's process id.
func (p *Peer) Pid() int { return p.cmd.Process.Pid }

// Exit waits for the daemon's end and returns its exit code, -1 for a signal.
func (p *Peer) Exit() int {
	p.t.Helper()
	deadline := time.AfterFunc(patience, func() {
		p.t.Errorf("the daemon did not exit")
		_ = p.cmd.Process.Kill()
	})
	defer deadline.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.exited {
		p.wake.Wait()
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stderr is what the daemon has logged so far.
func (p *Peer) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Initialize does the handshake. capabilities may be nil.
func (p *Peer) Initialize(root string, capabilities map[string]any) Message {
	p.t.Helper()
	if capabilities == nil {
		capabilities = map[string]any{"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}}}
	}
	m := p.Reply(p.Go("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + root, "capabilities": capabilities,
		"clientInfo": map[string]any{"name": "peer"},
	}))
	if m.Error != nil {
		p.t.Fatal(m.Error)
	}
	p.Notify("initialized", map[string]any{})
	return m
}

// NewSession opens a session in the workspace and returns its id.
func (p *Peer) NewSession(workspace string) string {
	p.t.Helper()
	var s struct {
		Session string `json:"session"`
		ID      string `json:"id"`
	}
	p.Must("fermata/session/new", map[string]any{"workspace": workspace}, &s)
	if s.Session == "" {
		s.Session = s.ID
	}
	return s.Session
}

// Text is a prompt of one text part.
func Text(s string) []map[string]any { return []map[string]any{{"type": "text", "text": s}} }
