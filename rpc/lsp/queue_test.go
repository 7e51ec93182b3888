package lsp

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/rpc/wire"
)

// queued decodes the reply to a turn/queue.
func (e *editor) queued(request obj) (r wire.TurnQueueResult) {
	e.t.Helper()
	m, _ := e.reply(request)
	if m.Error != nil {
		e.t.Fatalf("%v: %+v", request["method"], *m.Error)
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

// stopped decodes the reply to a turn/stop, with what it hands back.
func (e *editor) stopped(request obj) (r wire.TurnResult) {
	e.t.Helper()
	m, _ := e.reply(request)
	if m.Error != nil {
		e.t.Fatalf("%v: %+v", request["method"], *m.Error)
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		e.t.Fatal(err)
	}
	return r
}

// guards S2, S10
func TestAStopInTheSameReadAsAMessageHandsItBack(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	id := e.session()
	for range 10 {
		started := e.req("fermata/turn/start", obj{"session": id, "prompt": text("hi")})
		queue := e.req("fermata/turn/queue", obj{"session": id, "prompt": text("later"), "unknown": 1})
		stop := e.req("fermata/turn/stop", nil)
		e.send(started, queue, stop)
		a, b, q := e.stopped(started), e.stopped(stop), e.queued(queue)
		if a.Outcome != "stopped" || len(a.Returned) != 1 || len(b.Returned) != 1 || b.Returned[0].Message != q.Message ||
			b.Returned[0].Prompt[0].Text != "later" || b.Returned[0].Cause != "stopped_by_user" {
			t.Fatalf("start %+v, stop %+v, queue %+v", a, b, q)
		}
	}
	for _, r := range e.model.Requests() {
		if strings.Contains(string(r.Body), "later") {
			t.Errorf("it was sent: %s", r.Body)
		}
	}
}

// guards S10: acknowledged after its entry was told
func TestAQueuedMessageIsToldAndThenAcknowledged(t *testing.T) {
	e := start(t, "reply\nsay First\nhang\nreply\nsay Second\nhang\n")
	e.answers["window/workDoneProgress/create"] = func(json.RawMessage) any { return json.RawMessage("null") }
	e.initialize(obj{"window": obj{"workDoneProgress": true}})
	id := e.session()
	first := e.req("fermata/turn/start", obj{"session": id, "prompt": text("hi")})
	e.send(first)
	e.event("delta")
	queue := e.req("fermata/turn/queue", obj{"session": id, "prompt": text("later"), "clientId": "k1"})
	e.send(queue)
	q := e.queued(queue)
	_, replied := e.reply(queue)
	if _, told := e.event("message.queued"); q.State != "queued" || q.Turn == "" || told > replied {
		t.Errorf("%+v, told at %d, acknowledged at %d", q, told, replied)
	}
	e.call("fermata/turn/stop", nil, nil)
	if r := e.stopped(first); len(r.Returned) != 1 || r.Returned[0].ClientID != "k1" {
		t.Errorf("%+v", r)
	}
	e.event("message.returned")
	again := e.req("fermata/turn/queue", obj{"session": id, "prompt": text("later"), "clientId": "k1"})
	e.send(again)
	if r := e.queued(again); r.State != "returned" || r.Message != q.Message || r.Cause != "stopped_by_user" {
		t.Errorf("repeated: %+v", r)
	}

	// Where no turn runs it starts one, whose progress is reported and can be cancelled.
	next := e.req("fermata/turn/queue", obj{"session": id, "prompt": text("now")})
	e.send(next)
	r := e.queued(next)
	if r.State != "started" || r.Turn == "" {
		t.Errorf("%+v", r)
	}
	progress := func(kind string) {
		e.find("the "+kind+" of its progress", func(m message) bool {
			return m.Method == "$/progress" && strings.Contains(string(m.Params), string(r.Turn)) && strings.Contains(string(m.Params), `"`+kind+`"`)
		})
	}
	progress("begin")
	e.send(note("window/workDoneProgress/cancel", obj{"token": "fermata/" + string(r.Turn)}))
	progress("end")
	e.refused("fermata/turn/queue", obj{"session": "s_none", "prompt": text("x")}, -31001, "no such session")
	e.refused("fermata/turn/queue", obj{"session": id, "prompt": text(" ")}, -32602, "prompt")
}

// guards F3, F4: with nothing but the standard
func TestAFailedTurnOffersRetryAndKeep(t *testing.T) {
	e := start(t, "reply\nsay one two\nevent {\"error\":{\"message\":\"no\",\"code\":400}}\nreply\nstatus 400\nreply\nsay three\n")
	e.initialize(obj{"textDocument": obj{"codeAction": obj{"codeActionLiteralSupport": obj{}}}})
	e.refused("workspace/executeCommand", command0("fermata.keep"), -31001, "")
	e.refused("workspace/executeCommand", command0("fermata.retry"), -31001, "")
	uri := fileURI(e.root + "/a.txt")
	e.send(didOpen(uri, "l0\nl1\n"))
	titles := func(method string) string {
		var got []struct {
			Title   string
			Command json.RawMessage
		}
		e.call(method, obj{"textDocument": obj{"uri": uri}, "range": wire.Range{}, "context": obj{}}, &got)
		var all []string
		for _, l := range got {
			if l.Title == "" {
				var c struct{ Title string }
				_ = json.Unmarshal(l.Command, &c)
				l.Title = c.Title
			}
			all = append(all, l.Title)
		}
		return strings.Join(all, " · ")
	}
	ended := func(n int) {
		e.await("the end of the turn", func() bool {
			seen := 0
			for _, m := range e.got {
				if eventOf(m).Kind == "turn.ended" {
					seen++
				}
			}
			return seen >= n
		})
	}
	var asked commandResult
	e.call("workspace/executeCommand", command0("fermata.ask", obj{"prompt": "hi", "uri": uri, "range": wire.Range{Start: at(1, 0), End: at(1, 0)}}), &asked)
	ended(1)
	if got := titles("textDocument/codeLens"); got != "Failed · Retry · Keep · Transcript" {
		t.Errorf("lens: %s", got)
	}
	if got := titles("textDocument/codeAction"); got != "Ask Fermata About This · Retry · Keep" {
		t.Errorf("actions: %s", got)
	}
	var kept wire.TurnAdoptResult
	e.call("workspace/executeCommand", command0("fermata.keep"), &kept)
	if kept.Kept.Words != 2 || string(kept.Turn) != asked.Turn {
		t.Errorf("%+v", kept)
	}
	if got := titles("textDocument/codeLens"); got != "Failed · Retry · Transcript" {
		t.Errorf("kept: %s", got)
	}
	e.refused("fermata/turn/adopt", nil, -31010, "kept already")
	var retried commandResult
	e.call("workspace/executeCommand", command0("fermata.retry"), &retried) // rejected: there is nothing to keep
	ended(2)
	if got := titles("textDocument/codeLens"); got != "Failed · Retry · Transcript" || retried.Turn == asked.Turn {
		t.Errorf("failed again: %s, %+v", got, retried)
	}
	e.refused("fermata/turn/adopt", obj{"turn": asked.Turn}, -31010, "not the session's last")
	e.refused("fermata/turn/retry", obj{"turn": asked.Turn}, -31010, "not the session's last")
	again := e.req("fermata/turn/retry", obj{})
	e.send(again)
	if r, _ := e.result(again); r.Outcome != "completed" || r.Session != asked.Session {
		t.Errorf("%+v", r)
	}
	if got := titles("textDocument/codeLens"); got != "" {
		t.Errorf("answered: %s", got)
	}
	m := e.refused("fermata/turn/retry", nil, -31010, "completed")
	if m.Error.Data.Kind != "nothing_to_retry" {
		t.Errorf("%+v", m.Error.Data)
	}
	if n := strings.Count(string(e.model.Requests()[2].Body), `"one two"`); n != 1 {
		t.Errorf("the last input holds what was kept %d times: %s", n, e.model.Requests()[2].Body)
	}
}
