package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/agent"
	"fermata/agent/model/chat"
	"fermata/agent/model/rehearsal"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/transcript"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// obj is a JSON object.
type obj = map[string]any

// message is what the daemon wrote.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct{ Kind, ID, Hint string }
	}
}

// editor is a client that is written to the letter: it sends bytes, and keeps all that the daemon wrote in order.
type editor struct {
	t        *testing.T
	in       *io.PipeWriter
	state    string
	root     string
	model    *rehearsal.Server
	server   *server // once a request was answered
	served   chan error
	policy   permit.Policy
	deadline time.Duration // for edits

	mu      sync.Mutex
	changed sync.Cond
	got     []message
	ended   bool
	answers map[string]func(params json.RawMessage) any // to the daemon's requests; nil result: no answer
	waiting bool                                        // the reading is paused
	writing bool                                        // the daemon is writing
	paused  chan struct{}                               // not nil: reading waits until it is closed
	lastID  int
	signal  context.CancelCauseFunc // ends the context that the daemon was started with
}

func newEditor(t *testing.T) *editor {
	e := &editor{t: t, root: realPath(t.TempDir()), state: t.TempDir(), served: make(chan error, 1),
		answers: map[string]func(json.RawMessage) any{}}
	e.changed.L = &e.mu
	return e
}

// start runs a daemon with a scripted model. The editor must initialize.
func start(t *testing.T, scenario string, set ...func(*editor)) *editor {
	t.Helper()
	e := newEditor(t)
	for _, f := range set {
		f(e)
	}
	var err error
	if e.model, err = rehearsal.Start(scenario); err != nil {
		t.Fatal(err)
	}
	provider, err := chat.New(chat.Options{Name: "test", Kind: "deepseek", BaseURL: e.model.URL})
	if err != nil {
		t.Fatal(err)
	}
	store, err := transcript.Open(filepath.Join(t.TempDir(), "fermata.db"), transcript.Options{Version: "test", Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	e.connect(func(c agent.Client) (*agent.Agent, *transcript.Store, error) {
		e.server = c.(*server)
		return agent.New(agent.Options{
			Store: store, Client: c, Tools: tools.All(), Policy: e.policy,
			Models: func(string) (agent.Model, error) {
				return agent.Model{Provider: provider, ProviderName: "test", Name: "m"}, nil
			},
		}), store, nil
	})
	t.Cleanup(func() {
		e.in.Close()
		e.mu.Lock()
		if e.paused != nil {
			close(e.paused)
			e.paused = nil
		}
		e.mu.Unlock()
		e.await("the end", func() bool { return e.ended })
		e.model.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// connect starts the daemon.
func (e *editor) connect(open func(agent.Client) (*agent.Agent, *transcript.Store, error)) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e.in = inW
	ctx, cancel := context.WithCancelCause(context.Background())
	e.signal = cancel
	go func() {
		err := Serve(ctx, inR, output{e, outW}, Options{
			Version: "1.2.3", StateDir: e.state, EditDeadline: e.deadline,
			Open: func(_ context.Context, c agent.Client) (*agent.Agent, *transcript.Store, error) { return open(c) },
		})
		outW.Close()
		e.served <- err
	}()
	go e.read(outR)
}

// read keeps all that the daemon writes and answers its requests.
func (e *editor) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		e.mu.Lock()
		paused := e.paused
		e.mu.Unlock()
		if paused != nil {
			e.set(&e.waiting, true)
			<-paused
			e.set(&e.waiting, false)
		}
		var n int
		if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n\r\n", &n); err != nil {
			break
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			e.t.Errorf("%s: %v", body, err)
		}
		e.mu.Lock()
		e.got = append(e.got, m)
		answer := e.answers[m.Method]
		e.changed.Broadcast()
		e.mu.Unlock()
		if m.Method != "" && m.ID != nil && answer != nil {
			go func() {
				if result := answer(m.Params); result != nil {
					e.send(obj{"jsonrpc": "2.0", "id": m.ID, "result": result})
				}
			}()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.changed.Broadcast()
}

func (e *editor) set(flag *bool, to bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*flag = to
	e.changed.Broadcast()
}

// output is where the daemon writes.
type output struct {
	e *editor
	w *io.PipeWriter
}

func (o output) Write(b []byte) (int, error) {
	o.e.set(&o.e.writing, true)
	defer o.e.set(&o.e.writing, false)
	return o.w.Write(b)
}

// pause ends the reading, and returns when the daemon is blocked in a write. The function it returns reads on.
func (e *editor) pause() (resume func()) {
	paused := make(chan struct{})
	e.mu.Lock()
	e.paused = paused
	e.mu.Unlock()
	e.await("a write that blocks", func() bool { return e.waiting && e.writing })
	return func() {
		e.mu.Lock()
		e.paused = nil
		e.mu.Unlock()
		close(paused)
	}
}

// send writes messages in one write.
func (e *editor) send(messages ...obj) {
	var b strings.Builder
	for _, m := range messages {
		body, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	_, _ = io.WriteString(e.in, b.String()) // after the end nobody reads
}

// req is a request with the next id.
func (e *editor) req(method string, params any) obj {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastID++
	m := obj{"jsonrpc": "2.0", "id": e.lastID, "method": method}
	if params != nil {
		m["params"] = params
	}
	return m
}

func note(method string, params any) obj {
	return obj{"jsonrpc": "2.0", "method": method, "params": params}
}

// await waits until ok says so; it is called with the lock held.
func (e *editor) await(what string, ok func() bool) {
	e.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		late = true
		e.changed.Broadcast()
	})
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !ok() {
		if late {
			for _, m := range e.got {
				e.t.Logf("%s %s %s %s %+v", m.ID, m.Method, m.Params, m.Result, m.Error)
			}
			e.t.Fatalf("%s did not come", what)
		}
		e.changed.Wait()
	}
}

// find waits for a message and returns it with its index.
func (e *editor) find(what string, ok func(m message) bool) (found message, index int) {
	e.t.Helper()
	e.await(what, func() bool {
		for i, m := range e.got {
			if ok(m) {
				found, index = m, i
				return true
			}
		}
		return false
	})
	return found, index
}

// reply waits for the response to a request.
func (e *editor) reply(request obj) (m message, index int) {
	e.t.Helper()
	id := fmt.Sprint(request["id"])
	return e.find("the reply to "+fmt.Sprint(request["method"]), func(m message) bool { return m.Method == "" && string(m.ID) == id })
}

// call sends a request and decodes its result.
func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	r := e.req(method, params)
	e.send(r)
	m, _ := e.reply(r)
	if m.Error != nil {
		e.t.Fatalf("%s: %+v", method, *m.Error)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			e.t.Fatalf("%s: %s: %v", method, m.Result, err)
		}
	}
}

