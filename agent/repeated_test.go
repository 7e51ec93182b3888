package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"fermata/tools"
	"fermata/transcript"
)

// joining starts a turn that hangs, and its repetition, which joins it.
func joining(t *testing.T) (w *world, first, again *Turn, out, joined <-chan Report) {
	w = newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() }, answers)
	start := say("Tell.")
	start.ClientID = "k1"
	first, out = w.start(start)
	w.until(deltaEndsWith("So "))
	again, joined = w.start(start)
	return w, first, again, out, joined
}

// The redirect named a turn that is not in the log: the one that the repetition had reserved.
//
// guards D2, D4
func TestARedirectOfARepeatedStartNamesTheTurnThatRan(t *testing.T) {
	w, first, _, out, joined := joining(t)
	rep := <-w.runIn(w.agent.ReserveRedirect(""), say("Be brief."))
	if a, b := <-out, <-joined; a.Turn != first.ID() || b.Turn != first.ID() {
		t.Errorf("%+v, %+v", a, b)
	}
	info, err := w.store.Turn(t.Context(), rep.Turn)
	if err != nil || info.Started.Redirects != first.ID() {
		t.Errorf("the redirect is of %+v, %v; want %s", info.Started, err, first.ID())
	}
	w.wantContents(2, "user: Tell.", "assistant: So ",
		"user: [The user stopped you. Treat the answer above as a first attempt and revise it as follows.]\n\nBe brief.")
}

// The end of a client that had repeated its start was recorded as a stop of the user's.
//
// guards S8
func TestARepeatedStartIsStoppedForItsOwnReason(t *testing.T) {
	_, _, again, out, joined := joining(t)
	again.Stop(ErrClientGone)
	if rep := <-out; rep.Cause != "client_gone" {
		t.Errorf("%+v", rep)
	}
	<-joined
}

// The message waited behind the repetition, which has no queue of its own, and began a turn by itself after the stop.
//
// guards S10
func TestAMessageBehindARepeatedStartIsHandedBackByAStop(t *testing.T) {
	for name, reserved := range map[string]bool{"in the log": false, "still being read": true} {
		t.Run(name, func(t *testing.T) {
			w, first, again, out, joined := joining(t)
			m := w.agent.ReserveMessage(w.s.ID())
			if reserved {
				again.Stop(ErrStopped)
				// Whether the turn takes it before it hears of the stop is open: it is handed back either way.
				if r, err := m.Send(t.Context(), say("Later.")); err != nil || r.State != transcript.MessageHandedOut && r.State != transcript.MessageWaiting {
					t.Errorf("%+v, %v", r, err)
				}
			} else {
				if r := w.send(m, say("Later."), transcript.MessageWaiting); r.Turn != first.ID() {
					t.Errorf("%+v", r)
				}
				again.Stop(ErrStopped)
			}
			if rep := <-out; len(rep.Returned) != 1 {
				t.Errorf("%+v", rep)
			}
			<-joined
			if n := w.logged(transcript.KindTurnStarted); n != 1 {
				t.Errorf("%d turns began; the log: %s", n, w.dump())
			}
		})
	}
}

// The session of a turn that a queued message had started was found out only when its redirect ran.
//
// guards S2, D4
func TestAMessageRightBehindTheRedirectOfAStartedMessageWaitsBehindIt(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, nil, func(r *reply) { r.say("So "); <-goOn; r.done() }, answers)
	_, out := w.start(say("Tell."))
	w.until(deltaEndsWith("So "))
	w.queue("And?")
	close(goOn)
	first := <-out
	var second transcript.TurnID
	w.until(func(ev Event) bool {
		b, ok := entry[*transcript.TurnEnded](ev)
		if ok {
			second = b.Turn
		}
		return ok && b.Turn != first.Turn
	})
	for _, turn := range w.agent.Running() {
		<-turn.Done()
	}
	next := w.agent.ReserveRedirect(second)
	defer next.Release()
	if next.Session() != w.s.ID() {
		t.Errorf("the redirect of %s is in session %q", second, next.Session())
	}
}

