//go:build unix

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/agent/check"
	"fermata/tools"
	"fermata/transcript"
)

// gate is a check that begins, then waits for the test to say how it ends.
type gate struct {
	t   *testing.T
	dir string
}

func newGate(t *testing.T) gate { return gate{t, t.TempDir()} }

func (g gate) check(name string) check.Definition {
	return check.Definition{Name: name, Timeout: 20 * time.Second,
		Shell: "cd '" + g.dir + "' && : >begun && while ! test -s end; do sleep 0.01; done; exit $(cat end)"}
}

// begun waits until the check runs.
func (g gate) begun() {
	g.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20 * time.Second); ; {
		if _, err := os.Stat(filepath.Join(g.dir, "begun")); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			g.t.Fatal("the check did not begin")
		}
	}
}

func (g gate) end(status string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "end"), []byte(status+"\n"), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func exits(name, status string) check.Definition {
	return check.Definition{Name: name, Shell: "echo because; exit " + status}
}

// contents are the roles and texts of a request's messages.
func (m *scripted) contents(t *testing.T, n int) (out []string) {
	t.Helper()
	for _, msg := range m.messages(t, n) {
		text := msg.Role
		if msg.Content != nil {
			text += " " + *msg.Content
		}
		out = append(out, text)
	}
	return out
}

// A withheld answer ends the turn before any of its calls runs, and a late pass lets it into the next input with receipts.
//
// guards K1, K2, K5, S8, invariant 4
func TestNoCallOfAWithheldAnswerIsRun(t *testing.T) {
	rec := &recorder{}
	w := newWorld(t, []tools.Tool{rec.tool("read", true, nil), rec.tool("write", false, nil)},
		func(r *reply) { r.say("First I look."); r.call("c1", "read", "{}"); r.done() },
		func(r *reply) {
			r.say("Now I write.")
			r.call("c2", "write", "{}")
			r.call("c3", "read", "{}")
			r.done()
		},
		func(r *reply) { r.say("Well."); r.done() })
	status := filepath.Join(t.TempDir(), "status")
	w.agent.o.Checks = []check.Definition{
		exits("always", "0"), {Name: "write", Shell: "grep -q '\"c2\"' || exit 0; exit $(cat " + status + " || echo 7)"},
	}
	rep := w.run(say("Go."))
	if rep.Outcome != transcript.TurnFailed || rep.Cause != transcript.Unverified || len(rep.Withheld) != 1 || rep.Withheld[0].Check != "write" ||
		rep.Withheld[0].Verdict != transcript.VerdictError || !strings.HasPrefix(rep.Error, "the answer is withheld: write failed: ") {
		t.Fatalf("%+v", rep)
	}
	if want := []string{"begin read", "end read"}; !slices.Equal(rec.notes, want) {
		t.Errorf("run were %q, want %q", rec.notes, want)
	}
	if err := os.WriteFile(status, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := w.agent.Recheck(t.Context(), "")
	if err != nil || !r.Admitted || r.Late || !slices.Equal(r.Ran, []string{"write"}) || r.Turn != rep.Turn {
		t.Errorf("%+v, %v", r, err)
	}
	if again, err := w.agent.Recheck(t.Context(), rep.Turn); err != nil || !again.Admitted || len(again.Ran) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if rep := w.run(say("And?")); rep.Outcome != transcript.TurnCompleted {
		t.Errorf("%+v", rep)
	}
	const receipt = "tool [not run: a check withheld this answer, and let it through only after the turn had ended.]"
	want := []string{"user Go.", "assistant First I look.", "tool read", "assistant Now I write.", receipt, receipt, "user And?"}
	if got := w.model.contents(t, 3); !slices.Equal(got, want) {
		t.Errorf("the input: %q, want %q", got, want)
	}
	if len(rec.notes) != 2 {
		t.Errorf("run were %q", rec.notes)
	}
}

// guards K6, S3, P1: the model connection is closed while the check of what was said still runs.
func TestAStoppedAnswerIsCheckedAfterTheClose(t *testing.T) {
	for _, tt := range []struct{ status, notice string }{
		{"0", "[The user stopped your answer above where it ends.]"},
		{"1", "[Your last answer was withheld by a check and is not shown here.]\n[The user stopped you at this point.]"},
	} {
		g, closed := newGate(t), make(chan struct{})
		w := newWorld(t, nil, func(r *reply) { r.say("Half a "); r.hang(); close(closed) }, func(r *reply) { r.say("Well."); r.done() })
		w.agent.o.Checks = []check.Definition{g.check("gate"), exits("quick", "0")}
		turn, reports := w.start(say("Go."))
		w.until(deltaEndsWith("Half a "))
		turn.Stop(ErrStopped)
		g.begun()
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Fatal("the model connection is open while a check runs")
		}
		g.end(tt.status)
		rep := <-reports
		if rep.Outcome != transcript.TurnStopped || rep.Kept == nil || rep.Kept.Bytes != 7 || len(rep.Withheld) != map[string]int{"0": 0, "1": 1}[tt.status] {
			t.Errorf("%+v", rep)
		}
		w.run(say("And?"))
		want := []string{"user Go.", "assistant Half a ", "user " + tt.notice + "\n\nAnd?"}
		if tt.status == "1" {
			want = slices.Delete(want, 1, 2)
		}
		if got := w.model.contents(t, 2); !slices.Equal(got, want) {
			t.Errorf("exit %s: the input: %q, want %q", tt.status, got, want)
		}
	}
}

