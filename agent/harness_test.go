package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/agent/model/chat"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/watch"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// reply is one response of the scripted model, over a real HTTP server.
type reply struct {
	w     http.ResponseWriter
	gone  <-chan struct{} // closed when the client has closed the connection
	calls int
}

func (r *reply) chunk(delta map[string]any) {
	b, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
	if err != nil {
		panic(err)
	}
	r.raw("data: " + string(b) + "\n\n")
}

func (r *reply) raw(s string) {
	_, _ = io.WriteString(r.w, s)
	r.w.(http.Flusher).Flush()
}

func (r *reply) say(text string)    { r.chunk(map[string]any{"content": text}) }
func (r *reply) reason(text string) { r.chunk(map[string]any{"reasoning_content": text}) }
func (r *reply) done()              { r.raw("data: [DONE]\n\n") }
func (r *reply) hang()              { <-r.gone }
func (r *reply) call(id, name, args string) {
	r.chunk(map[string]any{"tool_calls": []any{map[string]any{
		"index": r.calls, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args},
	}}})
	r.calls++
}

// scripted is a model that answers the nth request with the nth script and records the bodies.
type scripted struct {
	server *httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	came   chan struct{} // one for each request that came whole
}

// arrived waits until the next request has come whole.
func (m *scripted) arrived(t *testing.T) {
	t.Helper()
	select {
	case <-m.came:
	case <-time.After(20 * time.Second):
		t.Fatal("no request came")
	}
}

func (m *scripted) body(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > len(m.bodies) {
		return fmt.Sprintf("only %d requests came", len(m.bodies))
	}
	return string(m.bodies[n-1])
}

// message is a message of a request body, as much as tests look at.
type message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Reasoning *string `json:"reasoning_content"`
	CallID    string  `json:"tool_call_id"`
	Calls     []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// messages are the nth request's messages without the system message.
func (m *scripted) messages(t *testing.T, n int) []message {
	t.Helper()
	var body struct{ Messages []message }
	if err := json.Unmarshal([]byte(m.body(n)), &body); err != nil {
		t.Fatalf("request %d: %v: %s", n, err, m.body(n))
	}
	if len(body.Messages) > 0 && body.Messages[0].Role == "system" {
		return body.Messages[1:]
	}
	return body.Messages
}

func serve(t *testing.T, scripts ...func(*reply)) *scripted {
	m := &scripted{came: make(chan struct{}, 100)}
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // stopped before it was sent whole
		}
		m.mu.Lock()
		m.bodies = append(m.bodies, body)
		n := len(m.bodies)
		m.mu.Unlock()
		m.came <- struct{}{}
		w.Header().Set("Content-Type", "text/event-stream")
		if n > len(scripts) {
			n = len(scripts)
		}
		scripts[n-1](&reply{w: w, gone: r.Context().Done()})
	}))
	t.Cleanup(m.server.Close)
	return m
}

// world is an agent with a database, a workspace and a scripted model.
type world struct {
	t     *testing.T
	agent *Agent
	store *transcript.Store
	model *scripted
	root  string
	s     *Session
	sub   *Subscription

	ask    func(ctx context.Context, q Question) (Reply, error)
	editor workspace.Overlay // nil: there is none
}

func (w *world) Permission(ctx context.Context, q Question) (Reply, error) {
	if w.ask == nil {
		return Reply{Answer: permit.AllowOnce}, nil
	}
	return w.ask(ctx, q)
}

func (w *world) Overlay(string) workspace.Overlay { return w.editor }

func newWorld(t *testing.T, catalogue []tools.Tool, scripts ...func(*reply)) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), model: serve(t, scripts...)}
	var err error
	if w.store, err = transcript.Open(filepath.Join(t.TempDir(), "fermata.db"), transcript.Options{}); err != nil {
		t.Fatal(err)
	}
	provider, err := chat.New(chat.Options{Name: "test", Kind: "deepseek", BaseURL: w.model.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	w.agent = New(Options{
		Store: w.store, Client: w, Tools: catalogue, Watcher: watch.New(nil), Settle: 200 * time.Millisecond, Retry: Retry{Tries: 1},
		Models: func(string) (Model, error) {
			return Model{Provider: provider, ProviderName: "test", Name: "scripted"}, nil
		},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.agent.Close(ctx, ErrShutdown); err != nil {
			t.Errorf("close: %v", err)
		}
		report, err := w.store.Verify(ctx, func(dialect string) (transcript.Encoder, bool) {
			d, err := chat.ByName(dialect)
			return d, err == nil
		})
		if err != nil {
			t.Errorf("verify: %v", err)
		}
		for _, p := range report.Problems {
			t.Errorf("verify: %+v", p)
		}
		if err := w.store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	if w.s, err = w.agent.NewSession(t.Context(), SessionOptions{Workspace: w.root}); err != nil {
		t.Fatal(err)
	}
	if w.sub, err = w.s.Subscribe(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return w
}

func say(text string) Start {
	return Start{Prompt: []transcript.PromptPart{{Type: "text", Text: text}}}
}

// start runs a turn in the background; the report comes on the channel.
func (w *world) start(s Start) (*Turn, <-chan Report) {
	t := w.agent.Reserve(w.s.ID())
	return t, w.runIn(t, s)
}

func (w *world) runIn(t *Turn, s Start) <-chan Report {
	out := make(chan Report, 1)
	go func() {
		r, err := t.Run(context.Background(), s)
		if err != nil {
			w.t.Errorf("run: %v", err)
		}
		out <- r
	}()
	return out
}

func (w *world) run(s Start) Report {
	_, out := w.start(s)
	return <-out
}

// until reads events up to the first that matches and returns the text of the deltas among them, by part.
func (w *world) until(match func(Event) bool) (text, reasoning string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	for {
		ev, err := w.sub.Next(ctx)
		if err != nil {
			w.t.Fatalf("waiting for an event: %v; the log: %s", err, w.dump())
		}
		if ev.Delta != nil && ev.Delta.Part == transcript.PartText {
			text += ev.Delta.Text
		}
		if ev.Delta != nil && ev.Delta.Part == transcript.PartReasoning {
			reasoning += ev.Delta.Text
		}
		if match(ev) {
			return text, reasoning
		}
	}
}

func entry[T transcript.Body](ev Event) (b T, ok bool) {
	if ev.Entry != nil {
		b, ok = ev.Entry.Body.(T)
	}
	return b, ok
}

func is[T transcript.Body](ev Event) bool {
	_, ok := entry[T](ev)
	return ok
}

func deltaEndsWith(suffix string) func(Event) bool {
	var all strings.Builder
	return func(ev Event) bool {
		if ev.Delta != nil {
			all.WriteString(ev.Delta.Text)
		}
		return strings.HasSuffix(all.String(), suffix)
	}
}

// journalled waits until the text of all deltas so far is in the journal.
func (w *world) journalled(text string) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20 * time.Second); ; {
		_, said, err := w.store.News(w.t.Context(), w.s.ID(), transcript.Place{Seq: w.s.hub.seq()})
		if err != nil {
			w.t.Fatal(err)
		}
		var all strings.Builder
		for _, d := range said {
			all.WriteString(d.Text)
		}
		if all.String() == text {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			w.t.Fatalf("%q is not in the journal", text)
		}
	}
}

// dump is the log, for the message of a failed test.
func (w *world) dump() string {
	entries, err := w.store.Entries(context.Background(), w.s.ID(), 0, 0)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range entries {
		body, _ := json.Marshal(e.Body)
		fmt.Fprintf(&b, "\n%d %s %s", e.Seq, e.Kind(), body)
	}
	return b.String()
}
