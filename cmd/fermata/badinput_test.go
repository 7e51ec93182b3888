package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// badInput is an editor with a daemon that is given what nobody should send it. Whatever that was, the daemon goes on
// afterwards: see goesOn.
type badInput struct {
	*editor
	session string
}

// thenGood ends a scenario: what answers "Go on.".
const thenGood = "\nreply \"Go on.\"\nsay Good.\n"

func newBadInput(t *testing.T, scenario string, o peer.Options) *badInput {
	t.Helper()
	b := &badInput{editor: newEditor(t, scenario+thenGood, o)}
	b.begin()
	return b
}

// begin greets a daemon and opens a session.
func (b *badInput) begin() {
	b.t.Helper()
	b.Initialize(b.root, nil)
	b.session = b.NewSession(b.root)
}

// restart starts another daemon with another configuration or environment.
func (b *badInput) restart(config string, o peer.Options) {
	b.t.Helper()
	b.quit()
	if config != "" {
		b.configure(config)
	}
	b.start(o)
	b.begin()
}

// goesOn wants a normal turn to succeed in a session, and gives the messages of its request.
func (b *badInput) goesOn(session string) []message {
	b.t.Helper()
	r := b.turn(b.ask(session, "Go on."))
	if r.Outcome != "completed" || b.Shown(r.Turn, 1, "text") != "Good." {
		b.t.Fatalf("the session does not go on: %+v, shown %q", r, b.Shown(r.Turn, 1, "text"))
	}
	requests := b.model.Requests()
	return legal(b.t, requests[len(requests)-1].Body)
}

// message is a message of a request as a provider reads it.
type message struct {
	Role       string
	Content    *string
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m message) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// toolName is what OpenAI takes as the name of a function.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// legal wants a request that every provider takes: JSON in UTF-8, no answer without content or calls, each call with an id
// of its own and with exactly one result right behind its answer, arguments that are an object, and a question at the end.
func legal(t testing.TB, body []byte) []message {
	t.Helper()
	var q struct{ Messages []message }
	if err := json.Unmarshal(body, &q); err != nil || !utf8.Valid(body) {
		t.Fatalf("the request is no JSON in UTF-8: %v", err)
	}
	open := map[string]bool{}
	for i, m := range q.Messages {
		if m.Role != "tool" && len(open) > 0 {
			t.Errorf("message %d follows calls that have no result: %v", i, open)
		}
		switch m.Role {
		case "system", "user":
			if m.text() == "" {
				t.Errorf("message %d of %s is empty", i, m.Role)
			}
		case "assistant":
			if m.text() == "" && len(m.ToolCalls) == 0 {
				t.Errorf("message %d is an answer of nothing", i)
			}
			for _, c := range m.ToolCalls {
				var object map[string]any
				if c.ID == "" || open[c.ID] || !toolName.MatchString(c.Function.Name) || json.Unmarshal([]byte(c.Function.Arguments), &object) != nil {
					t.Errorf("message %d has the call %+v", i, c)
				}
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] || m.text() == "" {
				t.Errorf("message %d is a result %q of a call %q that has none to come", i, m.text(), m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		default:
			t.Errorf("message %d has the role %q", i, m.Role)
		}
	}
	if last := q.Messages[len(q.Messages)-1].Role; len(open) > 0 || last != "user" && last != "tool" {
		t.Errorf("the request ends with a message of %s, and calls without result are %v", last, open)
	}
	return q.Messages
}

// answers are the text and reasoning of a turn's answers as the transcript has them.
func (b *badInput) answers(session, turn string) (text, reasoning string) {
	b.t.Helper()
	for _, e := range b.entries(session) {
		var a transcript.Answer
		if e.Kind != "answer" {
			continue
		}
		if err := json.Unmarshal(e.Entry, &a); err != nil {
			b.t.Fatal(err)
		}
		if string(a.Turn) == turn {
			text, reasoning = text+a.Text(), reasoning+a.Reasoning()
		}
	}
	return text, reasoning
}

type logEntry struct {
	Kind  string
	Entry json.RawMessage
}

func (b *badInput) entries(session string) []logEntry {
	b.t.Helper()
	var opened struct{ Entries []logEntry }
	b.Must("fermata/session/open", map[string]any{"session": session}, &opened)
	return opened.Entries
}

// script writes a scenario: one reply to prompts with these words.
func script(prompt string, steps ...string) string {
	return fmt.Sprintf("reply %q\n%s\n", prompt, strings.Join(steps, "\n"))
}

// raw is the step that sends these bytes.
func raw(s string) string { return fmt.Sprintf("raw %q", s) }

// contains reports the files below the user's home and the workspace that hold a text.
func (b *badInput) contains(text string) (files []string) {
	b.t.Helper()
	for name, data := range b.files() {
		if bytes.Contains(data, []byte(text)) {
			files = append(files, filepath.Base(name))
		}
	}
	return files
}