// guards K1, S14: a stop does not wait for the checks of an answer that had come whole.
func TestAStopCutsRunningChecksShort(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, nil, func(r *reply) { r.say("All of it."); r.done() })
	w.agent.o.Checks = []check.Definition{g.check("gate"), exits("quick", "0")}
	turn, reports := w.start(say("Go."))
	w.until(func(ev Event) bool { return is[*transcript.Verdict](ev) })
	g.begun()
	turn.Stop(ErrStopped)
	rep := <-reports
	if rep.Outcome != transcript.TurnStopped || len(rep.Withheld) != 1 || rep.Withheld[0] != (Withholding{Check: "gate"}) {
		t.Fatalf("%+v", rep)
	}
	g.end("0")
	r, err := w.agent.Recheck(t.Context(), rep.Turn)
	if err != nil || !r.Admitted || !slices.Equal(r.Ran, []string{"gate"}) {
		t.Errorf("%+v, %v", r, err)
	}
	w.run(say("And?"))
	want := []string{"user Go.", "assistant All of it.", "user [The user stopped you at this point.]\n\nAnd?"}
	if got := w.model.contents(t, 2); !slices.Equal(got, want) {
		t.Errorf("the input: %q, want %q", got, want)
	}
}

// guards S14: the process must be able to end.
func TestAClientThatIsGoneWaitsForNoCheckOfAStoppedAnswer(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, nil, func(r *reply) { r.say("Half"); r.hang() })
	w.agent.o.Checks = []check.Definition{g.check("gate")}
	turn, reports := w.start(say("Go."))
	w.until(deltaEndsWith("Half"))
	turn.Stop(ErrStopped)
	g.begun()
	turn.Stop(ErrClientGone)
	if rep := <-reports; rep.Outcome != transcript.TurnStopped || rep.Cause != "user" || len(rep.Withheld) != 1 {
		t.Errorf("%+v", rep)
	}
}

// guards K5
func TestALatePassAfterTheNextTurnIsRecordedAndChangesNoInput(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("One."); r.done() }, func(r *reply) { r.say("Two."); r.done() })
	w.agent.o.Checks = []check.Definition{exits("a", "3")}
	first := w.run(say("Go."))
	w.agent.o.Checks = []check.Definition{exits("b", "0")}
	w.run(say("On."))
	r, err := w.agent.Recheck(t.Context(), first.Turn)
	if err != nil || r.Admitted || !r.Late || !slices.Equal(r.Ran, []string{"b"}) {
		t.Errorf("%+v, %v", r, err)
	}
	w.run(say("And?"))
	notice := "user [Your last answer was withheld by a check and is not shown here.]\n\nOn."
	if got, want := w.model.contents(t, 3), []string{"user Go.", notice, "assistant Two.", "user And?"}; !slices.Equal(got, want) {
		t.Errorf("the input: %q, want %q", got, want)
	}
}

// guards K2: what a recheck has to say no to.
func TestARecheckSaysWhatItCannotDo(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("One."); r.done() }, func(r *reply) { r.say("Bro"); r.raw("") }, func(r *reply) { r.done() })
	if _, err := w.agent.Recheck(t.Context(), ""); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("before any turn: %v", err)
	}
	w.agent.o.Checks = []check.Definition{exits("a", "1")}
	rejected := w.run(say("Go."))
	if r, err := w.agent.Recheck(t.Context(), ""); err != nil || r.Admitted || len(r.Ran) > 0 || len(r.Withheld) != 1 || r.Withheld[0].Reason != "because" {
		t.Errorf("what was rejected: %+v, %v", r, err)
	}
	w.agent.o.Checks = nil
	if _, err := w.agent.Recheck(t.Context(), rejected.Turn); !errors.Is(err, ErrNoCheck) {
		t.Errorf("without a check: %v", err)
	}
	w.run(say("On."))
	if _, err := w.agent.Recheck(t.Context(), ""); !errors.Is(err, transcript.ErrNoAnswer) {
		t.Errorf("of a broken answer: %v", err)
	}
	if _, err := w.agent.Recheck(t.Context(), "t_none"); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("of no turn: %v", err)
	}
}

