package main

import (
	"fmt"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// behind configures the scripted model as one of another kind of provider. The daemon is not started yet.
func (e *editor) behind(kind string) {
	e.t.Helper()
	e.configure(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = %q\nbase_url = %q\n[limits]\ntries = 1\n", kind, e.model.URL))
}

// piece is a step of a scenario that sends a piece of a block of signed reasoning, as Claude's come through OpenRouter.
func piece(index int, key, value string) string {
	plain := ""
	if key == "text" {
		plain = fmt.Sprintf(`"reasoning":%q,`, value)
	}
	return fmt.Sprintf(`event {"choices":[{"delta":{%s"reasoning_details":[{"type":"reasoning.text",%q:%q,"format":"anthropic-claude-v1","index":%d}]}}]}`,
		plain, key, value, index)
}

// A kill -9 in the second block: the attempt holds the first with its signature. Kept, it is sent as it was issued; the second
// is in the transcript, and show model input says why it is not in the request.
//
// guards T3, T2, C1, C2, F4, M7
func TestAKilledDaemonLosesNoSignatureOfAFinishedBlockT3(t *testing.T) {
	t.Parallel()
	e := newUser(t, script("Count.", piece(0, "text", "First, "), piece(0, "text", "I look. "), piece(0, "signature", "Eq0/one=="),
		piece(1, "text", "Then I wr"), "hang")+thenGood, "")
	e.behind("openrouter")
	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Count.")
	turn := e.Event("the second block", func(ev peer.Event) bool { return ev.Kind == "delta" && strings.HasSuffix(ev.Text, "wr") }).Turn
	e.Kill()

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	var opened struct{ Entries []logEntry }
	e.Must("fermata/session/open", map[string]any{"session": session}, &opened)
	var parts []transcript.Part
	for _, entry := range opened.Entries {
		if a, ok := decode(t, entry).(*transcript.Answer); ok {
			parts = a.Parts
		}
	}
	if len(parts) != 2 || parts[0].Text != "First, I look. " || !strings.Contains(string(parts[0].Extra), `"Eq0/one=="`) ||
		parts[1].Text != "Then I wr" || strings.Contains(string(parts[1].Extra), "signature") {
		t.Fatalf("the attempt is %+v", parts)
	}
	e.Must("fermata/turn/adopt", map[string]any{"turn": turn}, nil)
	if r := e.turn(e.ask(session, "Go on.")); r.Outcome != "completed" {
		t.Fatalf("the session does not go on: %+v", r)
	}
	wantMessages(t, e.model.Requests()[1].Body,
		`{"role":"user","content":"Count."}`,
		`{"role":"user","content":"[You were still thinking when fermata itself ended. The user has kept it.]\n\nGo on."}`)
	var in struct {
		Verified bool
		Parts    []struct{ Unsendable []string }
	}
	e.Must("fermata/request/input", map[string]any{}, &in)
	var left []string
	for _, p := range in.Parts {
		left = append(left, p.Unsendable...)
	}
	if !in.Verified || strings.Join(left, "\n") != "reasoning block 1: not sendable, because nothing was said behind it\n"+
		"reasoning block 2: not sendable, because it was cut before its signature came\nanswer: not sent, because it says nothing that can be sent" {
		t.Errorf("shown as not sendable: %q, verified %v", left, in.Verified)
	}
	e.quit()
}
