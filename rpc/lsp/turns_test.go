package lsp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fermata/agent"
	"fermata/rpc/wire"
)

const endless = "reply\nrate 200\nwords 100000\n"

func TestATurnIsToldFromItsStartToItsReply(t *testing.T) {
	e := start(t, "reply\nsay Hello there\n")
	e.initialize(fermataClient)
	id := e.session()
	r := e.req("fermata/turn/start", obj{"session": id, "prompt": text("hi"), "unknown": 1})
	e.send(r)
	got, replied := e.result(r)
	said, last := e.said(got.Turn)
	if got.Outcome != "completed" || said != "Hello there" || last > replied {
		t.Errorf("%+v, said %q at %d, replied at %d", got, said, last, replied)
	}
	if _, ended := e.event("turn.ended"); ended > replied {
		t.Error("the reply overtook the end of the turn")
	}
}

// guards S2
func TestAStopInTheSameReadAsItsStartFindsIt(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	id := e.session()
	for range 20 {
		started := e.req("fermata/turn/start", obj{"session": id, "prompt": text("hi")})
		stop := e.req("fermata/turn/stop", nil)
		e.send(started, stop)
		a, _ := e.result(started)
		b, _ := e.result(stop)
		if a.Outcome != "stopped" || a.Cause != "user" || a.Turn != b.Turn || b.Outcome != "stopped" {
			t.Fatalf("start %+v, stop %+v", a, b)
		}
	}
}

// guards S4, P1
func TestAStopKeepsWhatWasSentAndRepliesAfterAllOfIt(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	stop := e.req("fermata/turn/stop", obj{})
	e.send(stop)
	got, stopReplied := e.result(stop)
	_, startReplied := e.result(started)
	said, last := e.said(got.Turn)
	sum := sha256.Sum256([]byte(said))
	if got.Kept == nil || got.Kept.Bytes != int64(len(said)) || got.Kept.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("kept %+v of %d bytes", got.Kept, len(said))
	}
	if last > stopReplied || last > startReplied {
		t.Errorf("the last delta is %d, the replies %d and %d", last, stopReplied, startReplied)
	}
	if _, i := e.event("stopping"); i > stopReplied {
		t.Error("the stop was not acknowledged before its end")
	}
	var again outcome
	e.call("fermata/turn/stop", obj{"turn": got.Turn}, &again) // guards S1
	if again.Outcome != "stopped" || again.Kept.SHA256 != got.Kept.SHA256 {
		t.Errorf("stopped again: %+v", again)
	}
	e.refused("fermata/turn/stop", nil, -31003, "no turn is running")
}

// guards S13, S4
func TestAClientThatDoesNotReadDoesNotDelayTheStop(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	resume := e.pause()
	stop := e.req("fermata/turn/stop", nil)
	e.send(stop)
	<-e.model.Requests()[0].Closed() // the connection to the model is closed although nobody reads
	resume()
	got, replied := e.result(stop)
	said, last := e.said(got.Turn)
	if got.Kept == nil || got.Kept.Bytes != int64(len(said)) || last > replied {
		t.Errorf("kept %+v, said %d bytes until %d, replied at %d", got.Kept, len(said), last, replied)
	}
}

func TestCancellingAStartIsAStopWithAResult(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started, note("$/cancelRequest", obj{"id": started["id"]}))
	if got, _ := e.result(started); got.Outcome != "stopped" || got.Cause != "user" {
		t.Errorf("%+v", got)
	}
}

// guards S1
func TestCancellingACommandThatAsksIsAStopWithAResult(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	e.session()
	for _, c := range []obj{
		command0("fermata.ask", obj{"prompt": "hi"}), command0("fermata.redirect", obj{"prompt": "again"}), command0("fermata.retry"),
	} {
		e.server.pumps.mu.Lock() // no turn begins before the cancel was read
		ask := e.req("workspace/executeCommand", c)
		e.send(ask, note("$/cancelRequest", obj{"id": ask["id"]}))
		e.call("fermata/session/list", nil, nil)
		e.server.pumps.mu.Unlock()
		got, _ := e.result(ask)
		m, _ := e.find("the end of the turn", func(m message) bool {
			ev := eventOf(m)
			return ev.Kind == "turn.ended" && strings.Contains(string(ev.Entry), got.Turn)
		})
		if got.Turn == "" || !strings.Contains(string(m.Params), `"outcome":"stopped"`) {
			t.Errorf("%v: %+v, %s", c, got, m.Params)
		}
	}
}

// Two requests with one id are against the rules; the answer to one must not end what the other waits for.
func TestAnAnswerToAnotherRequestOfTheSameIdStopsNoTurn(t *testing.T) {
	e := start(t, "reply\nsay Hello\nwait 300ms\nsay  there\n")
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	again := e.req("fermata/session/list", nil)
	again["id"] = started["id"]
	e.send(again)
	e.find("the list", func(m message) bool { return strings.Contains(string(m.Result), `"sessions"`) })
	m, _ := e.find("the end of the turn", func(m message) bool { return strings.Contains(string(m.Result), `"outcome"`) })
	if !strings.Contains(string(m.Result), `"outcome":"completed"`) {
		t.Errorf("%s", m.Result)
	}
}