// guards P1, K1, C1: hold.
func TestAHeldAnswerIsShownWhenItHasPassedAndNotBefore(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		stop         bool
	}{{"pass", "0", false}, {"reject", "1", false}, {"stop, pass", "0", true}, {"stop, reject", "1", true}} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t)
			said := make(chan struct{})
			w := newWorld(t, nil, func(r *reply) {
				r.reason("Hm. ")
				r.say("The ")
				r.say("answer")
				close(said)
				if tt.stop {
					r.hang()
				}
				r.done()
			}, func(r *reply) { r.done() })
			held := g.check("gate")
			held.Hold = true
			w.agent.o.Checks = []check.Definition{held}
			follower := w.other(t) // another daemon, which reads all of it in the database
			turn, reports := w.start(say("Go."))
			<-said
			if tt.stop { // the deltas that have come are in the journal, and nowhere else
				w.journalled("Hm. The answer")
				turn.Stop(ErrStopped)
			}
			g.begun()
			late, err := w.s.Subscribe(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			all, err := w.store.Entries(t.Context(), w.s.ID(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range w.s.Shown(all) {
				if e.Kind() == transcript.KindAnswer {
					t.Error("the answer may be shown before the verdict")
				}
			}
			g.end(tt.status)
			rep := <-reports
			pass := tt.status == "0"
			if tt.stop && (rep.Kept != nil) != pass {
				t.Errorf("kept: %+v", rep.Kept)
			}
			for name, sub := range map[string]*Subscription{"first": w.sub, "late": late, "follower": follower.sub} {
				order, text := heard(t, sub)
				if want := map[bool]string{true: "Hm. The answer"}[pass]; text != want {
					t.Errorf("%s: shown was %q, want %q", name, text, want)
				}
				want := "turn.started epoch.opened request.sent delta request.ended answer verdict admission turn.ended"
				if order = strings.Replace(order, "stopping ", "", 1); !pass {
					want = strings.Replace(want, "delta ", "", 1)
				}
				if !strings.HasSuffix(order, want) {
					t.Errorf("%s: the order is %s, want %s", name, order, want)
				}
			}
		})
	}
}

// heard is what a subscription tells up to the end of the turn: the kinds in order, deltas that follow each other once, and
// the text of the deltas.
func heard(t *testing.T, sub *Subscription) (order, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var kinds []string
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("%v after %v", err, kinds)
		}
		kind := "stopping"
		switch {
		case ev.Entry != nil:
			kind = string(ev.Entry.Kind())
		case ev.Delta != nil:
			kind = "delta"
			text += ev.Delta.Text
		}
		if n := len(kinds); n == 0 || kind != "delta" || kinds[n-1] != "delta" {
			kinds = append(kinds, kind)
		}
		if kind == "turn.ended" {
			return strings.Join(kinds, " "), text
		}
	}
}

// guards K1: files that a turn has changed are judged with its last answer.
func TestEditsAreJudgedWithTheLastAnswerOfTheirTurn(t *testing.T) {
	script := []func(*reply){
		func(r *reply) {
			r.say("I write.")
			r.call("c1", "write_file", `{"path":"a.txt","content":"one\n"}`)
			r.done()
		},
		func(r *reply) {
			r.say("Again.")
			r.call("c2", "edit_file", `{"path":"a.txt","old":"one","new":"two"}`)
			r.call("c3", "write_file", `{"path":"../b.txt","content":"x"}`)
			r.done()
		},
		func(r *reply) { r.say("Done."); r.done() },
		func(r *reply) { r.say("Nothing changed."); r.done() },
	}
	w := newWorld(t, tools.All(), script...)
	input := filepath.Join(t.TempDir(), "input.json")
	w.agent.o.Checks = []check.Definition{{Name: "edits", On: check.Edits, Shell: "cat >'" + input + "'; ls; exit 1"}}
	rep := w.run(say("Go."))
	if rep.Outcome != transcript.TurnFailed || rep.Cause != transcript.Rejected || len(rep.Withheld) != 1 || rep.Withheld[0].Reason != "a.txt" {
		t.Fatalf("%+v", rep)
	}
	raw, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Answer struct{ Text string }
		Files  []struct{ Path, Before, After string }
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.Answer.Text != "Done." || len(got.Files) != 1 || got.Files[0].Path != "a.txt" ||
		got.Files[0].Before != "" || got.Files[0].After != digest([]byte("two\n")) {
		t.Errorf("the check was given %s, %v", raw, err)
	}
	if rep := w.run(say("And?")); rep.Outcome != transcript.TurnCompleted {
		t.Errorf("a turn without edits: %+v", rep)
	}
}
