package agent

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"fermata/tools"
	"fermata/transcript"
)

const goOnAbove = "[The user asks you to go on with the request above.]"

func breaksOff(r *reply) { r.say("Half an ans"); panic(http.ErrAbortHandler) }
func answers(r *reply)   { r.say("Good."); r.done() }

// guards F3, F5: a retry repeats nothing, and what happened stays
func TestARetryGoesOnFromWhatTheLogHolds(t *testing.T) {
	stopped := func(w *world) { // the first turn, stopped in the middle
		turn, out := w.start(say("Tell."))
		w.until(deltaEndsWith("Half an ans"))
		turn.Stop(ErrStopped)
		<-out
	}
	failed := func(w *world) { w.run(say("Tell.")) }
	cases := map[string]struct {
		scripts []func(*reply)
		first   func(*world)
		want    []string
	}{
		"nothing was said": {[]func(*reply){func(r *reply) { r.w.WriteHeader(http.StatusInternalServerError) }, answers}, failed,
			[]string{"user: Tell.", "user: [The last turn ended with an error before you had answered.]\n" + goOnAbove}},
		"the answer broke off": {[]func(*reply){breaksOff, answers}, failed,
			[]string{"user: Tell.", "user: [Your last answer broke off by an error and is not shown here.]\n" + goOnAbove}},
		"after tool results": {[]func(*reply){func(r *reply) { r.say("I look."); r.call("c1", "list_dir", "{}"); r.done() }, breaksOff, answers}, failed,
			[]string{"user: Tell.", "assistant: I look.", "tool: …", "user: [Your last answer broke off by an error and is not shown here.]\n" + goOnAbove}},
		"the answer broke off and was kept": {[]func(*reply){breaksOff, answers}, func(w *world) {
			failed(w)
			if _, err := w.agent.Keep(w.t.Context(), ""); err != nil {
				w.t.Error(err)
			}
		}, []string{"user: Tell.", "assistant: Half an ans", "user: [Your answer above broke off by an error where it ends. The user has kept it.]\n" + goOnAbove}},
		"the answer was stopped": {[]func(*reply){func(r *reply) { r.say("Half an ans"); r.hang() }, answers}, stopped,
			[]string{"user: Tell.", "assistant: Half an ans", "user: [The user stopped your answer above where it ends.]\n" + goOnAbove}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), c.scripts...)
			c.first(w)
			before := w.s.LastTurn()
			retry := w.agent.ReserveRetry("")
			rep, err := retry.Run(t.Context(), Start{ClientID: "k1"})
			if err != nil || rep.Outcome != transcript.TurnCompleted || rep.Prompt[0].Text != "Tell." || rep.Session != w.s.ID() {
				t.Fatalf("%+v, %v", rep, err)
			}
			w.wantContents(len(c.scripts), c.want...)
			info, err := w.store.Turn(t.Context(), retry.ID())
			if err != nil || info.Started.Retries != before {
				t.Errorf("the log links %+v, %v; want %s", info.Started, err, before)
			}
			if again, err := w.agent.ReserveRetry(before).Run(t.Context(), Start{ClientID: "k1"}); err != nil || again.Turn != rep.Turn {
				t.Errorf("repeated: %+v, %v", again, err)
			}
		})
	}
}

// guards F3, F4: only the session's last turn, so that no earlier input changes
func TestWhatCannotBeRetriedOrKeptIsRefusedWithTheReason(t *testing.T) {
	w := newWorld(t, tools.All(), breaksOff, answers, func(r *reply) { r.w.WriteHeader(http.StatusBadRequest) }, func(r *reply) { r.say("So "); r.hang() })
	if _, err := w.agent.Keep(t.Context(), ""); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("keep before the first turn: %v", err)
	}
	retry := func(id transcript.TurnID) error {
		_, err := w.agent.ReserveRetry(id).Run(t.Context(), Start{})
		return err
	}
	keep := func(id transcript.TurnID) error {
		_, err := w.agent.Keep(t.Context(), id)
		return err
	}
	broken := w.run(say("One.")).Turn
	completed := w.run(say("Two.")).Turn
	if err := keep(broken); !errors.Is(err, ErrNotLast) {
		t.Errorf("keep an earlier turn: %v", err)
	}
	if err := retry(broken); !errors.Is(err, ErrNotLast) {
		t.Errorf("retry an earlier turn: %v", err)
	}
	if err := keep(completed); !errors.Is(err, ErrNothingToKeep) {
		t.Errorf("keep a complete answer: %v", err)
	}
	if err := retry(completed); !errors.Is(err, ErrNothingToRetry) {
		t.Errorf("retry a completed turn: %v", err)
	}
	if err := keep(w.run(say("Three.")).Turn); !errors.Is(err, ErrNothingToKeep) {
		t.Errorf("keep nothing: %v", err)
	}
	if err := keep("t_unknown"); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("keep an unknown turn: %v", err)
	}
	turn, out := w.start(say("Four."))
	w.until(deltaEndsWith("So "))
	if err := keep(""); !errors.Is(err, ErrBusy) {
		t.Errorf("keep while a turn runs: %v", err)
	}
	if err := retry(""); !errors.Is(err, ErrBusy) {
		t.Errorf("retry while a turn runs: %v", err)
	}
	turn.Stop(ErrStopped)
	<-out
	if n := w.logged(transcript.KindTurnStarted); n != 4 {
		t.Errorf("%d turns started; the log: %s", n, w.dump())
	}
}

