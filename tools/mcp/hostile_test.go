package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tools"
	"fermata/tools/mcp/mcptest"
)

// fine is a good answer of a raw server.
const fine = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"fine"}]}}`

// saying are the arguments that have a raw server say lines.
func saying(t *testing.T, more map[string]any, lines ...string) string {
	t.Helper()
	args := map[string]any{"lines": lines}
	maps.Copy(args, more)
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// say has a raw server say lines as its answer to a call. "$id" is the call's id.
func (b *bench) say(lines ...string) tools.Result {
	b.t.Helper()
	return result(b.t, b.start(b.t.Context(), "srv__say", saying(b.t, nil, lines...)))
}

// put makes an empty file, which a server waits for.
func (b *bench) put(name string) {
	b.t.Helper()
	if err := os.WriteFile(b.file(name), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// until tries something again until it is so.
func (b *bench) until(what string, is func() bool) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("not seen: %s", what)
		}
	}
}

// One message without parameters ended the daemon: a handler of the SDK took them for granted.
func TestNoMessageOfAServerEndsUs(t *testing.T) {
	var lines []string
	for _, method := range []string{
		"ping", "roots/list", "sampling/createMessage", "elicitation/create", "completion/complete", "tools/call", "no/such", "",
		"notifications/cancelled", "notifications/progress", "notifications/message", "notifications/tools/list_changed",
		"notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/elicitation/complete", "notifications/subscriptions/acknowledged", "notifications/initialized",
	} {
		for _, params := range []string{``, `,"params":null`, `,"params":[]`, `,"params":{}`, `,"params":{"_meta":null}`, `,"params":"x"`} {
			lines = append(lines, `{"jsonrpc":"2.0","method":"`+method+`"`+params+`}`, `{"jsonrpc":"2.0","id":"x","method":"`+method+`"`+params+`}`)
		}
	}
	lines = append(lines, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":null,"result":null}`, `{"jsonrpc":"2.0","id":"$id","result":{}}`,
		`[]`, `null`, `{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, fine, fine)
	b := newBench(t, program(t, "raw"))
	for range 3 {
		if r := b.say(lines...); r.State != tools.Done || r.Output != "fine" {
			t.Errorf("%s: %s", r.State, r.Output)
		}
	}
}

// guards P2
func TestAnAnswerThatCannotBeReadIsSaidToBeOneAndTheServerGoesOn(t *testing.T) {
	b := newBench(t, program(t, "raw"))
	begun := b.conn()
	const unread = "the MCP server srv gave no answer that can be read, and the call may have taken effect: "
	for name, tt := range map[string]struct {
		answer string
		state  tools.State
		want   string
	}{
		"nothing":            {`null`, tools.Done, "(no output)"},
		"an empty one":       {`{}`, tools.Done, "(no output)"},
		"no content":         {`{"content":null}`, tools.Done, "(no output)"},
		"an empty resource":  {`{"content":[{"type":"resource","resource":null}]}`, tools.Done, "(an empty resource)"},
		"a text":             {`"x"`, tools.Failed, unread},
		"a piece of nothing": {`{"content":[null]}`, tools.Failed, unread},
		"an unknown kind":    {`{"content":[{"type":"hologram","x":1}]}`, tools.Failed, unread},
		"a broken picture":   {`{"content":[{"type":"image","data":"%%%","mimeType":"image/png"}]}`, tools.Failed, unread},
		"a question":         {`{"inputRequests":{"a":{"method":"roots/list","params":{}}}}`, tools.Failed, "it asks for input from the user"},
		"an empty question":  {`{"inputRequests":{}}`, tools.Failed, "it asks for input from the user"},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.say(`{"jsonrpc":"2.0","id":$id,"result":` + tt.answer + `}`)
			if r.State != tt.state || !strings.Contains(r.Output, tt.want) {
				t.Errorf("%s: %s", r.State, r.Output)
			}
		})
	}
	if b.conn() != begun {
		t.Error("the server was started again")
	}
}

// conn is the connection to the one server, which is started.
func (b *bench) conn() *conn {
	b.t.Helper()
	b.tools(b.t.Context())
	s := b.servers.of(b.dir)[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

func TestAServerThatGoesOnWithoutInputDoesNotHoldUpAStart(t *testing.T) {
	c := program(t, "stubborn")
	c.Start = 300 * time.Millisecond
	b := newBench(t, c)
	over := make(chan []string, 1)
	go func() { // ends with the start
		_, warnings := b.servers.Tools(context.WithoutCancel(t.Context()), b.dir)
		over <- warnings
	}()
	select {
	case warnings := <-over:
		if len(warnings) != 1 || !strings.Contains(warnings[0], "it did not start within 300ms") {
			t.Errorf("%q", warnings)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the start does not come to an end")
	}
}

func TestAServerThatFailsAgainAndAgainIsToldOnce(t *testing.T) {
	c := program(t, "broken")
	b := newBench(t, c)
	if _, warnings := b.tools(t.Context()); len(warnings) != 1 {
		t.Fatalf("%q", warnings)
	}
	for range 2 { // while it is not started again, which is said otherwise
		if _, warnings := b.tools(t.Context()); len(warnings) != 0 {
			t.Errorf("%q", warnings)
		}
	}
}

// guards S7: the end of the server could come before its answer, although that had come first.
func TestALateAnswerBeforeTheServersEndIsNotLost(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel() // each waits for the time that an answer to a stop has
			b := newBench(t, program(t, "raw"))
			ctx, stop := context.WithCancel(t.Context())
			results := b.start(ctx, "srv__say", saying(t, map[string]any{"file": b.file("said"), "until": b.file("go")}, fine, "$exit"))
			b.await("said", "begun")
			stop()
			r := result(t, results)
			if r.State != tools.Unknown || r.Later == nil {
				t.Fatalf("%s: %s", r.State, r.Output)
			}
			b.put("go")
			if late := result(t, r.Later); late.State != tools.Done || late.Output != "fine" {
				t.Errorf("late %s: %s", late.State, late.Output)
			}
		})
	}
}

// A server that reads nothing held up whoever had something to say to it, also after a stop.
func TestAServerThatReadsNothingHoldsUpNobody(t *testing.T) {
	b := newBench(t, program(t, "raw"))
	reading := b.start(t.Context(), "srv__say", saying(t, map[string]any{"file": b.file("said"), "until": b.file("go")}, fine))
	b.await("said", "begun")
	c := b.conn()
	w := c.wire.(*stdio)
	ctx, stop := context.WithCancel(t.Context())
	long := b.start(ctx, "srv__say", saying(t, map[string]any{"text": strings.Repeat("x", 1<<20)}, fine))
	b.until("the pipe is full", func() bool { return w.waiting.Load() == 1 })
	short := b.start(ctx, "srv__say", saying(t, nil, fine))
	b.until("a second call waits", func() bool { return w.waiting.Load() == 2 })
	c.changed.Store(true)
	listed := make(chan struct{})
	go func() { // ends with the stop
		defer close(listed)
		b.tools(ctx)
	}()
	b.until("the list is asked for", func() bool { return w.waiting.Load() == 3 })
	stop()
	if r := result(t, short); r.State != tools.Stopped || r.Output != notBegun {
		t.Errorf("what was not sent: %s: %s", r.State, r.Output)
	}
	if r := result(t, long); r.State != tools.Unknown || !strings.Contains(r.Output, "could not be told so. The call may have taken effect.") {
		t.Errorf("what was begun to be sent: %s: %s", r.State, r.Output)
	}
	select {
	case <-listed:
	case <-time.After(20 * time.Second):
		t.Fatal("the list is waited for")
	}
	b.put("go")
	if r := result(t, reading); r.Output != "fine" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if r := b.say(fine); r.Output != "fine" {
		t.Errorf("afterwards %s: %s", r.State, r.Output)
	}
}

// guards P2
func TestACallThatTookTooLongToLeaveSaysThatNothingWasDone(t *testing.T) {
	c := program(t, "raw")
	c.Call = 500 * time.Millisecond
	b := newBench(t, c)
	b.start(t.Context(), "srv__say", saying(t, map[string]any{"file": b.file("said"), "until": b.file("go")}, fine))
	b.await("said", "begun")
	w := b.conn().wire.(*stdio)
	long := b.start(t.Context(), "srv__say", saying(t, map[string]any{"text": strings.Repeat("x", 1<<17)}, fine))
	b.until("the pipe is full", func() bool { return w.waiting.Load() == 2 })
	r := b.say(fine)
	if r.State != tools.Failed || !strings.HasPrefix(r.Output, "timed out after ") || !strings.HasSuffix(r.Output, ", before the MCP server srv had read it: nothing was done") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if r := result(t, long); r.State != tools.Unknown {
		t.Errorf("what was begun to be sent: %s: %s", r.State, r.Output)
	}
}

func TestAServerThatAsksWithoutReadingTheAnswersIsNotHeard(t *testing.T) {
	b := newBench(t, program(t, "raw"))
	r := result(t, b.start(t.Context(), "srv__say", saying(t, map[string]any{"count": 1_000_000}, `{"jsonrpc":"2.0","id":$n,"method":"ping"}`)))
	if r.State != tools.Failed || !strings.Contains(r.Output, "it does not read what it is answered") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

func TestProgressIsBounded(t *testing.T) {
	c := &conn{progress: map[string]*follower{}}
	var told strings.Builder
	token, done := c.follow(func(text string) { told.WriteString(text) })
	for range 1000 {
		c.progressed(&sdk.ProgressNotificationParams{ProgressToken: token, Message: strings.Repeat("x", 100)})
	}
	if told.Len() > progressBytes+200 || !strings.HasSuffix(told.String(), "\n(it goes on, but is not shown any more)\n") {
		t.Errorf("%d bytes, ends %q", told.Len(), told.String()[max(0, told.Len()-100):])
	}
	done()
}

// guards M4
func TestAListThatCouldNotBeReadIsReadInTheNextTurn(t *testing.T) {
	b := newBench(t, program(t, "shy"))
	b.run(t.Context(), "srv__grow", `{}`, nil)
	c := b.conn()
	b.until("the list changes", func() bool {
		offered, _ := b.tools(t.Context())
		return len(offered) == 2
	})
	c.changed.Store(true)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	b.tools(stopped)
	if !c.changed.Load() {
		t.Error("the change is forgotten")
	}
}

func TestAToolThatIsWantedIsFoundInALongList(t *testing.T) {
	var list []string
	for i := range 600 {
		list = append(list, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	c := program(t, "raw")
	c.Env[mcptest.List] = `{"tools":[null,` + strings.Join(list, ",") + `]}`
	c.Tools = []string{"t7", "t599"}
	b := newBench(t, c)
	if offered, warnings := b.tools(t.Context()); !slices.Equal(names(offered), []string{"srv__t599", "srv__t7"}) || len(warnings) > 0 {
		t.Errorf("%q, %q", names(offered), warnings)
	}
}

func TestNothingGoesOnWhenTheServersAreClosed(t *testing.T) {
	before := runtime.NumGoroutine()
	c, server := address(t, nil)
	dying := program(t, "raw")
	dying.Name = "dying"
	b := newBench(t, c, dying, Config{Name: "bad", Command: dying.Command, Env: map[string]string{mcptest.Mode: "broken"}})
	for range 2 {
		b.run(t.Context(), "srv__echo", `{}`, nil)
		b.run(t.Context(), "dying__say", saying(t, nil, fine, "$exit"), nil) // it ends between calls
	}
	b.servers.Close()
	server.CloseClientConnections()
	server.Close()
	b.until("no goroutine of them is left", func() bool { return runtime.NumGoroutine() <= before })
}
