package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
	"fermata/rpc/wire"
	"fermata/tools/mcp/mcptest"
)

// mcpServer is the config of a server that the test's own binary plays.
func mcpServer(t *testing.T, mode, more string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[[mcp]]\nname = \"srv\"\ncommand = [%q]\nenv = { %s = %q, GORACE = \"atexit_sleep_ms=0\" }\n%s\n", exe, mcptest.Mode, mode, more)
}

// permitting answers each question with yes, once, and keeps it.
func permitting(asked chan<- wire.PermissionParams) peer.Options {
	return peer.Options{Answer: func(method string, params json.RawMessage) (any, *peer.Error) {
		if method != "fermata/permission" {
			return nil, nil
		}
		var p wire.PermissionParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, &peer.Error{Message: err.Error()}
		}
		asked <- p
		return map[string]any{"answer": "once"}, nil
	}}
}

// offeredTools are the tools that a request offers, in order.
func offeredTools(t *testing.T, body []byte) (names []string) {
	t.Helper()
	var b struct {
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	for _, tool := range b.Tools {
		names = append(names, tool.Function.Name)
	}
	return names
}

func TestAModelCallsTheToolsOfAServerAndTheUserIsAskedFirst(t *testing.T) {
	e := newUser(t, "reply\ncall srv__echo {\"text\":\"hello\"}\nreply\nsay Good.\n", mcpServer(t, "good", `tools = ["echo", "wait"]`+"\n"+`read_only = ["wait"]`))
	asked := make(chan wire.PermissionParams, 1)
	e.start(permitting(asked))
	e.Initialize(e.root, nil)
	if r := e.turn(e.ask(e.NewSession(e.root), "Say it.")); r.Outcome != "completed" {
		t.Fatalf("%+v", r)
	}
	if q := <-asked; q.Tool != "srv__echo" || q.Summary != `srv__echo {"text":"hello"}` || q.Scope != "tool" || q.Command != "" {
		t.Errorf("the question is %+v", q)
	}
	requests := e.model.Requests()
	names := offeredTools(t, requests[0].Body)
	if n := len(names); n < 3 || names[n-2] != "srv__echo" || names[n-1] != "srv__wait" || names[0] != "read_file" {
		t.Errorf("offered are %q", names)
	}
	last := messages(t, requests[1].Body)
	if want := `{"role":"tool","tool_call_id":"call_1","content":"echo: {\"text\":\"hello\"}"}`; last[len(last)-1] != want {
		t.Errorf("the model reads %s\nwant %s", last[len(last)-1], want)
	}
}

// guards S7, S8, S11
func TestTheAnswerOfAServerThatComesAfterTheStopIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	begun, until := filepath.Join(dir, "begun"), filepath.Join(dir, "go")
	call := fmt.Sprintf("call srv__late {\"file\":%q,\"until\":%q}", begun, until)
	e := newUser(t, "reply\n"+call+"\nreply\nsay Good.\n", mcpServer(t, "good", ""))
	asked := make(chan wire.PermissionParams, 1)
	e.start(permitting(asked))
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	start := e.ask(session, "Do it.")
	e.Event("the call has started", func(ev peer.Event) bool { return ev.Kind == "tool.started" })
	e.WaitFor("the server to have begun", func() bool { _, err := os.Stat(begun); return err == nil })
	e.Go("fermata/turn/stop", map[string]any{})
	r := e.turn(start)
	if len(r.Tools) != 1 || r.Tools[0].State != "unknown" || r.Tools[0].Cause != "stopped_by_user" {
		t.Fatalf("%+v", r)
	}
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Event("the late result", func(ev peer.Event) bool {
		return ev.Kind == "tool.settled" && strings.Contains(string(ev.Entry), `"late":true`)
	})
	for i, want := range []bool{true, false} {
		if r := e.turn(e.ask(session, "Go on.")); r.Outcome != "completed" {
			t.Fatalf("%+v", r)
		}
		requests := e.model.Requests()
		all := messages(t, requests[len(requests)-1].Body)
		last := all[0]
		for _, m := range all {
			if strings.HasPrefix(m, `{"role":"user"`) {
				last = m
			}
		}
		if strings.Contains(last, "[The call call_1 of srv__late came back after all, done: done after all]") != want {
			t.Errorf("the message %d after it is %s", i+1, last)
		}
	}
	e.quit()
}

// guards M4, M5
func TestAListOfToolsThatChangesOpensAnEpochWithTheNextTurn(t *testing.T) {
	e := newUser(t, "reply\ncall srv__grow {}\nreply\nsay Good.\n", mcpServer(t, "shy", ""))
	e.start(permitting(make(chan wire.PermissionParams, 1)))
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	var reasons []string
	for text := "Grow."; len(reasons) < 2; text = "Go on." { // the server's word of it is on its way
		if r := e.turn(e.ask(session, text)); r.Outcome != "completed" {
			t.Fatalf("%+v", r)
		}
		reasons = nil
		for _, ev := range e.Events() {
			if ev.Kind == "epoch.opened" {
				var body struct{ Reason string }
				if err := json.Unmarshal(ev.Entry, &body); err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, body.Reason)
			}
		}
	}
	if got := strings.Join(reasons, ", "); got != "first, tools changed" {
		t.Errorf("epochs: %s", got)
	}
	requests := e.model.Requests()
	for i, r := range requests { // within the first turn nothing changes
		want := i == len(requests)-1
		if got := strings.Contains(strings.Join(offeredTools(t, r.Body), " "), "srv__echo"); got != want {
			t.Errorf("request %d offers srv__echo: %v", i+1, got)
		}
	}
	e.quit()
}

func TestATurnGoesOnWithoutAServerThatDoesNotStart(t *testing.T) {
	e := newUser(t, "reply\nsay Good.\n", mcpServer(t, "broken", ""))
	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	for range 2 {
		if r := e.turn(e.ask(session, "Hello.")); r.Outcome != "completed" {
			t.Fatalf("%+v", r)
		}
	}
	var warnings []string
	for _, ev := range e.Events() {
		if ev.Kind == wire.EventWarning {
			warnings = append(warnings, ev.Text)
		}
	}
	if len(warnings) == 0 || !strings.HasPrefix(warnings[0], "the MCP server srv cannot be used: it ended with exit status 1. It complained: no ") {
		t.Errorf("warnings: %q", warnings)
	}
	e.quit()
}
