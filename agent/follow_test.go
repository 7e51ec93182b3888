package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fermata/transcript"
)

// other is a second daemon on the database of a world, with its own view of the world's session.
func (w *world) other(t *testing.T) *world {
	t.Helper()
	store, err := transcript.Open(w.store.Path(), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &world{t: t, root: w.root, model: w.model, store: store}
	options := w.agent.o
	options.Store, options.Client = store, o
	o.agent = New(options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(o.agent.Close(ctx, ErrShutdown), store.Close()); err != nil {
			t.Errorf("close the other daemon: %v", err)
		}
	})
	if o.s, err = o.agent.Open(t.Context(), w.s.ID()); err != nil {
		t.Fatal(err)
	}
	if o.sub, err = o.s.Subscribe(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return o
}

// story is what a client knows of a session after the nth end of a turn: entries by number and kind, what was said before
// each, and what was retracted. How text was cut into deltas does not count.
func (w *world) story(ends int) string {
	w.t.Helper()
	var b strings.Builder
	text := map[transcript.PartType]string{}
	said := func() {
		for _, part := range []transcript.PartType{transcript.PartReasoning, transcript.PartText} {
			if text[part] != "" {
				fmt.Fprintf(&b, "%s %q\n", part, text[part])
			}
		}
		clear(text)
	}
	w.until(func(ev Event) bool {
		switch {
		case ev.Delta != nil:
			if int64(len(text[ev.Delta.Part])) != ev.Delta.Offset {
				w.t.Errorf("a delta at %d behind %q", ev.Delta.Offset, text[ev.Delta.Part])
			}
			text[ev.Delta.Part] += ev.Delta.Text
		case ev.Retracted != nil:
			fmt.Fprintf(&b, "retracted step %d try %d: %s\n", ev.Retracted.Step, ev.Retracted.Try, ev.Retracted.Why)
		case ev.Entry != nil:
			said()
			fmt.Fprintf(&b, "%d %s\n", ev.Entry.Seq, ev.Entry.Kind())
		}
		if is[*transcript.TurnEnded](ev) {
			ends--
		}
		return ends == 0
	})
	return b.String()
}

// guards C4, invariant 1, F2
func TestASessionIsFollowedWhileAnotherDaemonRunsIt(t *testing.T) {
	held := make(chan struct{})
	w := newWorld(t, nil,
		func(r *reply) { r.reason("Hm. "); r.say("One"); r.say(" and two."); r.done() },
		func(r *reply) { r.say("Half a w"); <-held }, // breaks off: no end
		func(r *reply) { r.reason("Again. "); r.say("Whole."); r.done() },
		func(r *reply) { r.say("Long "); r.hang() },
	)
	w.agent.o.Retry = Retry{Tries: 2, Base: time.Millisecond}.withDefaults()
	o, witness := w.other(t), w.other(t)
	w.run(say("first"))
	_, second := w.start(say("second"))
	witness.until(deltaEndsWith("Half a w")) // while it is said
	close(held)
	<-second
	turn, third := w.start(say("third"))
	witness.until(deltaEndsWith("Long "))
	turn.Stop(ErrStopped)
	if r := <-third; r.Outcome != transcript.TurnStopped {
		t.Errorf("the turn ended %+v", r)
	}
	if want, got := w.story(3), o.story(3); got != want {
		t.Errorf("the daemon that runs the turns told\n%s\nthe one that follows\n%s", want, got)
	}
}

// guards C4, C2, S11
func TestADaemonThatFollowedGoesOnWhereTheOtherOneStopped(t *testing.T) {
	w := newWorld(t, nil,
		func(r *reply) { r.say("Half a w"); r.hang() },
		func(r *reply) { r.say("Good."); r.done() },
		func(r *reply) { r.say("Fine."); r.done() },
	)
	o := w.other(t)
	turn, done := w.start(say("first"))
	o.until(deltaEndsWith("Half a w"))
	_, err := o.agent.Reserve(o.s.ID()).Run(t.Context(), say("second"))
	if !errors.Is(err, transcript.ErrLeased) {
		t.Errorf("the other daemon's turn: %v, want that the session is in use", err)
	}
	turn.Stop(ErrStopped)
	<-done
	if r := o.run(say("second")); r.Outcome != transcript.TurnCompleted {
		t.Errorf("the other daemon's turn ended %+v", r)
	}
	if m := w.model.messages(t, 2); len(m) != 3 || *m[1].Content != "Half a w" || !strings.HasPrefix(*m[2].Content, "[The user stopped your answer above where it ends.]") {
		t.Errorf("the model was sent %s", w.model.body(2))
	}
	// and back: the first daemon knows that the stop was told already
	if r := w.run(say("third")); r.Outcome != transcript.TurnCompleted {
		t.Errorf("the first daemon's turn ended %+v", r)
	}
	if m := w.model.messages(t, 3); len(m) != 5 || *m[4].Content != "third" {
		t.Errorf("the model was sent %s", w.model.body(3))
	}
}

// guards C2, C4: nobody has to ask something first.
func TestAFollowerRepairsASessionWhoseDaemonDied(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("x"); r.done() })
	dead, err := transcript.Open(w.store.Path(), transcript.Options{Owner: "dead"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := dead.Log(t.Context(), w.s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn := transcript.NewTurnID()
	if _, err := log.Append(t.Context(), &transcript.TurnStarted{Turn: turn, Prompt: say("q").Prompt}); err != nil {
		t.Fatal(err)
	}
	w.until(is[*transcript.TurnStarted])
	if err := dead.Close(); err != nil { // its lease stays, its owner is gone
		t.Fatal(err)
	}
	w.until(func(ev Event) bool {
		ended, ok := entry[*transcript.TurnEnded](ev)
		return ok && ended.Turn == turn && ended.Outcome == transcript.TurnAbandoned
	})
}