// refused sends a request and expects an error.
func (e *editor) refused(method string, params any, code int, contains string) message {
	e.t.Helper()
	r := e.req(method, params)
	e.send(r)
	m, _ := e.reply(r)
	if m.Error == nil || m.Error.Code != code || !strings.Contains(m.Error.Message, contains) {
		e.t.Errorf("%s %v: %s %+v, want %d %q", method, params, m.Result, m.Error, code, contains)
	}
	return m
}

// event waits for an event.
func (e *editor) event(kind string) (event, int) {
	e.t.Helper()
	m, i := e.find("the event "+kind, func(m message) bool { return m.Method == "fermata/event" && eventOf(m).Kind == kind })
	return eventOf(m), i
}

type event struct {
	Session, Turn, Kind, Part, Text string
	Seq, Offset                     int64
	Entry                           json.RawMessage
}

func eventOf(m message) (ev event) {
	_ = json.Unmarshal(m.Params, &ev)
	return ev
}

// said is the text of all deltas of a turn so far, and the index of the last.
func (e *editor) said(turn string) (text string, last int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, m := range e.got {
		if ev := eventOf(m); ev.Kind == "delta" && ev.Turn == turn {
			text += ev.Text
			last = i
		}
	}
	return text, last
}

// initialize makes the editor known, with these capabilities, and opens a session in its root.
func (e *editor) initialize(capabilities obj) {
	e.t.Helper()
	e.call("initialize", obj{"processId": nil, "rootUri": fileURI(e.root), "capabilities": capabilities}, nil)
	e.send(note("initialized", obj{}))
}

func (e *editor) session() string {
	e.t.Helper()
	var s struct{ Session string }
	e.call("fermata/session/new", nil, &s)
	return s.Session
}

var fermataClient = obj{"experimental": obj{"fermata": obj{"protocol": 1}}}

func text(s string) []obj { return []obj{{"type": "text", "text": s}} }

type outcome struct {
	Session, Turn, Outcome, Cause string
	Silent                        bool
	Kept                          *transcript.Kept
	Tools                         []struct{ Name, State, Cause string }
	Prompt                        []transcript.PromptPart
}

func (e *editor) result(request obj) (r outcome, index int) {
	e.t.Helper()
	m, index := e.reply(request)
	if m.Error != nil {
		e.t.Fatalf("%v: %+v", request["method"], *m.Error)
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		e.t.Fatal(err)
	}
	return r, index
}
