package agent

import (
	"errors"
	"strings"
	"testing"

	"fermata/agent/model"
	"fermata/transcript"
)

// guards C4: no turn loses its session, and none begins in one that is gone.
func TestASessionIsDeletedWhenNoTurnRunsInIt(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("one"); r.hang() })
	turn, ended := w.start(say("q"))
	w.until(deltaEndsWith("one"))
	_, err := w.agent.Delete(t.Context(), w.s.ID())
	if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Turn != turn.ID() {
		t.Fatalf("deleted while a turn ran: %v", err)
	}
	turn.Stop(ErrStopped)
	<-ended
	stale := w.agent.Reserve(w.s.ID())
	if _, err := w.agent.Delete(t.Context(), w.s.ID()); !errors.Is(err, ErrBusy) {
		t.Errorf("deleted while a turn was about to run: %v", err)
	}
	stale.Release()
	d, err := w.agent.Delete(t.Context(), w.s.ID())
	if err != nil || d.Turns != 1 {
		t.Fatal(d, err)
	}
	for {
		if _, err := w.sub.Next(t.Context()); err != nil {
			break // the follower is told the end
		}
	}
	if _, err := w.agent.Reserve(w.s.ID()).Run(t.Context(), say("q")); !errors.Is(err, transcript.ErrNoSession) {
		t.Errorf("a turn in a deleted session: %v", err)
	}
	if id, ok := w.agent.NewestSession(); ok && id == w.s.ID() {
		t.Error("the session used last is the deleted one")
	}
}

// guards S11, D3: the fork's first notice tells how the parent's last turn ended.
func TestAForkOfAStoppedTurnCanBeRedirected(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("half a wo"); r.hang() }, func(r *reply) { r.say("fine"); r.done() })
	turn, ended := w.start(say("q"))
	w.until(deltaEndsWith("wo"))
	turn.Stop(ErrStopped)
	<-ended
	s, err := w.agent.Fork(t.Context(), w.s.ID(), turn.ID())
	if err != nil {
		t.Fatal(err)
	}
	copied := s.newestTurn()
	if copied == turn.ID() || copied == "" {
		t.Fatalf("the fork's last turn is %q", copied)
	}
	again := say("in French")
	again.Redirects = copied
	if _, err := w.agent.Reserve(s.ID()).Run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	got := w.model.messages(t, 2)
	if len(got) != 3 || *got[1].Content != "half a wo" || !strings.HasPrefix(*got[2].Content, "[The user stopped you. Treat the answer above as a first attempt") {
		t.Errorf("%s", w.model.body(2))
	}
}

// guards M8
func TestAResendIsNoTurn(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("one"); r.done() }, func(r *reply) { r.reason("hm"); r.say("two"); r.done() })
	w.run(say("q"))
	requests, err := w.store.Requests(t.Context(), w.s.ID())
	if err != nil {
		t.Fatal(err)
	}
	before := w.dump()
	var told strings.Builder
	r, err := w.agent.Resend(t.Context(), Resend{Request: requests[0].ID}, func(d model.Delta) { told.WriteString(d.Text) })
	if err != nil || r.Outcome != "complete" || !r.Same || told.String() != "hmtwo" || len(r.Parts) != 2 {
		t.Errorf("%+v, %v, told %q", r, err, told.String())
	}
	if w.model.body(1) != w.model.body(2) || w.dump() != before || len(w.agent.Running()) != 0 {
		t.Errorf("sent were\n%s\n%s\nthe log: %s", w.model.body(1), w.model.body(2), w.dump())
	}
	_, err = w.agent.Resend(t.Context(), Resend{Request: "r_none"}, func(model.Delta) {})
	if !errors.Is(err, transcript.ErrNoRequest) {
		t.Error(err)
	}
}
