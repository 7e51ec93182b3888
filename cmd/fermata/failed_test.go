package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// brokenOff is a reply that fails for good after it has said something.
const brokenOff = "reply\nthink \"Hm. \"\nsay \"Half an ans\"\nevent {\"error\":{\"message\":\"no\",\"code\":400}}\n"

// guards F3, F4, P5: the same in every front end
func TestAFailedTurnIsKeptAndRetriedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	e := newEditor(t, brokenOff+"reply\nstatus 400\nreply\nsay Good.\n", peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.quit()
	command := func(code int, args ...string) string {
		t.Helper()
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Dir, cmd.Env = e.root, e.env
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%v ended with %d, want %d: %s", args, got, code, out)
		}
		return string(out)
	}
	if out := command(1, "retry"); !strings.Contains(out, "nothing was asked in session "+session) {
		t.Errorf("retry before the first turn: %s", out)
	}
	if out := command(4, "ask", "--continue", "Tell."); !strings.Contains(out, "unless you keep it: fermata keep "+session) {
		t.Errorf("ask says %s", out)
	}
	if out := command(0, "keep"); !strings.Contains(out, "Kept 3 words") {
		t.Errorf("keep says %s", out)
	}
	if out := command(1, "keep", session); !strings.Contains(out, "it was kept already") {
		t.Errorf("keep again says %s", out)
	}
	command(4, "retry")
	if out := command(0, "retry", session); !strings.Contains(out, "Good.") {
		t.Errorf("retry says %s", out)
	}
	if out := command(1, "retry"); !strings.Contains(out, "was completed; say what you want instead") {
		t.Errorf("retry of a completed turn says %s", out)
	}
	wantMessages(t, e.model.Requests()[2].Body,
		`{"role":"user","content":"Tell."}`,
		`{"role":"assistant","content":"Half an ans","reasoning_content":"Hm. "}`,
		`{"role":"user","content":"[Your answer above broke off by an error where it ends. The user has kept it.]\n[The user asks you to go on with the request above.]"}`,
		`{"role":"user","content":"[The last turn ended with an error before you had answered.]\n[The user asks you to go on with the request above.]"}`)
	text := command(0, "transcript")
	for _, part := range []string{"*Broken off, and kept by you*", "### You retry"} {
		if !strings.Contains(text, part) {
			t.Errorf("the transcript lacks %q:\n%s", part, text)
		}
	}
}

// guards F4, C2: also what a killed daemon had shown
func TestWhatAKilledDaemonHadShownCanBeKept(t *testing.T) {
	t.Parallel()
	e := newEditor(t, "reply\nthink \"Hm. \"\nsay \"Shown and then \"\nhang\nreply\nsay Good.\n", peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Count.")
	e.Event("the text", func(ev peer.Event) bool {
		return ev.Kind == "delta" && ev.Part == "text" && strings.HasSuffix(ev.Text, "then ")
	})
	e.Kill()

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	e.Must("fermata/session/open", map[string]any{"session": session}, nil)
	e.Must("workspace/executeCommand", map[string]any{"command": "fermata.keep"}, nil)
	r := e.turn(e.Go("fermata/turn/retry", nil))
	if r.Outcome != "completed" || r.Session != session || r.Prompt[0].Text != "Count." {
		t.Errorf("%+v", r)
	}
	wantMessages(t, e.model.Requests()[1].Body,
		`{"role":"user","content":"Count."}`,
		`{"role":"assistant","content":"Shown and then ","reasoning_content":"Hm. "}`,
		`{"role":"user","content":"[Your answer above was cut off where it ends, when fermata itself ended. The user has kept it.]\n[The user asks you to go on with the request above.]"}`)
	e.quit()
}
