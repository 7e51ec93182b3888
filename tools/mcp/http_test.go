package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/tools"
)

// rawAddress is an address that is no SDK's. What it does with a call and a listener is said by a test.
type rawAddress struct {
	call   func(w http.ResponseWriter, r *http.Request, id, args json.RawMessage)
	listen func(w http.ResponseWriter, r *http.Request) // nil: it has no stream of its own
	answer func(w http.ResponseWriter, r *http.Request) // to what it asked; nil: it asks nothing
	list   atomic.Pointer[string]                       // of tools
	fails  atomic.Pointer[func(w http.ResponseWriter)]  // instead of giving it

	mu       sync.Mutex
	sessions int
	expired  []string
}

// start starts the address.
func (a *rawAddress) start(t *testing.T) Config {
	t.Helper()
	a.list.CompareAndSwap(nil, new(`{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`))
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return Config{Name: "srv", URL: server.URL}
}

func (a *rawAddress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && a.listen != nil {
		a.listen(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "" {
		a.answer(w, r)
		return
	}
	a.mu.Lock()
	gone := slices.Contains(a.expired, r.Header.Get("Mcp-Session-Id"))
	a.mu.Unlock()
	if gone {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch m.Method {
	case "initialize":
		a.mu.Lock()
		a.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", a.sessions))
		a.mu.Unlock()
		reply(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "tools/list":
		if fails := a.fails.Load(); fails != nil {
			(*fails)(w)
			return
		}
		reply(w, m.ID, *a.list.Load())
	case "tools/call":
		a.call(w, r, m.ID, m.Params.Arguments)
	}
}

func reply(w io.Writer, id json.RawMessage, result string) {
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

const fineResult = `{"content":[{"type":"text","text":"fine"}]}`

// guards S7: one call that came to nothing took others with it, which went on.
func TestACallThatFailsOverHTTPLeavesTheOthersTheirAnswers(t *testing.T) {
	for name, fail := range map[string]struct {
		do   func(w http.ResponseWriter)
		want string
	}{
		"forbidden":       {func(w http.ResponseWriter) { http.Error(w, "not with t0p", http.StatusForbidden) }, "srv__say: the MCP server srv answers with an error: HTTP 403 Forbidden (code 403)"},
		"broken":          {func(w http.ResponseWriter) { http.Error(w, "no", 524) }, "srv__say: the MCP server srv answers with an error: HTTP 524; the call may have taken effect (code 524)"},
		"too many":        {func(w http.ResponseWriter) { http.Error(w, "no", http.StatusTooManyRequests) }, "srv__say: the MCP server srv answers with an error: HTTP 429 Too Many Requests (code 429)"},
		"moved elsewhere": {func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(307) }, "srv__say: the MCP server srv answers with an error: HTTP 307 Temporary Redirect (code 307)"},
		"an error of the protocol": {func(w http.ResponseWriter) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}`)
		}, "srv__say: the MCP server srv answers with an error: no such tool (code -32602)"},
		"a stream that ends": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
		}, "srv__say: the MCP server srv gave no answer that can be read, and the call may have taken effect: "},
	} {
		t.Run(name, func(t *testing.T) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			a := &rawAddress{call: func(w http.ResponseWriter, _ *http.Request, id, args json.RawMessage) {
				if strings.Contains(string(args), "fail") {
					fail.do(w)
					return
				}
				close(begun)
				<-goOn
				reply(w, id, fineResult)
			}}
			b := newBench(t, a.start(t))
			other := b.start(t.Context(), "srv__say", `{}`)
			<-begun
			r := result(t, b.start(t.Context(), "srv__say", `{"fail":true}`))
			if r.State != tools.Failed || !strings.HasPrefix(r.Output, fail.want) || strings.Contains(r.Output, "t0p") {
				t.Errorf("%s: %s", r.State, r.Output)
			}
			close(goOn)
			if r := result(t, other); r.State != tools.Done || r.Output != "fine" {
				t.Errorf("the other one: %s: %s", r.State, r.Output)
			}
		})
	}
}

// guards P2: nobody has taken a call of a session that has expired.
func TestACallOfASessionThatHasExpiredIsMadeInANewOne(t *testing.T) {
	var calls atomic.Int32
	a := &rawAddress{call: func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		calls.Add(1)
		reply(w, id, fineResult)
	}}
	b := newBench(t, a.start(t))
	b.run(t.Context(), "srv__say", `{}`, nil)
	a.mu.Lock()
	a.expired = append(a.expired, "s1")
	a.mu.Unlock()
	b.conn().changed.Store(true)
	if _, warnings := b.tools(t.Context()); len(warnings) > 0 {
		t.Errorf("%q: the next call starts it", warnings)
	}
	if r := b.run(t.Context(), "srv__say", `{}`, nil); r.State != tools.Done || r.Output != "fine" || calls.Load() != 2 || a.sessions != 2 {
		t.Errorf("%s: %s; %d calls, %d sessions", r.State, r.Output, calls.Load(), a.sessions)
	}
}

func TestAnAddressThatNeverAnswersAListenerIsStartedAllTheSame(t *testing.T) {
	a := &rawAddress{
		call:   func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { reply(w, id, fineResult) },
		listen: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	c := a.start(t)
	c.Start = time.Second
	b := newBench(t, c)
	offered := make(chan []tools.Tool, 1)
	go func() { // ends with the start
		all, _ := b.servers.Tools(context.WithoutCancel(t.Context()), b.dir)
		offered <- all
	}()
	select {
	case all := <-offered:
		if len(all) != 1 {
			t.Fatalf("%d tools", len(all))
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the start does not come to an end")
	}
	if r := b.run(t.Context(), "srv__say", `{}`, nil); r.Output != "fine" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

// A listener's stream that breaks, as proxies break those that are silent, ended the session and the calls that ran.
func TestAListenersStreamThatBreaksEndsNothingAndTheListIsReadEachTurn(t *testing.T) {
	var listeners atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	a := &rawAddress{
		call: func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			close(begun)
			<-goOn
			reply(w, id, fineResult)
		},
		listen: func(w http.ResponseWriter, _ *http.Request) {
			if listeners.Add(1) > 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jso")
		},
	}
	b := newBench(t, a.start(t))
	running := b.start(t.Context(), "srv__say", `{}`)
	<-begun
	c := b.conn()
	b.until("the stream is over", func() bool { return c.wire.unheard() })
	a.list.Store(new(`{"tools":[{"name":"other","inputSchema":{"type":"object"}}]}`))
	if offered, warnings := b.tools(t.Context()); !slices.Equal(names(offered), []string{"srv__other"}) || len(warnings) > 0 {
		t.Errorf("%q, %q", names(offered), warnings)
	}
	close(goOn)
	if r := result(t, running); r.Output != "fine" || b.conn() != c {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

// An address whose listener had broken and that answers no more was waited for by every turn, for as long as its list may take.
func TestAnAddressThatGivesNoListIsNotAskedForItByEveryTurn(t *testing.T) {
	var asked atomic.Int32
	a := &rawAddress{listen: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }}
	c := a.start(t)
	b := newBench(t, c)
	b.tools(t.Context())
	conn := b.conn()
	b.until("the stream is over", func() bool { return conn.wire.unheard() })
	a.fails.Store(new(func(w http.ResponseWriter) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	for turn := range 5 {
		offered, warnings := b.tools(t.Context())
		if !slices.Equal(names(offered), []string{"srv__say"}) || (len(warnings) > 0) != (turn == 0) {
			t.Errorf("turn %d: %q, %q", turn, names(offered), warnings)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// One that keeps a turn waiting is left alone for much longer than that; a turn that is stopped meanwhile says nothing about it.
func TestALongerWaitForAListIsFollowedByALongerPause(t *testing.T) {
	a := &rawAddress{listen: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }}
	b := newBench(t, a.start(t))
	b.tools(t.Context())
	conn := b.conn()
	b.until("the stream is over", func() bool { return conn.wire.unheard() })
	s := b.servers.of(b.dir)[0]
	pause := func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Until(s.relist)
	}

	asked, end := make(chan struct{}), make(chan struct{})
	a.fails.Store(new(func(http.ResponseWriter) {
		asked <- struct{}{}
		<-end
	}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with the stop
		defer close(done)
		b.tools(ctx)
	}()
	<-asked
	stop()
	<-done
	if pause() > 0 {
		t.Errorf("after a stop it is not asked for %v", pause())
	}
	close(end)

	s.unread(10 * time.Second) // as long as an address that does not answer is waited for
	if p := pause(); p < 90*time.Second {
		t.Errorf("after 10s it is not asked for %v", p)
	}
}

// guards M4
func TestOfAVeryLongListTheSameToolsAreTakenInWhateverOrderItComes(t *testing.T) {
	var all [][]string
	for _, order := range []func(i int) int{func(i int) int { return i }, func(i int) int { return 4999 - i }} {
		var list []string
		for i := range 5000 {
			list = append(list, fmt.Sprintf(`{"name":"t%04d","inputSchema":{"type":"object"}}`, order(i)))
		}
		a := &rawAddress{}
		a.list.Store(new(`{"tools":[` + strings.Join(list, ",") + `]}`))
		b := newBench(t, a.start(t))
		offered, _ := b.tools(t.Context())
		all = append(all, names(offered))
	}
	if len(all[0]) != offered || all[0][0] != "srv__t0000" || !slices.Equal(all[0], all[1]) {
		t.Errorf("%d %q, %d %q", len(all[0]), all[0][0], len(all[1]), all[1][0])
	}
}

func TestWhatIsSaidAfterAnAnswerIsNotWaitedFor(t *testing.T) {
	left := make(chan struct{})
	a := &rawAddress{call: func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: ")
		reply(w, id, fineResult)
		fmt.Fprint(w, "\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	}}
	b := newBench(t, a.start(t))
	if r := b.run(t.Context(), "srv__say", `{}`, nil); r.Output != "fine" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	select {
	case <-left:
	case <-time.After(20 * time.Second):
		t.Error("the stream stays open")
	}
}

func TestWhatAnAddressDoesNotTakeEndsWithTheServers(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	a := &rawAddress{
		call: func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n")
			w.(http.Flusher).Flush()
			<-asked
			fmt.Fprint(w, "data: ")
			reply(w, id, fineResult)
			fmt.Fprint(w, "\n\n")
		},
		answer: func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
			close(left)
		},
	}
	b := newBench(t, a.start(t))
	if r := b.run(t.Context(), "srv__say", `{}`, nil); r.Output != "fine" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	b.servers.Close()
	select {
	case <-left:
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
}
