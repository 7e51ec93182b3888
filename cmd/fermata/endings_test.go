package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/cmd/internal/peer"
)

// The stop is frozen, committed and the model connection closed while nobody reads; then everything shown is delivered,
// and only then the replies.
//
// guards S3, S4, S13, P1
func TestAClientThatDoesNotReadDelaysNoStopAndLosesNothing(t *testing.T) {
	const words = 200_000 // more than pipes and buffers hold
	e := newEditor(t, "reply\nsize 400\nwords "+strconv.Itoa(words)+"\nsay \" the end\"\nhang\nreply\nsay Good.\n", peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.quit()

	e.start(peer.Options{Deaf: true})
	e.Go("initialize", map[string]any{"rootUri": "file://" + e.root, "capabilities": map[string]any{}})
	e.Notify("initialized", map[string]any{})
	start := e.ask(session, "Count.")
	request, err := e.model.Await(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	const unread = 512 << 10 // more than the pipe and the client's side hold: the rest waits in the daemon
	db := connect(t, e.database())
	for journalled := 0; journalled < unread; {
		select {
		case <-request.Closed():
			t.Fatalf("the daemon gave up after %d bytes that nobody read", journalled)
		case <-time.After(10 * time.Millisecond):
		}
		if err := db.QueryRowContext(t.Context(), "SELECT coalesce(sum(length(text)), 0) FROM journal").Scan(&journalled); err != nil {
			t.Fatal(err)
		}
	}
	stop := e.Go("fermata/turn/stop", nil)
	select {
	case <-request.Closed():
	case <-time.After(30 * time.Second):
		t.Fatal("the model connection was not closed while the client did not read")
	}
	e.Listen()
	r := e.turn(start)
	e.turn(stop)
	text := e.Shown(r.Turn, 1, "text")
	order := e.Order()
	if r.Outcome != "stopped" {
		t.Fatalf("the turn ended %+v", r)
	}
	sum := sha256.Sum256([]byte(text))
	if len(text) < unread || r.Kept == nil || r.Kept.Bytes != int64(len(text)) || r.Kept.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("shown were %d bytes, kept %+v", len(text), r.Kept)
	}
	for i, what := range order {
		if what == "reply "+start || what == "reply "+stop {
			for _, later := range order[i:] {
				if later == "event delta" || later == "event turn.ended" {
					t.Errorf("%s came after %s", later, what)
				}
			}
		}
	}
	e.turn(e.ask(session, "Go on."))
	var next struct{ Content string }
	if err := json.Unmarshal([]byte(messages(t, e.model.Requests()[1].Body)[1]), &next); err != nil || next.Content != text {
		t.Errorf("the next input holds %d bytes of answer, %d were shown (%v)", len(next.Content), len(text), err)
	}
	e.quit()
}

// guards C1, C2, P4
func TestWhatAKilledDaemonHadShownIsAnAttempt(t *testing.T) {
	e := newEditor(t, "reply\nthink \"Hm. \"\nsay \"Shown and then \"\nhang\nreply\nsay Good.\n", peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Count.")
	e.Event("the text", func(ev peer.Event) bool { return ev.Kind == "delta" && ev.Part == "text" })
	e.Kill()
	shown := map[string]string{}
	for _, ev := range e.Events() {
		if ev.Kind == "delta" {
			shown[ev.Part] += ev.Text
		}
	}

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	next := e.turn(e.ask(session, "Go on."))
	if next.Outcome != "completed" {
		t.Fatalf("the session does not go on: %+v", next)
	}
	var rendered struct{ Text string }
	e.Must("fermata/transcript/render", map[string]any{"session": session, "format": "markdown"}, &rendered)
	for _, text := range shown {
		if !strings.Contains(rendered.Text, strings.TrimSpace(text)) {
			t.Errorf("the transcript lacks %q that was shown:\n%s", text, rendered.Text)
		}
	}
	got := messages(t, e.model.Requests()[1].Body)
	if len(got) != 2 || !strings.Contains(got[1], "[The last turn was cut off when fermata itself ended.") {
		t.Errorf("the next input: %s", got)
	}
	e.quit()
}

// guards S14, S3: the protocol's bounds: closed stdin
func TestAClosedStdinStopsTheTurnAndLeavesNoProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the command below is for a Unix shell; run's own tests cover Windows
	}
	e := newEditor(t, "reply\nsay \"I wait. \"\ncall run {\"command\":\"echo $$ > pid; echo ready; sleep 600\"}\nreply\nsay Good.\n",
		peer.Options{Answer: func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil }})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Wait.")
	e.Event("ready", func(ev peer.Event) bool { return ev.Kind == "tool.output" && strings.Contains(ev.Text, "ready") })
	begun := time.Now()
	e.CloseStdin()
	e.Exit()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the exit took %v", took)
	}
	pid, err := os.ReadFile(filepath.Join(e.root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if alive(t, strings.TrimSpace(string(pid))) {
		t.Errorf("process %s is alive", pid)
	}

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	if next := e.turn(e.ask(session, "Go on.")); next.Outcome != "completed" {
		t.Fatalf("the session does not go on: %+v", next)
	}
	got := messages(t, e.model.Requests()[1].Body)
	if len(got) != 4 || !strings.Contains(got[2], "ready") || !strings.Contains(got[3], "[The user's editor was closed, which stopped you at this point.]") {
		t.Errorf("the next input: %s", strings.Join(got, "\n"))
	}
	e.quit()
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(n)
	if err != nil {
		return false
	}
	return signalZero(p) == nil
}
