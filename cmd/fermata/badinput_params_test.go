package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// Each case is a request that is JSON-RPC but makes no sense. The error names the field, or the session or turn, and what
// there is instead. Nothing is recorded, and the session goes on.
//
// guards the protocol's errors, P2
func TestARequestThatMakesNoSenseIsToldWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	b := newBadInput(t, "", peer.Options{})
	type object = map[string]any
	text := peer.Text("Hello.")
	ask := func(more object) object {
		p := object{"session": b.session, "prompt": text}
		maps.Copy(p, more)
		return p
	}
	const start, stop, command = "fermata/turn/start", "fermata/turn/stop", "workspace/executeCommand"
	run := func(name string, args ...any) object { return object{"command": name, "arguments": args} }
	for _, c := range []struct {
		name, method string
		params       any
		code         int
		says         string
		kind         string // of the data
		id           string // in the data
	}{
		{"an unknown method", "fermata/turn/begin", nil, -32601, `no method "fermata/turn/begin"`, "", ""},
		{"an unknown standard method", "textDocument/hover", object{}, -32601, `"textDocument/hover"`, "", ""},
		{"a method without a name", "", nil, -32601, `no method ""`, "", ""},
		{"initialize again", "initialize", object{}, -32600, "initialize was sent before", "", ""},
		{"an unknown session", start, object{"session": "s-none", "prompt": text}, -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown session opened", "fermata/session/open", object{"session": "s-none"}, -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown session rendered", "fermata/transcript/render", object{"session": "s-none"}, -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown session listed", "fermata/request/list", object{"session": "s-none"}, -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown request", "fermata/request/input", object{"request": "r-none"}, -31001, "no such request", "unknown_request", "r-none"},
		{"an unknown turn stopped", stop, object{"turn": "t-none"}, -31001, "no such turn", "unknown_turn", "t-none"},
		{"an unknown turn redirected", "fermata/turn/redirect", object{"turn": "t-none", "prompt": text}, -31001, "no such turn", "unknown_turn", "t-none"},
		{"an unknown turn to redirect in a start", start, ask(object{"redirects": "t-none"}), -31001, "no such turn", "unknown_turn", "t-none"},
		{"an unknown model", start, ask(object{"model": "nobody/nothing"}), -31001, `"nobody", which is not configured`, "unknown_model", b.session},
		{"a model without a provider", start, ask(object{"model": "gpt"}), -31001, "write provider/model", "unknown_model", b.session},
		{"nothing to stop", stop, nil, -31003, "no turn is running", "nothing_runs", ""},

		{"no params", start, nil, -32602, "session: is missing", "", ""},
		{"no session", start, object{"prompt": text}, -32602, "session: is missing", "", ""},
		{"no prompt", start, object{"session": b.session}, -32602, "prompt: ", "", ""},
		{"an empty prompt", start, ask(object{"prompt": []any{}}), -32602, "prompt: ", "", ""},
		{"a prompt of white space", start, ask(object{"prompt": peer.Text(" \n")}), -32602, "prompt", "", ""},
		{"no prompt to redirect with", "fermata/turn/redirect", nil, -32602, "prompt: ", "", ""},
		{"no session to open", "fermata/session/open", object{}, -32602, "session: is missing", "", ""},
		{"params that are an array", start, []any{1}, -32602, "params: expected object, got array", "", ""},
		{"a session that is a number", start, object{"session": 7, "prompt": text}, -32602, "session: expected string, got number", "", ""},
		{"a prompt that is a string", start, ask(object{"prompt": "Hello."}), -32602, "prompt: expected array, got string", "", ""},
		{"a part that is a string", start, ask(object{"prompt": []any{"Hello."}}), -32602, "prompt[0]: expected object, got string", "", ""},
		{"a text that is a number", start, ask(object{"prompt": []any{object{"type": "text", "text": "a"}, object{"type": "text", "text": 7}}}), -32602, "prompt[1].text: expected string, got number", "", ""},
		{"a part of an unknown type", start, ask(object{"prompt": []any{object{"type": "image"}}}), -32602, "prompt[0].type: ", "", ""},
		{"a line that is negative", start, ask(object{"anchor": object{"uri": "file:///a", "range": object{"start": object{"line": -1}}}}), -32602, "anchor.range.start.line: expected integer of at least 0", "", ""},
		{"a line over 32 bits", start, ask(object{"anchor": object{"uri": "file:///a", "range": object{"start": object{"line": 1 << 40}}}}), -32602, "anchor.range.start.line: expected integer", "", ""},
		{"a line with a fraction", start, ask(object{"anchor": object{"uri": "file:///a", "range": object{"end": object{"character": 1.5}}}}), -32602, "anchor.range.end.character: expected integer", "", ""},
		{"a file that is not there", start, ask(object{"prompt": []any{object{"type": "file", "path": "none.go"}}}), -32602, "none.go", "", ""},
		{"a file outside of the workspace", start, ask(object{"prompt": []any{object{"type": "file", "path": "../../etc/passwd"}}}), -32602, "prompt[0]", "", ""},
		{"a client id that is an object", start, ask(object{"clientId": object{}}), -32602, "clientId: expected string, got object", "", ""},
		{"a turn that is a number", stop, object{"turn": 7}, -32602, "turn: expected string, got number", "", ""},
		{"a since that is a string", "fermata/session/open", object{"session": b.session, "since": "1"}, -32602, "since: expected integer, got string", "", ""},
		{"a workspace that is relative", "fermata/session/new", object{"workspace": "here"}, -32602, "workspace: expected an absolute path or a file URI", "", ""},
		{"a workspace that is not there", "fermata/session/new", object{"workspace": b.root + "/none"}, -32602, "workspace: ", "", ""},
		{"a workspace that is a number", "fermata/session/new", object{"workspace": 7}, -32602, "workspace: expected string, got number", "", ""},
		{"a cursor of nobody", "fermata/session/list", object{"cursor": "%%%"}, -32602, "cursor: ", "", ""},
		{"a limit that is a string", "fermata/session/list", object{"limit": "ten"}, -32602, "limit: expected integer, got string", "", ""},
		{"a format that there is not", "fermata/transcript/render", object{"session": b.session, "format": "pdf"}, -32602, "format: ", "", ""},

		{"an unknown command", command, run("fermata.start"), -32602, `command: there is no command "fermata.start"`, "", ""},
		{"a command without a name", command, nil, -32602, "command: ", "", ""},
		{"arguments that are an object", command, object{"command": "fermata.stop", "arguments": object{}}, -32602, "arguments: expected array, got object", "", ""},
		{"an argument that is a number", command, run("fermata.stop", 7), -32602, "arguments[0]: expected object, got number", "", ""},
		{"a turn in an argument that is a number", command, run("fermata.stop", object{"turn": 7}), -32602, "arguments[0].turn: expected string, got number", "", ""},
		{"a prompt in an argument that is a number", command, run("fermata.ask", object{"prompt": 7}), -32602, "prompt: expected", "", ""},
		{"an unknown turn in an argument", command, run("fermata.stop", object{"turn": "t-none"}), -31001, "no such turn", "unknown_turn", "t-none"},
		{"an unknown session in an argument", command, run("fermata.openTranscript", object{"session": "s-none"}), -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown session shown", command, run("fermata.showModelInput", object{"session": "s-none"}), -31001, "no such session", "unknown_session", "s-none"},
		{"an unknown request shown", command, run("fermata.showModelInput", object{"request": "r-none"}), -31001, "no such request", "unknown_request", "r-none"},
		{"a command that says nothing", command, run("fermata.ask", object{"prompt": " "}), -32602, "prompt: ", "", ""},
		{"an unknown session asked by a command", command, run("fermata.ask", object{"session": "s-none", "prompt": "Hello."}), -31001, "no such session", "unknown_session", "s-none"},
		{"a command with nothing to stop", command, run("fermata.stop"), -31003, "no turn is running", "nothing_runs", ""},
	} {
		err := b.Call(c.method, c.params, nil)
		if err == nil || err.Code != c.code || !strings.Contains(err.Message, c.says) {
			t.Errorf("%s: answered %+v, want %d with %q", c.name, err, c.code, c.says)
			continue
		}
		var data struct{ Kind, ID, Hint string }
		_ = json.Unmarshal(err.Data, &data) // absent for the codes of JSON-RPC
		if data.Kind != c.kind || data.ID != c.id {
			t.Errorf("%s: the error is about %+v, want %q %q", c.name, data, c.kind, c.id)
		}
	}
	if n := len(b.entries(b.session)); n != 1 {
		t.Errorf("%d entries were recorded", n-1)
	}
	if got := b.goesOn(b.session); len(got) != 2 {
		t.Errorf("the next request has %d messages", len(got))
	}
	b.quit()
}
