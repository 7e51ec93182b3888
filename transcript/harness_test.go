package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// plain is an encoder for tests: a chat dialect reduced to what fragments are about.
type plain struct{ version string }

func (p plain) Dialect() string { return "plain/" + p.version }

func (p plain) Encode(m Message) ([]byte, error) {
	if m.Role == RoleAssistant && !m.Answer.Speaks() {
		return nil, nil // reasoning alone is no message
	}
	b := append([]byte(`{"role":`), '"')
	b = append(append(b, m.Role...), `","content":`...)
	switch m.Role {
	case RoleUser:
		b = AppendString(b, m.User.UserText())
	case RoleAssistant:
		b = AppendString(b, m.Answer.Text())
		if r := m.Answer.Reasoning(); r != "" && !m.Foreign {
			b = AppendString(append(b, `,"reasoning":`...), r)
		}
		for _, c := range m.Answer.Calls() {
			b = AppendString(append(b, `,"call":`...), string(c.ID))
			b = append(append(b, `,"input":`...), c.Args...) // as an object
		}
	case RoleTool:
		b = AppendString(append(AppendString(b, m.Result.Output), `,"call":`...), string(m.Result.Call))
	}
	return append(b, '}'), nil
}

func knownEncoders(dialect string) (Encoder, bool) {
	v, ok := strings.CutPrefix(dialect, "plain/")
	return plain{v}, ok
}

func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "fermata", "fermata.db"), o)
}

func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newSession(t testing.TB, s *Store) *Log {
	t.Helper()
	l, err := s.NewSession(t.Context(), SessionOpened{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func reopen(t testing.TB, s *Store, id SessionID) *Log {
	t.Helper()
	l, err := s.Log(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const testHead = `{"model":"m","messages":[`

func sendOf(turn TurnID, step int, started *TurnStarted) Send {
	return Send{Turn: turn, Step: step, Try: 1, Route: "test http://x", Provider: "test", Model: "m", Enc: plain{"1"},
		Head: []byte(testHead), Tail: []byte(`],"stream":true}`), Instructions: "i", Tools: "t", Started: started}
}

func prompt(turn TurnID, text string) *TurnStarted {
	return &TurnStarted{Turn: turn, Prompt: []PromptPart{{Type: "text", Text: text}}}
}

// start sends the first step of a turn.
func start(t testing.TB, l *Log, text string) (TurnID, Sent) {
	t.Helper()
	turn := NewTurnID()
	return turn, send(t, l, sendOf(turn, 1, prompt(turn, text)))
}

func send(t testing.TB, l *Log, s Send) Sent {
	t.Helper()
	sent, err := l.Send(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// conclude ends a request with an answer and, when out is not "", its turn.
func conclude(t testing.TB, l *Log, turn TurnID, step int, r RequestID, state AnswerState, out Outcome, parts ...Part) []Entry {
	t.Helper()
	c := Conclusion{Ended: RequestEnded{Request: r, Outcome: string(state), Status: 200}}
	if len(parts) > 0 {
		c.Answer = &Answer{Turn: turn, Step: step, Request: r, State: state, Parts: parts}
	}
	if out != "" {
		c.TurnEnded = &TurnEnded{Turn: turn, Outcome: out}
	}
	e, err := l.Conclude(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func text(s string) Part      { return Part{Type: PartText, Text: s} }
func reasoning(s string) Part { return Part{Type: PartReasoning, Text: s} }
func call(id, name, args string) Part {
	return Part{Type: PartCall, Call: &Call{ID: CallID(id), Name: name, Args: args}}
}

// exchange is a whole turn of one step.
func exchange(t testing.TB, l *Log, question, answer string) (TurnID, Sent) {
	t.Helper()
	turn, sent := start(t, l, question)
	conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text(answer))
	return turn, sent
}

// talk is a session with two epochs, a tool call, a stop and a failure.
func talk(t testing.TB, s *Store) *Log {
	t.Helper()
	l := newSession(t, s)
	exchange(t, l, "first question "+prose(3000), "first answer \"quoted\"\n"+prose(4000))
	turn, sent := start(t, l, "use the tool")
	conclude(t, l, turn, 1, sent.Request, Complete, "", reasoning(prose(500)), text("I look."), call("c1", "read", `{"path":"a.go"}`), call("c2", "write", `{"text":"`+strings.Repeat(`line\n`, 40)+`"}`))
	add(t, l, &ToolStarted{Turn: turn, Step: 1, Call: "c1", Name: "read", ReadOnly: true},
		&ToolStarted{Turn: turn, Step: 1, Call: "c2", Name: "write"},
		&ToolSettled{Turn: turn, Step: 1, Call: "c2", Name: "write", State: ToolDone, Output: "ok"},
		&ToolSettled{Turn: turn, Step: 1, Call: "c1", Name: "read", State: ToolDone, Output: prose(2000)})
	sent = send(t, l, sendOf(turn, 2, nil))
	conclude(t, l, turn, 2, sent.Request, Stopped, TurnStopped, text("half a wo"))
	turn = NewTurnID()
	next := sendOf(turn, 1, prompt(turn, "and with another model"))
	next.Model = "n"
	sent = send(t, l, next)
	conclude(t, l, turn, 1, sent.Request, Broken, "", text("lost in the mid"))
	next.Try, next.Started = 2, nil
	sent = send(t, l, next)
	conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text("there "+prose(300)))
	return l
}

func add(t testing.TB, l *Log, b ...Body) []Entry {
	t.Helper()
	e, err := l.Append(context.Background(), b...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// prose is n bytes of text that compresses to nothing in particular, with the characters code is full of.
func prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\tline %d: if x < %d && s == \"ü\" { return }\n", i, i*i)
	}
	return b.String()[:n]
}

func input(t testing.TB, s *Store, r RequestID) *Input {
	t.Helper()
	in, err := s.Input(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func readBody(t testing.TB, s *Store, r RequestID) []byte {
	t.Helper()
	rc, n, err := s.Body(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != n {
		t.Fatalf("the body has %d bytes, Body said %d", len(b), n)
	}
	return b
}

func shaOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func entries(t testing.TB, s *Store, id SessionID) []Entry {
	t.Helper()
	e, err := s.Entries(context.Background(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func kinds(e []Entry) string {
	var b bytes.Buffer
	for _, e := range e {
		fmt.Fprintf(&b, "%s ", e.Kind())
	}
	return strings.TrimSpace(b.String())
}

func verify(t testing.TB, s *Store) VerifyReport {
	t.Helper()
	r, err := s.Verify(context.Background(), knownEncoders)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantClean(t testing.TB, s *Store) VerifyReport {
	t.Helper()
	r := verify(t, s)
	for _, p := range r.Problems {
		t.Error("verify:", p)
	}
	return r
}

// tamper changes the file behind the store's back.
func tamper(t testing.TB, s *Store, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := s.w.conn.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}