// A message that could not be recorded was taken for one that was sent before, and sent again and again without an end.
//
// guards S10
func TestAMessageThatCouldNotBeRecordedIsRefusedWhenItIsSentAgain(t *testing.T) {
	broken := []tools.Tool{{Name: "broken", ReadOnly: true, Schema: json.RawMessage(`{`)}} // no request can be made
	w := newWorld(t, broken, answers)
	message := say("Later.")
	message.ClientID = "k1"
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := w.agent.ReserveMessage(w.s.ID()).Send(ctx, message)
		cancel()
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// A stop waited for the log to be read for a client that opens a long session.
//
// guards S3, S13
func TestAStopDoesNotWaitForAClientThatReadsTheLog(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() })
	turn, out := w.start(say("Tell."))
	w.until(deltaEndsWith("So "))
	load := w.s.hub.load
	reading, goOn := make(chan struct{}), make(chan struct{})
	w.s.hub.mu.Lock()
	w.s.hub.load = func(after, upTo int64) ([]transcript.Entry, error) {
		w.s.hub.load = load
		close(reading)
		<-goOn
		return load(after, upTo)
	}
	w.s.hub.mu.Unlock()
	opened := make(chan *Subscription, 1)
	go func() {
		sub, err := w.s.Subscribe(context.Background(), 0)
		if err != nil {
			t.Error(err)
		}
		opened <- sub
	}()
	<-reading
	stopped := make(chan struct{})
	go func() { turn.Stop(ErrStopped); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Error("the stop waits")
	}
	close(goOn)
	if rep := <-out; rep.Outcome != transcript.TurnStopped {
		t.Errorf("%+v", rep)
	}
	sub := <-opened
	defer sub.Close()
	for want := int64(1); ; {
		ev, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ev.Entry == nil {
			continue // the turn may have been speaking still
		}
		if ev.Entry.Seq != want {
			t.Fatalf("entry %d came, want %d", ev.Entry.Seq, want)
		}
		if want++; is[*transcript.TurnEnded](ev) {
			return
		}
	}
}

// Who redirected or stopped a turn whose prompt could not be read was told of an internal error.
//
// guards S1
func TestATurnThatWasNeverBegunIsNone(t *testing.T) {
	w := newWorld(t, nil, answers)
	turn := w.agent.Reserve(w.s.ID())
	next := w.agent.ReserveRedirect(turn.ID())
	turn.Release()
	if _, err := turn.Report(); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("stopped: %v", err)
	}
	if _, err := next.Run(t.Context(), say("Be brief.")); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("redirected: %v", err)
	}
}

// A stop that came while a turn that had ended cleared up was told as if the end were still to come.
//
// guards S1
func TestThatATurnIsStoppingIsNotToldBehindItsEnd(t *testing.T) {
	w := newWorld(t, nil, answers)
	turn, out := w.start(say("Tell."))
	w.until(is[*transcript.TurnEnded])
	turn.Stop(ErrStopped)
	<-out
	next := w.run(say("And?"))
	w.until(func(ev Event) bool {
		if ev.Stopping != nil {
			t.Error("it is told")
		}
		b, ok := entry[*transcript.TurnEnded](ev)
		return ok && b.Turn == next.Turn
	})
}

// panicking is a source of tools with a bug.
type panicking struct{ times int }

func (p *panicking) Tools(context.Context, string) ([]tools.Tool, []string) {
	if p.times--; p.times >= 0 {
		panic("a bug")
	}
	return nil, nil
}

func (p *panicking) Close() {}

// The session was busy for ever, and a stop was never answered.
//
// guards S1, C2
func TestABugEndsItsTurnAndNotTheSession(t *testing.T) {
	w := newWorld(t, nil, answers)
	w.agent.o.More = &panicking{times: 1}
	turn := w.agent.Reserve(w.s.ID())
	func() {
		defer func() { _ = recover() }() // as the faces do
		_, _ = turn.Run(t.Context(), say("Tell."))
	}()
	select {
	case <-turn.Done():
	default:
		t.Fatal("the turn has not ended")
	}
	if _, err := turn.Report(); !errors.Is(err, errPanicked) {
		t.Error(err)
	}
	if rep := w.run(say("And?")); rep.Outcome != transcript.TurnCompleted {
		t.Errorf("%+v; the log: %s", rep, w.dump())
	}
	if info, err := w.store.Turn(t.Context(), turn.ID()); err != nil || info.Ended.Outcome != transcript.TurnAbandoned {
		t.Errorf("%+v, %v", info.Ended, err)
	}
}
