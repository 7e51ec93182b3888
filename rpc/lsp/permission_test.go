package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/rpc/wire"
)

// questioned runs a turn whose model makes one call, in a workspace with some files, and gives the question about it.
func questioned[Q any](t *testing.T, client obj, method, tool, args string) (q Q) {
	t.Helper()
	e := start(t, "reply\ncall "+tool+" "+args+"\nreply\nsay done\n")
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", ".env": "KEY=x\n"} {
		if err := os.WriteFile(filepath.Join(e.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.answers[method] = func(json.RawMessage) any { return obj{"answer": "deny", "title": titleDeny} }
	e.initialize(client)
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("x")})
	e.send(r)
	e.result(r)
	m, _ := e.find("the question", func(m message) bool { return m.Method == method })
	if err := json.Unmarshal(m.Params, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTheQuestionSaysWhatWouldHappenAndWhyItIsAsked(t *testing.T) {
	for _, test := range []struct {
		tool, args string
		want       wire.PermissionParams // the diff: a part of it
	}{
		{"edit_file", `{"path":"a.txt","old":"two","new":"2"}`, wire.PermissionParams{Summary: "edit_file a.txt", Path: "a.txt", Scope: "tool",
			Why: "permission mode is ask: the user decides about changes", Diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}},
		{"write_file", `{"path":"new/b.txt","content":"x\n"}`, wire.PermissionParams{Summary: "write_file new/b.txt", Path: "new/b.txt", Scope: "tool",
			Why: "permission mode is ask: the user decides about changes", Diff: "--- /dev/null\n+++ b/new/b.txt\n"}},
		{"read_file", `{"path":".env"}`, wire.PermissionParams{Summary: "read_file .env", Path: ".env", Scope: "files", ReadOnly: true,
			Why: "secret file: .env may hold keys (.env)"}},
		{"run", `{"command":"ls; x"}`, wire.PermissionParams{Summary: "run ls; x", Command: "ls; x", Scope: "command",
			Why: "permission mode is ask: the user decides about commands"}},
	} {
		q := questioned[wire.PermissionParams](t, fermataClient, "fermata/permission", test.tool, test.args)
		if q.Tool != test.tool || q.Summary != test.want.Summary || q.Path != test.want.Path || q.Command != test.want.Command || q.Scope != test.want.Scope ||
			q.Why != test.want.Why || q.ReadOnly != test.want.ReadOnly || !strings.Contains(q.Diff, test.want.Diff) || (q.Diff == "") != (test.want.Diff == "") {
			t.Errorf("%s: the question is %+v, want %+v", test.tool, q, test.want)
		}
	}
}

func TestAMessageSaysInShortWhatWouldHappen(t *testing.T) {
	for _, test := range []struct{ tool, args, want string }{
		{"edit_file", `{"path":"a.txt","old":"two","new":"2"}`, "Fermata asks to edit_file a.txt (+1 -1 lines)"},
		{"read_file", `{"path":".env"}`, "Fermata asks to read_file .env\nsecret file: .env may hold keys (.env)"},
		{"run", `{"command":"ls"}`, "Fermata asks to run: ls"},
		{"run", `{"command":"ls\u001b[2K\u202e #"}`, `Fermata asks to run: ls\x1b[2K\u202e #`},
		{"run", `{"command":"echo ` + strings.Repeat("x", 1000) + `; rm y"}`, "Fermata asks to run: echo " + strings.Repeat("x", 290) + " … (416 more characters) … " + strings.Repeat("x", 294) + "; rm y"},
	} {
		q := questioned[struct{ Message string }](t, obj{}, "window/showMessageRequest", test.tool, test.args)
		if q.Message != test.want {
			t.Errorf("%s: the message is %q, want %q", test.tool, q.Message, test.want)
		}
	}
}

func TestAClientSetsTheModeOfASession(t *testing.T) {
	e := start(t, "reply\ncall write_file {\"path\":\"b.txt\",\"content\":\"x\"}\nreply\nsay done\n")
	e.initialize(fermataClient)
	session := e.session()
	mode := func(params any) (r wire.SessionModeResult) {
		t.Helper()
		e.call("fermata/session/mode", params, &r)
		return r
	}
	if r := mode(nil); r.Mode != "ask" || string(r.Session) != session {
		t.Errorf("%+v", r)
	}
	if r := mode(obj{"session": session, "mode": "edit"}); r.Mode != "edit" {
		t.Errorf("%+v", r)
	}
	r := e.req("fermata/turn/start", obj{"session": session, "prompt": text("x")})
	e.send(r)
	if got, _ := e.result(r); got.Tools[0].State != "done" {
		t.Errorf("%+v", got)
	}
	e.refused("fermata/session/mode", obj{"mode": "yes"}, -32602, `permission mode "yes": it is one of ["read-only" "ask" "edit" "trust"], or "default"`)
	if r := mode(obj{"mode": "default"}); r.Mode != "ask" {
		t.Errorf("%+v", r)
	}
}
