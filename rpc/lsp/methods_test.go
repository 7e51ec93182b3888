package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent"
)

func TestTheLifeCycleIsKept(t *testing.T) {
	e := start(t, endless)
	e.refused("fermata/session/list", nil, -32002, "initialize first")
	e.send(note("textDocument/didOpen", obj{"textDocument": obj{"uri": "file:///a", "text": "x", "version": 1}}))
	var r struct {
		ServerInfo   struct{ Name, Version string }
		Capabilities struct {
			PositionEncoding       string
			TextDocumentSync       struct{ Change int }
			ExecuteCommandProvider struct{ Commands []string }
			CodeActionProvider     bool
			CodeLensProvider       obj
			Experimental           struct{ Fermata struct{ Protocol int } }
		}
	}
	e.call("initialize", obj{"processId": 99999999999, "rootUri": nil, "capabilities": obj{
		"general": obj{"positionEncodings": []string{"utf-16", "utf-8"}}, "experimental": "anything"}}, &r)
	c := r.Capabilities
	if r.ServerInfo.Name != "fermata" || r.ServerInfo.Version != "1.2.3" || c.PositionEncoding != "utf-8" ||
		c.TextDocumentSync.Change != 2 || len(c.ExecuteCommandProvider.Commands) != 9 || !c.CodeActionProvider ||
		c.CodeLensProvider == nil || c.Experimental.Fermata.Protocol != 1 {
		t.Errorf("%+v", r)
	}
	e.refused("initialize", obj{"capabilities": obj{}}, -32600, "before")
	e.refused("textDocument/hover", nil, -32601, "textDocument/hover")
	e.refused("fermata/turn/undo", obj{}, -32601, "turn/undo")
	e.send(note("$/setTrace", obj{"value": "off"}), note("no/such", 7), note("textDocument/didChange", 7),
		note("$/cancelRequest", obj{"id": "none"}), note("window/workDoneProgress/cancel", obj{"token": 7}))
	e.call("fermata/session/list", nil, nil)
	e.call("shutdown", nil, nil)
	e.send(note("exit", nil))
	if err := <-e.served; err != nil {
		t.Error(err)
	}
}

// Clients write their capabilities by hand, and an empty table of Lua is an array as well.
func TestACapabilityOfAnotherTypeIsNotThere(t *testing.T) {
	for _, capabilities := range []string{`[]`, `null`, `"x"`, `{"window":[],"workspace":{"codeLens":true},"general":{"positionEncodings":["utf-8"]}}`} {
		e := start(t, endless)
		var r struct {
			Capabilities struct{ PositionEncoding string }
		}
		e.call("initialize", obj{"rootUri": nil, "capabilities": json.RawMessage(capabilities)}, &r)
		want := "utf-16"
		if strings.Contains(capabilities, "utf-8") {
			want = "utf-8"
		}
		if r.Capabilities.PositionEncoding != want {
			t.Errorf("%s: %+v, want %s", capabilities, r, want)
		}
	}
}

func TestBrokenMessagesDoNotEndTheConnection(t *testing.T) {
	e := start(t, endless)
	e.initialize(obj{})
	for _, bad := range []string{"garbage\n", "Content-Length: 3\r\n\r\n{x}", "Content-Length: 2\r\n\r\n[]", "Content-Length: x\r\n\r\n"} {
		if _, err := e.in.Write([]byte(bad)); err != nil {
			t.Fatal(err)
		}
	}
	e.call("fermata/session/list", nil, nil)
}