// guards D3, D4
func TestARedirectReplacesTheRunningTurn(t *testing.T) {
	e := start(t, "reply\nsay The first attempt\nhang\nreply\nsay The second\n")
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("question")})
	e.send(started)
	e.find("the first answer", func(m message) bool { return strings.Contains(eventOf(m).Text, "attempt") })
	redirect := e.req("fermata/turn/redirect", obj{"prompt": text("shorter please")})
	e.send(redirect)
	old, _ := e.result(started)
	got, _ := e.result(redirect)
	if old.Outcome != "stopped" || got.Outcome != "completed" || old.Turn == got.Turn {
		t.Fatalf("%+v, %+v", old, got)
	}
	var in struct {
		Body         string
		Verified     bool
		Request      struct{ Turn string }
		Parts        []struct{ Kind, Role string }
		Previous     string
		SharedPrefix int64
	}
	e.call("fermata/request/input", nil, &in)
	if !in.Verified || in.Request.Turn != got.Turn || in.Previous == "" || in.SharedPrefix == 0 {
		t.Errorf("%+v", in)
	}
	for _, part := range []string{"question", "The first attempt", "shorter please"} {
		if !strings.Contains(in.Body, part) {
			t.Errorf("the model input lacks %q: %s", part, in.Body)
		}
	}
	// The redirect of an ended turn, of which the connection knows nothing but the id.
	again := e.req("fermata/turn/redirect", obj{"turn": old.Turn, "prompt": text("longer")})
	e.send(again)
	if r, _ := e.result(again); r.Outcome != "completed" || r.Session != got.Session {
		t.Errorf("%+v", r)
	}
}

func TestARepeatedStartJoinsTheFirst(t *testing.T) {
	e := start(t, "reply\nsay Once\nreply\nsay Twice\n")
	e.initialize(fermataClient)
	p := obj{"session": e.session(), "prompt": text("hi"), "clientId": "c1"}
	one, two := e.req("fermata/turn/start", p), e.req("fermata/turn/start", p)
	e.send(one, two)
	a, _ := e.result(one)
	b, _ := e.result(two)
	if a.Turn != b.Turn || len(e.model.Requests()) != 1 {
		t.Errorf("%+v, %+v, %d requests", a, b, len(e.model.Requests()))
	}
}

func TestASecondTurnInABusySessionIsRefusedByName(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	id := e.session()
	first := e.req("fermata/turn/start", obj{"session": id, "prompt": text("hi")})
	e.send(first)
	ev, _ := e.event("turn.started")
	var body struct{ Turn string }
	if err := json.Unmarshal(ev.Entry, &body); err != nil {
		t.Fatal(err)
	}
	m := e.refused("fermata/turn/start", obj{"session": id, "prompt": text("hi")}, -31002, "already runs")
	if m.Error.Data.Kind != "busy" || m.Error.Data.ID != body.Turn {
		t.Errorf("%+v", m.Error.Data)
	}
	e.call("fermata/turn/stop", nil, nil)
}

func TestAClosedInputStopsTheTurnAndCommitsIt(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	e.in.Close()
	got, _ := e.result(started) // a client that has only closed its input is still told
	said, _ := e.said(got.Turn)
	if got.Outcome != "stopped" || got.Cause != "client_gone" || got.Kept.Bytes != int64(len(said)) {
		t.Errorf("%+v, said %d bytes", got, len(said))
	}
	if err := <-e.served; !errors.Is(err, ErrNoShutdown) {
		t.Errorf("served: %v", err)
	}
}

func TestAClientThatIsGoneWithoutReadingDoesNotKeepTheDaemon(t *testing.T) {
	t.Parallel()
	e := start(t, endless)
	e.initialize(fermataClient)
	e.send(e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")}))
	e.event("delta")
	e.pause()
	gone := time.Now()
	e.in.Close()
	err := <-e.served
	if took := time.Since(gone); !errors.Is(err, ErrNoShutdown) || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	<-e.model.Requests()[0].Closed()
}

func TestAShutdownStopsWhatRuns(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	e.call("shutdown", nil, nil)
	if got, _ := e.result(started); got.Outcome != "stopped" || got.Cause != "shutdown" {
		t.Errorf("%+v", got)
	}
	e.refused("fermata/session/list", nil, -32600, "shutdown")
	e.send(note("exit", nil))
	if err := <-e.served; err != nil {
		t.Errorf("served: %v", err)
	}
}

func TestASignalStopsWhatRunsAsAShutdown(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	started := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("hi")})
	e.send(started)
	e.event("delta")
	e.signal(os.ErrProcessDone)
	if got, _ := e.result(started); got.Outcome != "stopped" || got.Cause != "shutdown" {
		t.Errorf("%+v", got)
	}
	if err := <-e.served; !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("served: %v", err)
	}
}

func TestEveryMethodOfTheProtocolIsServed(t *testing.T) {
	for _, m := range wire.Methods {
		if (requests[m.Name] != nil) == m.FromDaemon {
			t.Errorf("%s", m.Name)
		}
	}
}

func TestDeltasAreEncodedWithoutAllocating(t *testing.T) {
	ev := agent.Event{Session: "s_1", Delta: &agent.Delta{Turn: "t_1", Step: 1, Part: "text", Offset: 7, Text: "a \"quoted\"\n😀"}}
	var buf []byte
	buf = appendEvent(buf, ev)
	var got event
	if err := json.Unmarshal(buf, &got); err != nil || got.Text != ev.Delta.Text || got.Offset != 7 || got.Kind != "delta" {
		t.Errorf("%s: %v", buf, err)
	}
	if n := testing.AllocsPerRun(100, func() { buf = appendEvent(buf[:0], ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDelta(b *testing.B) {
	ev := agent.Event{Session: "s_1", Delta: &agent.Delta{Turn: "t_1", Step: 1, Part: "text", Text: "word "}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendEvent(buf[:0], ev)
	}
	_ = fmt.Sprint(len(buf))
}