// guards F4, P5, T1: byte for byte, reasoning too, said once
func TestAKeptAnswerIsInTheNextInputAsItWasShown(t *testing.T) {
	w := newWorld(t, nil,
		func(r *reply) { r.reason("Hm <é>. "); r.say("Half\n\"an\" ans"); panic(http.ErrAbortHandler) },
		answers, answers)
	_, out := w.start(say("Tell."))
	text, reasoning := w.until(is[*transcript.TurnEnded])
	rep := <-out
	k, err := w.agent.Keep(t.Context(), rep.Turn)
	if err != nil || k.Kept.Bytes != int64(len(text+reasoning)) || k.Kept.Words != 3 || k.Turn != rep.Turn || k.Session != w.s.ID() {
		t.Errorf("%+v, %v", k, err)
	}
	w.until(func(ev Event) bool {
		a, ok := entry[*transcript.Admission](ev)
		return ok && a.Admitted && a.By == "user" && a.Answer == k.Answer
	})
	if _, err := w.agent.Keep(t.Context(), rep.Turn); !errors.Is(err, ErrNothingToKeep) {
		t.Errorf("kept twice: %v", err)
	}
	w.run(say("Go on."))
	got := w.model.messages(t, 2)
	if len(got) != 3 || *got[1].Content != text || *got[1].Reasoning != reasoning ||
		*got[2].Content != "[Your answer above broke off by an error where it ends. The user has kept it.]\n\nGo on." {
		t.Errorf("shown were %q and %q; the input: %s", reasoning, text, w.model.body(2))
	}
	w.run(say("And?"))
	w.wantContents(3, "user: Tell.", "assistant: "+text, "user: [Your answer above …", "assistant: Good.", "user: And?")
}

// guards F4, C2, S12: the attempt of an abandoned turn, and of one that was stopped in the back-off
func TestEveryAttemptOfTheLastTurnCanBeKept(t *testing.T) {
	t.Run("stopped in the back-off", func(t *testing.T) {
		w := newWorld(t, nil, breaksOff, answers)
		w.agent.o.Retry = Retry{Tries: 3, Base: time.Hour, Max: time.Hour}
		turn, out := w.start(say("Tell."))
		w.until(func(ev Event) bool { return ev.Retracted != nil })
		turn.Stop(ErrStopped)
		<-out
		if _, err := w.agent.Keep(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		w.run(say("Go on."))
		w.wantContents(2, "user: Tell.", "assistant: Half an ans",
			"user: [Your answer above broke off by an error where it ends, and the user stopped you there. The user has kept it.]\n\nGo on.")
	})
	t.Run("abandoned", func(t *testing.T) {
		w := newWorld(t, nil, answers)
		started := &transcript.TurnStarted{Turn: "t_1", Prompt: say("Tell.").Prompt}
		entries, err := w.s.log.Append(context.Background(), started,
			&transcript.Answer{Turn: "t_1", Step: 1, State: transcript.Broken, Cause: transcript.CauseDaemonDied, Parts: []transcript.Part{{Type: transcript.PartText, Text: "Half an ans"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.log.Append(context.Background(),
			&transcript.Admission{Turn: "t_1", Step: 1, Answer: entries[1].Seq, By: "rule"},
			&transcript.TurnEnded{Turn: "t_1", Outcome: transcript.TurnAbandoned}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.agent.Keep(t.Context(), "t_1"); err != nil {
			t.Fatal(err)
		}
		w.run(say("Go on."))
		w.wantContents(1, "user: Tell.", "assistant: Half an ans",
			"user: [Your answer above was cut off where it ends, when fermata itself ended. The user has kept it.]\n\nGo on.")
	})
}