func TestWrongParamsAreNamed(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	id := e.session()
	for _, tt := range []struct {
		method string
		params any
		want   string
	}{
		{"fermata/session/new", obj{"title": 7}, "title: expected string, got number"},
		{"fermata/session/new", obj{"workspace": "relative"}, "workspace: expected an absolute path"},
		{"fermata/session/list", obj{"limit": "x"}, "limit: expected integer, got string"},
		{"fermata/session/open", nil, "session: is missing"},
		{"fermata/turn/start", obj{"prompt": text("x")}, "session: is missing"},
		{"fermata/turn/start", obj{"session": id}, "prompt: expected at least one part"},
		{"fermata/turn/start", obj{"session": id, "prompt": []any{obj{"type": "text", "text": 7}}}, "prompt[0].text: expected string, got number"},
		{"fermata/turn/start", obj{"session": id, "prompt": []any{obj{"type": "image"}}}, "prompt[0].type: expected"},
		{"fermata/turn/start", obj{"session": id, "prompt": []any{obj{"type": "file"}}}, "prompt[0].uri: a file needs"},
		{"fermata/turn/start", obj{"session": id, "prompt": []any{obj{"type": "file", "path": "../x"}}}, "prompt[0]: "},
		{"fermata/turn/start", obj{"session": id, "prompt": []any{obj{"type": "file", "path": "none.txt"}}}, "none.txt"},
		{"fermata/turn/stop", obj{"turn": obj{}}, "turn: expected string, got object"},
		{"fermata/turn/redirect", obj{"prompt": "x"}, "prompt: expected array, got string"},
		{"fermata/transcript/render", obj{"format": "pdf"}, "format: expected"},
		{"fermata/transcript/render", obj{"until": -1}, "until: expected"},
		{"fermata/request/input", obj{"request": 7}, "request: expected string, got number"},
		{"workspace/executeCommand", obj{"command": "fermata.ask", "arguments": []any{obj{"prompt": []any{obj{"type": 7}}}}}, "prompt[0].type: expected string"},
		{"workspace/executeCommand", obj{"command": "fermata.stop", "arguments": []any{obj{"turn": 7}}}, "arguments[0].turn: expected string"},
		{"workspace/executeCommand", obj{"command": "fermata.queue"}, "fermata.queue"},
		{"textDocument/codeLens", obj{"textDocument": 7}, "textDocument: expected object"},
	} {
		e.refused(tt.method, tt.params, -32602, tt.want)
	}
	if _, err := os.Stat(filepath.Join(e.root, "x")); err == nil {
		t.Error("a file appeared")
	}
}

func TestUnknownIdsAreNamed(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	for _, tt := range []struct {
		method string
		params obj
		kind   string
		id     string
	}{
		{"fermata/session/open", obj{"session": "s_x"}, "unknown_session", "s_x"},
		{"fermata/turn/start", obj{"session": "s_x", "prompt": text("x")}, "unknown_session", "s_x"},
		{"fermata/turn/stop", obj{"turn": "t_x"}, "unknown_turn", "t_x"},
		{"fermata/turn/redirect", obj{"turn": "t_x", "prompt": text("x")}, "unknown_turn", "t_x"},
		{"fermata/transcript/render", obj{"session": "s_x"}, "unknown_session", "s_x"},
		{"fermata/request/list", obj{"session": "s_x"}, "unknown_session", "s_x"},
		{"fermata/request/input", obj{"request": "r_x"}, "unknown_request", "r_x"},
		{"fermata/request/input", nil, "unknown_session", ""},
		{"fermata/turn/redirect", obj{"prompt": text("x")}, "unknown_turn", ""},
	} {
		m := e.refused(tt.method, tt.params, -31001, "")
		if m.Error.Data.Kind != tt.kind || m.Error.Data.ID != tt.id {
			t.Errorf("%s: %+v, want %s %q", tt.method, m.Error.Data, tt.kind, tt.id)
		}
	}
}

