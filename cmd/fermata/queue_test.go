package main

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// queued is the reply to a turn/queue.
type queued struct{ Message, State, Turn, Cause string }

func (e *editor) queue(session, text, clientID string) (q queued) {
	e.t.Helper()
	e.Must("fermata/turn/queue", map[string]any{"session": session, "prompt": peer.Text(text), "clientId": clientID}, &q)
	return q
}

func (e *editor) markdown(session string) string {
	e.t.Helper()
	var rendered struct{ Text string }
	e.Must("fermata/transcript/render", map[string]any{"session": session, "format": "markdown"}, &rendered)
	return rendered.Text
}

func wantMessages(t *testing.T, body []byte, want ...string) {
	t.Helper()
	got := messages(t, body)
	if len(got) != len(want) {
		t.Fatalf("the request holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range want {
		if !matches(want[i], got[i]) {
			t.Errorf("message %d is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
}

// guards S10: steering, and a message behind the last step
func TestAQueuedMessageReachesTheModelAtTheNextStepOrWithTheNextTurn(t *testing.T) {
	t.Parallel()
	asked, answered := make(chan struct{}, 1), make(chan struct{})
	e := newEditor(t, "reply\nsay \"I write.\"\ncall write_file {\"path\":\"a\",\"content\":\"b\"}\n"+
		"reply\nsay \"Written.\"\nwait 2s\nreply\nsay Bye.\n",
		peer.Options{Answer: func(method string, _ json.RawMessage) (any, *peer.Error) {
			if method == "fermata/permission" {
				asked <- struct{}{}
				<-answered
			}
			return map[string]any{"answer": "once"}, nil
		}})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	start := e.ask(session, "Write.")
	<-asked
	first := e.queue(session, "In Latin.", "k1")
	again := e.queue(session, "In Latin.", "k1")
	if first.State != "queued" || again != first {
		t.Errorf("queued as %+v, and again as %+v", first, again)
	}
	if text := e.markdown(session); !strings.Contains(text, "*You queued:*\n\n> In Latin.") {
		t.Errorf("while it waits the transcript is\n%s", text)
	}
	close(answered)
	e.Event("the second answer", func(ev peer.Event) bool { return ev.Kind == "delta" && ev.Step == 2 })
	second := e.queue(session, "Say bye.", "")
	r := e.turn(start)
	if r.Outcome != "completed" || len(r.Returned) != 0 || second.State != "queued" || second.Turn != r.Turn {
		t.Errorf("%+v, %+v", r, second)
	}
	e.WaitForEvents("the end of the next turn", func(events []peer.Event) bool {
		n := 0
		for _, ev := range events {
			if ev.Kind == "turn.ended" {
				n++
			}
		}
		return n == 2
	})
	input := []string{`{"role":"user","content":"Write."}`, `{"role":"assistant","content":"I write."…`, `{"role":"tool",…`,
		`{"role":"user","content":"In Latin."}`}
	wantMessages(t, e.model.Requests()[1].Body, input...)
	wantMessages(t, e.model.Requests()[2].Body, append(input, `{"role":"assistant","content":"Written."…`, `{"role":"user","content":"Say bye."}`)...)
	text := e.markdown(session)
	for _, part := range []string{"*You queued a message; it was delivered below*", "*You, delivered before step 2:*\n\n> In Latin.",
		"*You queued a message; the next turn starts with it*", "> Say bye."} {
		if !strings.Contains(text, part) {
			t.Errorf("the transcript lacks %q:\n%s", part, text)
		}
	}
	if again := e.queue(session, "In Latin.", "k1"); again.State != "delivered" || again.Turn != r.Turn {
		t.Errorf("repeated after its delivery: %+v", again)
	}
	e.quit()
}

// guards S10, C2
func TestWhatWaitedWhenTheDaemonWasKilledIsHandedBack(t *testing.T) {
	t.Parallel()
	e := newEditor(t, "reply\nsay So\nhang\nreply\nsay Good.\n", peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Tell.")
	e.Kind("delta")
	e.queue(session, "Later.", "k1")
	e.Kill()

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	var opened struct {
		Entries []struct {
			Kind  string
			Entry struct{ Cause string }
		}
	}
	e.Must("fermata/session/open", map[string]any{"session": session}, &opened)
	returned := 0
	for _, entry := range opened.Entries {
		if entry.Kind == "message.returned" && entry.Entry.Cause == "daemon_died" {
			returned++
		}
	}
	if returned != 1 {
		t.Errorf("the log is %+v", opened.Entries)
	}
	if text := e.markdown(session); !strings.Contains(text, "*You queued, and were handed back* (fermata had ended, not sent):\n\n> Later.") {
		t.Errorf("the transcript is\n%s", text)
	}
	if q := e.queue(session, "Later.", "k1"); q.State != "returned" {
		t.Errorf("repeated: %+v", q)
	}
	e.turn(e.ask(session, "Go on."))
	wantMessages(t, e.model.Requests()[1].Body, `{"role":"user","content":"Tell."}`, `{"role":"user","content":"…Go on."}`)
	e.quit()
}
