package transcript

import (
	"bytes"
	"testing"
)

// guards T2, M4: whose words an answer is follows from the log alone, so that the encoder, a log opened anew and verify agree.
func TestReasoningOfAnotherModelIsForeignWhereverItIsRead(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	ask := func(model, question string) Sent {
		t.Helper()
		turn := NewTurnID()
		r := sendOf(turn, 1, prompt(turn, question))
		r.Model = model
		sent := send(t, l, r)
		conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, reasoning("thought of "+model), text("said by "+model))
		return sent
	}
	foreign := func(r RequestID) (out []bool) {
		t.Helper()
		messages, err := s.Messages(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		body := readBody(t, s, r)
		for _, m := range messages {
			if m.Role != RoleAssistant {
				continue
			}
			out = append(out, m.Foreign)
			if sent := bytes.Contains(body, []byte(m.Answer.Reasoning())); sent == m.Foreign {
				t.Errorf("%q is sent: %v, foreign: %v", m.Answer.Reasoning(), sent, m.Foreign)
			}
			if !bytes.Contains(body, []byte(m.Answer.Text())) {
				t.Errorf("%q is not sent", m.Answer.Text())
			}
		}
		return out
	}
	equal := func(got []bool, want ...bool) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("foreign: %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("foreign: %v, want %v", got, want)
			}
		}
	}
	ask("m", "1")
	equal(foreign(ask("m", "2").Request), false)
	equal(foreign(ask("n", "3").Request), true, true)
	l = reopen(t, s, l.Session())
	equal(foreign(ask("n", "4").Request), true, true, false)
	equal(foreign(ask("m", "5").Request), false, false, true, true)
	l = fork(t, s, l.Session(), "")
	equal(foreign(ask("n", "6").Request), true, true, false, false, true)
	l = reopen(t, s, l.Session())
	equal(foreign(ask("n", "7").Request), true, true, false, false, true, false)
	wantClean(t, s)
}

func TestADialectsNextVersionIsNoOtherModel(t *testing.T) {
	said := Message{Role: RoleAssistant, Origin: Origin{"p", "m", "chat/1"}}
	for e, want := range map[EpochOpened]bool{
		{Provider: "p", Model: "m", Dialect: "chat/2"}:      false,
		{Provider: "p", Model: "n", Dialect: "chat/1"}:      true,
		{Provider: "q", Model: "m", Dialect: "chat/1"}:      true,
		{Provider: "p", Model: "m", Dialect: "responses/1"}: true,
	} {
		if got := said.For(e).Foreign; got != want {
			t.Errorf("%+v: %v", e, got)
		}
	}
}