func TestASessionIsListedOpenedAndRendered(t *testing.T) {
	e := start(t, "reply\nsay The answer\nusage 10 5 3\n")
	e.initialize(fermataClient)
	var made struct {
		Session, Workspace, Title string
		Seq                       int64
	}
	e.call("fermata/session/new", obj{"title": "A title"}, &made)
	if made.Workspace != e.root || made.Title != "A title" || made.Seq != 1 {
		t.Errorf("%+v", made)
	}
	e.call("fermata/turn/start", obj{"session": made.Session, "prompt": text("the question")}, nil)

	var list struct {
		Sessions []struct{ Session, LastOutcome string }
	}
	e.call("fermata/session/list", obj{"workspace": fileURI(e.root)}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].LastOutcome != "completed" {
		t.Errorf("%+v", list)
	}
	var open struct {
		Session struct{ Seq int64 }
		Entries []struct {
			Seq   int64
			Kind  string
			Entry obj
		}
		Running string
	}
	e.call("fermata/session/open", obj{"session": made.Session}, &open)
	for i, entry := range open.Entries {
		if entry.Seq != int64(i+1) || entry.Kind == "" || entry.Entry == nil {
			t.Errorf("entry %d: %+v", i, entry)
		}
	}
	if n := len(open.Entries); n == 0 || open.Entries[n-1].Kind != "turn.ended" || open.Session.Seq != int64(n) || open.Running != "" {
		t.Errorf("%+v", open)
	}
	since := open.Session.Seq - 1
	e.call("fermata/session/open", obj{"session": made.Session, "since": since}, &open)
	if len(open.Entries) != 1 || open.Entries[0].Seq != since+1 {
		t.Errorf("since %d: %+v", since, open.Entries)
	}

	var md struct {
		Text  string
		Lines []struct{ Line, Seq int }
	}
	e.call("fermata/transcript/render", nil, &md)
	if !strings.Contains(md.Text, "the question") || !strings.Contains(md.Text, "The answer") || len(md.Lines) == 0 {
		t.Errorf("%+v", md)
	}
	e.call("fermata/transcript/render", obj{"session": made.Session, "format": "json"}, &md)
	lines := strings.Split(strings.TrimSpace(md.Text), "\n")
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("%q", l)
		}
	}
	if len(lines) != len(md.Lines) {
		t.Errorf("%d lines, %d references", len(lines), len(md.Lines))
	}
	var reqs struct {
		Requests []struct {
			Request, Outcome string
			Bytes            int64
			Usage            struct{ Input int64 }
		}
	}
	e.call("fermata/request/list", nil, &reqs)
	if len(reqs.Requests) != 1 || reqs.Requests[0].Outcome != "complete" || reqs.Requests[0].Usage.Input != 10 {
		t.Errorf("%+v", reqs)
	}
	var in struct {
		Body  string
		Bytes int64
	}
	e.call("fermata/request/input", obj{"request": reqs.Requests[0].Request}, &in)
	if in.Body != string(e.model.Requests()[0].Body) || in.Bytes != reqs.Requests[0].Bytes { // guards P3, M7
		t.Errorf("%+v", in)
	}
}

func TestNoEventOfASessionComesBeforeTheReplyThatNamesIt(t *testing.T) {
	e := start(t, "reply\nsay x\n")
	e.initialize(fermataClient)
	r := e.req("fermata/session/new", nil)
	e.send(r)
	m, i := e.reply(r)
	var s struct{ Session string }
	_ = json.Unmarshal(m.Result, &s)
	e.call("fermata/turn/start", obj{"session": s.Session, "prompt": text("x")}, nil)
	for k, m := range e.got[:i] {
		if m.Method == "fermata/event" {
			t.Errorf("message %d is an event", k)
		}
	}
}

