package lsp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"fermata/rpc/wire"
)

const wants = "reply\ncall run {\"command\":\"echo hi\"}\nreply\nsay done\n"

func TestPermissionIsAskedOfFermataClients(t *testing.T) {
	e := start(t, wants)
	e.answers["fermata/permission"] = func(json.RawMessage) any { return obj{"answer": "deny", "why": "not now"} }
	e.initialize(fermataClient)
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
	e.send(r)
	got, _ := e.result(r)
	m, _ := e.find("the question", func(m message) bool { return m.Method == "fermata/permission" })
	var q wire.PermissionParams
	if err := json.Unmarshal(m.Params, &q); err != nil || q.Command != "echo hi" || q.Tool != "run" || string(q.Turn) != got.Turn {
		t.Errorf("%s %v", m.Params, err)
	}
	if len(got.Tools) != 1 || got.Tools[0].State != "not_started" || got.Tools[0].Cause != "permission_denied" {
		t.Errorf("%+v", got)
	}
	if body := string(e.model.Requests()[1].Body); !strings.Contains(body, "not now") {
		t.Errorf("the model was not told why: %s", body)
	}
}

// A question that overtook its answer was about a call, or even of a turn, that the client did not know yet.
//
// guards S4
func TestAQuestionComesBehindTheAnswerThatMadeItsCall(t *testing.T) {
	const calls = 100
	e := start(t, strings.Repeat("reply\ncall run {\"command\":\"echo hi\"}\n", calls)+"reply\nsay done\n")
	e.answers["fermata/permission"] = func(json.RawMessage) any { return obj{"answer": "deny"} }
	e.initialize(fermataClient)
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
	e.send(r)
	if got, _ := e.result(r); len(got.Tools) < 40 {
		t.Fatalf("%+v", got)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	answers, questions := 0, 0
	for _, m := range e.got {
		switch {
		case m.Method == "fermata/event" && strings.Contains(string(m.Params), `"kind":"answer"`):
			answers++
		case m.Method == "fermata/permission":
			if questions++; questions > answers {
				t.Fatalf("question %d came before its answer", questions)
			}
		}
	}
}

func TestPermissionIsAskedOfOthersByAMessage(t *testing.T) {
	for title, want := range map[string]string{"Allow once": "done", "Allow for session": "done", "Deny": "not_started", "": "not_started"} {
		t.Run(title, func(t *testing.T) {
			e := start(t, wants)
			e.answers["window/showMessageRequest"] = func(json.RawMessage) any {
				if title == "" {
					return json.RawMessage("null")
				}
				return obj{"title": title}
			}
			e.initialize(obj{})
			r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
			e.send(r)
			if got, _ := e.result(r); len(got.Tools) != 1 || got.Tools[0].State != want {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}

// guards P2
func TestTheModelIsToldThatAQuestionWasNotAnswered(t *testing.T) {
	for method, capabilities := range map[string]obj{"fermata/permission": fermataClient, "window/showMessageRequest": {}} {
		e := start(t, wants)
		e.answers[method] = func(json.RawMessage) any { return 5 }
		e.initialize(capabilities)
		r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
		e.send(r)
		if got, _ := e.result(r); len(got.Tools) != 1 || got.Tools[0].State != "not_started" {
			t.Errorf("%s: %+v", method, got)
		}
		if body := string(e.model.Requests()[1].Body); !strings.Contains(body, "the editor gave no answer") {
			t.Errorf("%s: %s", method, body)
		}
	}
}

// guards S14, S7
func TestAStopAnswersAPermissionQuestion(t *testing.T) {
	e := start(t, wants)
	e.initialize(fermataClient)
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
	e.send(r)
	q, _ := e.find("the question", func(m message) bool { return m.Method == "fermata/permission" })
	e.call("fermata/turn/stop", nil, nil)
	if got, _ := e.result(r); got.Outcome != "stopped" || got.Tools[0].State != "not_started" || got.Tools[0].Cause != "stopped_by_user" {
		t.Errorf("%+v", got)
	}
	e.find("the cancel of the question", func(m message) bool {
		return m.Method == "$/cancelRequest" && string(m.Params) == fmt.Sprintf(`{"id":%s}`, q.ID)
	})
}

func TestProgressIsReportedAndItsCancelIsAStop(t *testing.T) {
	e := start(t, endless)
	e.answers["window/workDoneProgress/create"] = func(json.RawMessage) any { return json.RawMessage("null") }
	e.initialize(obj{"window": obj{"workDoneProgress": true}})
	id := e.session()
	for _, own := range []any{nil, "mine", 7} {
		r := e.req("fermata/turn/start", obj{"session": id, "prompt": text("x"), "workDoneToken": own})
		e.send(r)
		var p struct {
			Token json.RawMessage
			Value struct {
				Kind, Message string
				Cancellable   bool
			}
		}
		progress := func(kind, token string) message {
			m, _ := e.find("progress "+kind, func(m message) bool {
				if m.Method != "$/progress" {
					return false
				}
				_ = json.Unmarshal(m.Params, &p)
				return p.Value.Kind == kind && (token == "" || token == string(p.Token))
			})
			return m
		}
		progress("begin", "")
		token := string(p.Token)
		if own != nil {
			want, _ := json.Marshal(own)
			progress("begin", string(want))
			token = string(want)
		}
		if !p.Value.Cancellable {
			t.Errorf("%+v", p)
		}
		progress("report", token)
		e.send(note("window/workDoneProgress/cancel", obj{"token": json.RawMessage(token)}))
		if got, _ := e.result(r); got.Outcome != "stopped" {
			t.Errorf("%+v", got)
		}
		progress("end", token)
		if !strings.HasPrefix(p.Value.Message, "stopped, ") {
			t.Errorf("%+v", p)
		}
		e.mu.Lock()
		e.got = nil
		e.mu.Unlock()
	}
}

func command0(name string, args ...obj) obj { return obj{"command": name, "arguments": args} }

type commandResult struct {
	Session, Turn, Request, URI, Bytes string
	Shown                              bool
}

// fileOf is the content of a file that a command wrote, which is for the user alone.
func (e *editor) fileOf(uri string) string {
	e.t.Helper()
	path, ok := filePath(uri)
	if !ok || !strings.HasPrefix(path, e.state) {
		e.t.Fatalf("%s is not in the state folder", uri)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		e.t.Errorf("%v %v", info, err)
	}
	return string(b)
}

// guards S2
func TestCommandsWorkWithoutArguments(t *testing.T) {
	e := start(t, "reply\nsay A partial\nhang\nreply\nsay The better answer\n")
	e.answers["window/showDocument"] = func(json.RawMessage) any { return obj{"success": true} }
	e.initialize(obj{"window": obj{"showDocument": obj{"support": true}}})
	e.refused("workspace/executeCommand", command0("fermata.stop"), -31003, "")
	e.refused("workspace/executeCommand", command0("fermata.redirect"), -31001, "nothing was asked here yet")

	// Ask: a file to write the question in.
	var file commandResult
	e.call("workspace/executeCommand", obj{"command": "fermata.ask"}, &file)
	prompt := e.fileOf(file.URI)
	if !file.Shown || !strings.Contains(prompt, "save") {
		t.Errorf("%+v %q", file, prompt)
	}
	e.send(didOpen(file.URI, prompt), note("textDocument/didSave", obj{"textDocument": obj{"uri": file.URI}})) // nothing written yet
	e.send(note("textDocument/didSave", obj{"textDocument": obj{"uri": file.URI}, "text": prompt + "my question\n"}))
	ev, _ := e.event("turn.started")
	if !strings.Contains(string(ev.Entry), `"my question"`) {
		t.Errorf("%s", ev.Entry)
	}
	e.find("the answer", func(m message) bool { return strings.Contains(eventOf(m).Text, "partial") })

	// Redirect: the turn is stopped at once, then a file to write what it should do instead.
	var lane commandResult
	e.call("workspace/executeCommand", command0("fermata.redirect"), &lane)
	if !strings.Contains(e.fileOf(lane.URI), "2 words kept") || lane.Turn == "" {
		t.Errorf("%+v %q", lane, e.fileOf(lane.URI))
	}
	e.send(note("textDocument/didSave", obj{"textDocument": obj{"uri": lane.URI}, "text": "do better"}))
	e.find("the second answer", func(m message) bool { return eventOf(m).Kind == "delta" && strings.Contains(eventOf(m).Text, "better") })
	e.find("the transcript", func(m message) bool {
		return m.Method == "window/showDocument" && strings.Contains(string(m.Params), "/transcripts/")
	})

	var shown commandResult
	e.call("workspace/executeCommand", command0("fermata.openTranscript"), &shown)
	if md := e.fileOf(shown.URI); !strings.Contains(md, "my question") || !strings.Contains(md, "The better answer") || !shown.Shown {
		t.Errorf("%+v %s", shown, md)
	}
	e.call("workspace/executeCommand", command0("fermata.showModelInput"), &shown)
	if e.fileOf(shown.Bytes) != string(e.model.Requests()[1].Body) || !json.Valid([]byte(e.fileOf(shown.URI))) { // guards M7
		t.Errorf("%+v", shown)
	}
}

func TestTheAnswerToARetryIsShownLikeTheOneToAQuestion(t *testing.T) {
	e := start(t, "reply\nstatus 400\nbody no\nreply\nsay Better\n")
	e.answers["window/showDocument"] = func(json.RawMessage) any { return obj{"success": true} }
	e.initialize(obj{"window": obj{"showDocument": obj{"support": true}}})
	var file commandResult
	e.call("workspace/executeCommand", command0("fermata.ask"), &file)
	e.send(note("textDocument/didSave", obj{"textDocument": obj{"uri": file.URI}, "text": "my question"}))
	transcriptWith := func(said string) {
		m, i := e.find("the transcript", func(m message) bool {
			return m.Method == "window/showDocument" && strings.Contains(string(m.Params), "/transcripts/")
		})
		var p struct{ URI string }
		if err := json.Unmarshal(m.Params, &p); err != nil || !strings.Contains(e.fileOf(p.URI), said) {
			t.Errorf("%s lacks %q", m.Params, said)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = e.got[i+1:]
	}
	transcriptWith("my question")
	e.call("workspace/executeCommand", command0("fermata.retry"), nil)
	transcriptWith("Better")
}

// guards S2
func TestAskAndStopInOneReadByCommands(t *testing.T) {
	e := start(t, endless)
	e.initialize(obj{})
	ask := e.req("workspace/executeCommand", command0("fermata.ask", obj{"prompt": "hi"}))
	stop := e.req("workspace/executeCommand", command0("fermata.stop"))
	e.send(ask, stop)
	got, _ := e.result(stop)
	m, _ := e.reply(ask)
	var asked commandResult
	if err := json.Unmarshal(m.Result, &asked); err != nil || asked.Turn != got.Turn || got.Outcome != "stopped" {
		t.Errorf("%s %+v", m.Result, got)
	}
}

func TestAQuestionWithoutAnAnswerIsOfferedBackInTheLane(t *testing.T) { // guards S6
	e := start(t, "reply\nheaders hang\n")
	e.initialize(obj{})
	var asked, lane commandResult
	e.call("workspace/executeCommand", command0("fermata.ask", obj{"prompt": "my long question"}), &asked)
	e.call("workspace/executeCommand", command0("fermata.redirect"), &lane)
	if got := e.fileOf(lane.URI); promptText(got) != "my long question" || lane.Shown {
		t.Errorf("%q", got)
	}
}

func TestTheLaneOpensForATurnThatHasEnded(t *testing.T) {
	e := start(t, "reply\nsay A partial answer\nhang\n")
	e.initialize(fermataClient)
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
	e.send(r)
	e.find("the answer", func(m message) bool { return strings.Contains(eventOf(m).Text, "answer") })
	e.call("fermata/turn/stop", nil, nil)
	got, _ := e.result(r)
	var lane commandResult
	e.call("workspace/executeCommand", command0("fermata.redirect"), &lane)
	if lane.Turn != got.Turn || !strings.Contains(e.fileOf(lane.URI), "3 words kept") {
		t.Errorf("%+v", lane)
	}
}

func TestControlsStandWhereItWasAsked(t *testing.T) {
	e := start(t, "reply\nsay one two three\nhang\nreply\nsay x\n")
	refreshed := make(chan struct{}, 100)
	e.answers["workspace/codeLens/refresh"] = func(json.RawMessage) any { refreshed <- struct{}{}; return json.RawMessage("null") }
	e.initialize(obj{"workspace": obj{"codeLens": obj{"refreshSupport": true}}, "textDocument": obj{"codeAction": obj{"codeActionLiteralSupport": obj{}}}})
	uri := fileURI(e.root + "/a.txt")
	e.send(didOpen(uri, "l0\nl1\nl2\nl3\n"))
	lenses := func() (titles, commands []string, line uint32) {
		var got []struct {
			Range   wire.Range
			Command struct{ Title, Command string }
		}
		e.call("textDocument/codeLens", obj{"textDocument": obj{"uri": uri}}, &got)
		for _, l := range got {
			titles, commands, line = append(titles, l.Command.Title), append(commands, l.Command.Command), l.Range.Start.Line
		}
		return titles, commands, line
	}
	actions := func() (titles []string) {
		var got []struct {
			Title, Kind string
			Command     struct{ Command string }
		}
		e.call("textDocument/codeAction", obj{"textDocument": obj{"uri": uri}, "range": wire.Range{Start: at(2, 0), End: at(2, 2)}, "context": obj{"diagnostics": []any{}}}, &got)
		for _, a := range got {
			if a.Kind != "fermata" || a.Command.Command == "" {
				t.Errorf("%+v", a)
			}
			titles = append(titles, a.Title)
		}
		return titles
	}
	if titles, _, _ := lenses(); titles != nil {
		t.Errorf("before: %q", titles)
	}
	if got := actions(); strings.Join(got, "|") != "Ask Fermata About This" {
		t.Errorf("before: %q", got)
	}
	ask := command0("fermata.ask", obj{"prompt": "hi", "uri": uri, "range": wire.Range{Start: at(2, 0), End: at(2, 2)}})
	e.call("workspace/executeCommand", ask, nil)
	e.find("all words", func(m message) bool { return strings.Contains(eventOf(m).Text, "three") })
	if !strings.Contains(string(e.model.Requests()[0].Body), "l2") {
		t.Error("the selection is not part of the prompt")
	}
	<-refreshed
	e.send(didChange(uri, 2, obj{"range": wire.Range{Start: at(0, 0), End: at(0, 0)}, "text": "new\n"}))
	titles, commands, line := lenses()
	if strings.Join(titles, "|") != "■ Stop · 3 words" || commands[0] != "fermata.stop" || line != 3 {
		t.Errorf("running: %q %q at %d", titles, commands, line)
	}
	if got := actions(); strings.Join(got, "|") != "Ask Fermata About This|Stop (3 words)|Redirect…" {
		t.Errorf("running: %q", got)
	}
	e.call("workspace/executeCommand", command0("fermata.stop"), nil)
	if titles, _, _ := lenses(); strings.Join(titles, "|") != "Stopped here|Redirect|Transcript|Model input" {
		t.Errorf("stopped: %q", titles)
	}
	if got := actions(); strings.Join(got, "|") != "Ask Fermata About This|Redirect…" {
		t.Errorf("stopped: %q", got)
	}
	redirect := e.req("fermata/turn/redirect", obj{"prompt": text("again")})
	e.send(redirect)
	if got, _ := e.result(redirect); got.Outcome != "completed" {
		t.Errorf("%+v", got)
	}
	if titles, _, _ := lenses(); titles != nil {
		t.Errorf("redirected and answered: %q", titles)
	}
}
