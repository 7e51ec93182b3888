package agent

import (
	"errors"
	"testing"
	"time"

	"fermata/transcript"
)

// guards S2, D4, F3: the redirect was refused as busy, for the message behind it had begun a turn of its own; what a redirect or
// a retry of an ended turn belongs to was found out only when it ran.
func TestAMessageRightBehindARedirectOrARetryWaitsBehindIt(t *testing.T) {
	for name, reserve := range map[string]func(*Agent, transcript.TurnID) *Turn{
		"redirect":        (*Agent).ReserveRedirect,
		"retry":           (*Agent).ReserveRetry,
		"redirect of any": func(a *Agent, _ transcript.TurnID) *Turn { return a.ReserveRedirect("") },
		"retry of any":    func(a *Agent, _ transcript.TurnID) *Turn { return a.ReserveRetry("") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, breaksOff, answers)
			failed := w.run(say("Tell."))
			next := reserve(w.agent, failed.Turn)
			m := w.agent.ReserveMessage(w.s.ID())
			if m.behind != next {
				t.Errorf("the message waits behind %v, and should wait behind %s", m.behind, next.ID())
			}
			out := w.runIn(next, say("Be brief."))
			w.send(m, say("In French."), transcript.MessageWaiting)
			if rep := <-out; rep.Outcome != transcript.TurnCompleted {
				t.Errorf("%+v", rep)
			}
		})
	}
}

// guards D4, S10: the redirect was refused as busy, for the turn that it named had already made way for what waited.
func TestARedirectOfATurnThatIsAboutToHandOverGoesFirst(t *testing.T) {
	w := newWorld(t, nil, answers)
	w.agent.o.Settle = time.Minute
	turn, out := w.start(say("Tell."))
	m := w.agent.ReserveMessage(w.s.ID()) // its prompt is still being read
	w.until(is[*transcript.TurnEnded])
	next := w.agent.ReserveRedirect(turn.ID())
	w.send(m, say("In French."), transcript.MessageHandedOut)
	rep := <-w.runIn(next, say("Be brief."))
	if first := <-out; first.Outcome != transcript.TurnCompleted || len(first.Returned) != 1 {
		t.Errorf("the first turn ended as %+v", first)
	}
	if rep.Outcome != transcript.TurnCompleted || len(rep.Returned) != 1 || rep.Returned[0].Message != m.id {
		t.Errorf("the redirect ended as %+v", rep)
	}
	w.wantContents(2, "user: Tell.", "assistant: Good.",
		"user: [The user redirects you. Treat what you did above as a first attempt and revise it as follows.]\n\nBe brief.")
}

// The session of a redirect was read while that redirect was finding it.
//
// guards S2, D4
func TestARedirectIsRedirectedWhileItFindsItsSession(t *testing.T) {
	w := newWorld(t, nil, answers)
	prev := w.run(say("Tell.")).Turn
	for range 50 {
		first := w.agent.ReserveRedirect(prev)
		out := w.runIn(first, say("Be brief."))
		second := w.agent.ReserveRedirect(first.ID())
		rep := <-w.runIn(second, say("Be briefer."))
		if <-out; second.Session() != w.s.ID() || rep.Turn != second.ID() {
			t.Fatalf("the second redirect ended in session %q as %+v", second.Session(), rep)
		}
		prev = second.ID()
	}
}

// The next thing that a client does when it hears of a turn's end was refused as busy, while the turn gave its lease back.
//
// guards D3
func TestWhatComesRightBehindATurnsEndIsNotRefused(t *testing.T) {
	for name, next := range map[string]func(w *world, ended *Turn) error{
		"start": func(w *world, _ *Turn) error {
			_, err := w.agent.Reserve(w.s.ID()).Run(t.Context(), say("And?"))
			return err
		},
		"retry": func(w *world, ended *Turn) error {
			_, err := w.agent.ReserveRetry(ended.ID()).Run(t.Context(), Start{})
			return err
		},
		"keep": func(w *world, ended *Turn) error { _, err := w.agent.Keep(t.Context(), ended.ID()); return err },
		"revert": func(w *world, _ *Turn) error {
			_, err := w.agent.Revert(t.Context(), Revert{Session: w.s.ID()})
			if errors.Is(err, ErrNoChanges) {
				err = nil
			}
			return err
		},
		"delete": func(w *world, _ *Turn) error { _, err := w.agent.Delete(t.Context(), w.s.ID()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				w := newWorld(t, nil, breaksOff, answers)
				turn, out := w.start(say("Tell."))
				w.until(is[*transcript.TurnEnded])
				if err := next(w, turn); err != nil {
					t.Fatal(err)
				}
				<-out
			}
		})
	}
}