func TestAPromptReadsWhatItNames(t *testing.T) {
	e := start(t, "reply\nsay ok\n")
	e.initialize(fermataClient)
	write := func(name, content string) string {
		path := filepath.Join(e.root, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	disk := write("on disk ä.txt", "l1\nl2\nl3\n")
	open := write("open.txt", "stale")
	e.send(note("textDocument/didOpen", obj{"textDocument": obj{"uri": fileURI(open), "version": 1, "text": "one\ntwo 😀 two\nthree\n"}}),
		note("textDocument/didChange", obj{"textDocument": obj{"uri": fileURI(open), "version": 2}, "contentChanges": []any{
			obj{"range": obj{"start": obj{"line": 1, "character": 7}, "end": obj{"line": 1, "character": 10}}, "text": "2"}}}))
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": []any{
		obj{"type": "text", "text": "look"},
		obj{"type": "file", "uri": fileURI(disk)},
		obj{"type": "file", "path": "on disk ä.txt", "range": obj{"start": obj{"line": 1, "character": 1}, "end": obj{"line": 2, "character": 0}}},
		obj{"type": "file", "uri": fileURI(disk), "range": obj{"start": obj{"line": 1, "character": 1}, "end": obj{"line": 4294967295, "character": 4294967295}}},
		obj{"type": "selection", "uri": fileURI(open), "range": obj{"start": obj{"line": 1, "character": 4}, "end": obj{"line": 1, "character": 8}}},
		obj{"type": "selection", "uri": "untitled:x", "text": "given", "range": obj{"start": obj{"line": 4, "character": 0}, "end": obj{"line": 6, "character": 0}}},
	}})
	e.send(r)
	got, _ := e.result(r)
	want := []struct {
		path, text string
		start, end int
	}{{"", "look", 0, 0}, {"on disk ä.txt", "l1\nl2\nl3\n", 1, 3}, {"on disk ä.txt", "l2\n", 2, 2}, {"on disk ä.txt", "l2\nl3\n", 2, 3}, {"open.txt", "😀 2", 2, 2}, {"untitled:x", "given", 5, 6}}
	for i, w := range want {
		p := got.Prompt[i]
		if p.Path != w.path || p.Text != w.text || p.Start != w.start || p.End != w.end {
			t.Errorf("part %d: %+v, want %+v", i, p, w)
		}
	}
}

// JavaScript's strings, and so JSON, can hold one half of a surrogate pair.
func TestWhatHoldsHalfACharacterIsNotLost(t *testing.T) {
	e := start(t, "reply\nsay ok\n")
	e.initialize(fermataClient)
	half := func(before, after string) json.RawMessage {
		return json.RawMessage(`"` + before + `\ud83d` + after + `"`)
	}
	uri := fileURI(filepath.Join(e.root, "a.txt"))
	at := obj{"line": 0, "character": 3}
	e.send(note("textDocument/didOpen", obj{"textDocument": obj{"uri": uri, "version": 1, "text": half("a", "bd")}}),
		note("textDocument/didChange", obj{"textDocument": obj{"uri": uri, "version": 2}, "contentChanges": []any{
			obj{"range": obj{"start": at, "end": at}, "text": half("c", "")}}}))
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": []any{
		obj{"type": "text", "text": half("what is ", "?")}, obj{"type": "file", "uri": uri}}})
	e.send(r)
	got, _ := e.result(r)
	if got.Prompt[0].Text != "what is \ufffd?" || got.Prompt[1].Text != "a\ufffdbc\ufffdd" {
		t.Errorf("%+q, %+q", got.Prompt[0].Text, got.Prompt[1].Text)
	}
}

func TestNothingOfADeletedSessionIsKept(t *testing.T) {
	e := start(t, endless)
	e.initialize(fermataClient)
	var s struct{ Session string }
	e.call("fermata/session/new", obj{"model": "m"}, &s)
	e.call("fermata/session/delete", obj{"session": s.Session}, nil)
	e.server.pumps.mu.Lock()
	defer e.server.pumps.mu.Unlock()
	if subs, models := len(e.server.pumps.subs), len(e.server.models.byID); subs+models > 0 {
		t.Errorf("%d subscriptions, %d models", subs, models)
	}
}

// A log that was salvaged can have fewer entries than the client has seen.
func TestAClientThatKnowsMoreThanTheLogIsToldWhatFollows(t *testing.T) {
	e := start(t, "reply\nsay ok\n")
	e.initialize(fermataClient)
	e.call("fermata/session/list", nil, nil)
	a, _, err := e.server.backend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Workspace: e.root}) // the client does not follow it
	if err != nil {
		t.Fatal(err)
	}
	e.call("fermata/session/open", obj{"session": s.ID(), "since": 1000}, nil)
	e.call("fermata/turn/start", obj{"session": s.ID(), "prompt": text("x")}, nil)
	e.event("turn.ended")
}
