package main

import (
	"strings"
	"testing"

	"fermata/rpc/wire"
)

func TestTheQuestionAboutACommandSaysWhatWouldConfineIt(t *testing.T) {
	for config, want := range map[string]struct{ says, model string }{
		"":                                    {"", `"content":"x"`},
		"[run]\nsandbox = \"if-available\"\n": {"none: ", `"content":"x"`},
		"[run]\nsandbox = true\n":             {"refused: ", `"content":"run: `},
	} {
		e := newUser(t, "reply\ncall run {\"command\":\"echo x\"}\nreply\nsay Good.\n", config)
		e.env = append(e.env, "PATH="+t.TempDir()) // without bubblewrap
		asked := make(chan wire.PermissionParams, 1)
		e.start(permitting(asked))
		e.Initialize(e.root, nil)
		if r := e.turn(e.ask(e.NewSession(e.root), "Say it.")); r.Outcome != "completed" {
			t.Fatalf("%+v", r)
		}
		if q := <-asked; (q.Sandbox == "") != (want.says == "") || !strings.HasPrefix(q.Sandbox, want.says) {
			t.Errorf("%q: the question says %q", config, q.Sandbox)
		}
		requests := e.model.Requests()
		last := messages(t, requests[1].Body)
		if result := last[len(last)-1]; !strings.Contains(result, want.model) {
			t.Errorf("%q: the model reads %s", config, result)
		}
		e.quit()
	}
}
