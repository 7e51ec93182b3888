package agent

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// guards P1, S3, S4, S6, S11, D6
func TestAStopKeepsExactlyWhatWasShown(t *testing.T) {
	cases := map[string]struct {
		script    func(*reply)
		waitFor   string // the shown text ends with it when the stop comes; "" means: as soon as the request was sent
		text      string
		reasoning string
		silent    bool
		notice    string
	}{
		"in the answer": {
			script:  func(r *reply) { r.reason("Hm. "); r.say("One <two> "); r.say("thr"); r.hang() },
			waitFor: "thr", text: "One <two> thr", reasoning: "Hm. ",
			notice: "[The user stopped your answer above where it ends.]",
		},
		"in the reasoning": {
			script:  func(r *reply) { r.reason("First, I "); r.hang() },
			waitFor: "First, I ", reasoning: "First, I ",
			notice: "[The user stopped you while you were still thinking.]",
		},
		"before the first token": {
			script: func(r *reply) { r.raw(": hello\n\n"); r.hang() },
			silent: true, notice: "[The user stopped you before you had said anything.]",
		},
		"before the response headers": {
			script: func(r *reply) { r.hang() },
			silent: true, notice: "[The user stopped you before you had said anything.]",
		},
		"after nothing but white space": {
			script:  func(r *reply) { r.say(" \n"); r.hang() },
			waitFor: " \n", text: " \n", silent: true, notice: "[The user stopped you before you had said anything.]",
		},
		"within a tool call": {
			script: func(r *reply) {
				r.say("I look.")
				r.call("c1", "read_file", `{"pa`)
				r.hang()
			},
			waitFor: "I look.", text: "I look.",
			notice: "[The user stopped your answer above where it ends.]",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), c.script, func(r *reply) { r.say("Good."); r.done() })
			turn, out := w.start(say("Count."))
			var text, reasoning string
			if c.waitFor != "" {
				text, reasoning = w.until(deltaEndsWith(c.waitFor))
			} else {
				w.model.arrived(t)
			}
			turn.Stop(ErrStopped)
			more, moreReasoning := w.until(is[*transcript.TurnEnded])
			text, reasoning = text+more, reasoning+moreReasoning
			rep := <-out
			if text != c.text || reasoning != c.reasoning {
				t.Errorf("shown %q and %q, want %q and %q", text, reasoning, c.text, c.reasoning)
			}
			if rep.Outcome != transcript.TurnStopped || rep.Cause != "user" || rep.Silent != c.silent {
				t.Errorf("report %+v", rep)
			}
			if kept := rep.Kept; c.silent != (kept == nil) || kept != nil && kept.Bytes != int64(len(reasoning)+len(text)) {
				t.Errorf("kept %+v", kept)
			}

			w.run(say("Go on."))
			got := w.model.messages(t, 2)
			want := 3
			if c.silent {
				want = 2
			}
			if len(got) != want {
				t.Fatalf("the next input holds %d messages, want %d: %s", len(got), want, w.model.body(2))
			}
			if !c.silent {
				if a := got[1]; a.Role != "assistant" || *a.Content != text || *a.Reasoning != reasoning || len(a.Calls) > 0 {
					t.Errorf("the next input has the answer %+v, %q, %q; shown were %q, %q", a, *a.Content, *a.Reasoning, text, reasoning)
				}
			}
			if u := got[want-1]; u.Role != "user" || *u.Content != c.notice+"\n\nGo on." {
				t.Errorf("the next user message is %q", *u.Content)
			}
			w.run(say("And?"))
			if n := strings.Count(w.model.body(3), c.notice); n != 1 {
				t.Errorf("the notice stands %d times in the input after that, want once", n)
			}
		})
	}
}

// guards S1
func TestStoppingTwiceIsOneStop(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() })
	turn, out := w.start(say("Hello"))
	w.until(deltaEndsWith("So "))
	var reports [2]Report
	var wg sync.WaitGroup
	for i, id := range []transcript.TurnID{turn.ID(), ""} {
		wg.Go(func() {
			var err error
			if reports[i], err = w.agent.Stop(t.Context(), id, ErrStopped); err != nil && err != ErrNothingRuns {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first := <-out
	again, err := w.agent.Stop(t.Context(), turn.ID(), ErrStopped)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, again), asJSON(t, first); a != b {
		t.Errorf("a stop of the ended turn answers %s, the turn %s", a, b)
	}
	ended := 0
	entries, err := w.store.Entries(t.Context(), w.s.ID(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind() == transcript.KindTurnEnded {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d ends of the turn", ended)
	}
	if _, err := w.agent.Stop(t.Context(), "", ErrStopped); err != ErrNothingRuns {
		t.Errorf("a stop when nothing runs: %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// guards S3: nothing that follows from a stop is told before the stop itself. So the turn must not see it before it is told.
func TestStoppingIsToldFirst(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) { r.call("c1", "run", `{"command":"touch ran"}`); r.done() })
	asked := make(chan struct{})
	w.ask = func(ctx context.Context, q Question) (Reply, error) {
		close(asked)
		<-ctx.Done()
		return Reply{}, nil
	}
	turn, out := w.start(say("Do it."))
	<-asked
	w.s.hub.mu.Lock() // whoever has something to tell waits here
	go turn.Stop(ErrStopped)
	untilWaiting(t, "(*Turn).Stop(", "(*hub).publish(")
	if turn.stopping() {
		t.Error("the turn sees that it is stopped, and nobody was told yet")
	}
	w.s.hub.mu.Unlock()
	<-out
	told := false
	w.until(func(ev Event) bool {
		told = told || ev.Stopping != nil
		if is[*transcript.ToolSettled](ev) && !told {
			t.Error("the receipt was told before the stop")
		}
		return is[*transcript.TurnEnded](ev)
	})
}

// untilWaiting returns when a goroutine waits for a mutex within the functions named.
func untilWaiting(t *testing.T, within ...string) {
	t.Helper()
	for all := make([]byte, 1<<20); t.Context().Err() == nil; runtime.Gosched() {
		for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
			waits := strings.Contains(stack, "[sync.Mutex.Lock")
			for _, f := range within {
				waits = waits && strings.Contains(stack, f)
			}
			if waits {
				return
			}
		}
	}
}

// guards S2
func TestAStopRightBehindTheStartFindsIt(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.hang() })
	turn := w.agent.Reserve(w.s.ID())
	found, ok := w.agent.Turn("")
	if !ok || found != turn {
		t.Fatal("the newest turn is not the reserved one")
	}
	found.Stop(ErrStopped)
	rep, err := turn.Run(t.Context(), say("Hello"))
	if err != nil || rep.Outcome != transcript.TurnStopped || !rep.Silent {
		t.Errorf("%+v, %v", rep, err)
	}
	if len(rep.Prompt) != 1 || rep.Prompt[0].Text != "Hello" {
		t.Errorf("the prompt is not offered back: %+v", rep)
	}
}

// guards S7, S8, S9, S14
func TestAStopSettlesTheToolsOfACompleteAnswer(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) {
		r.say("I run two.")
		r.call("c1", "run", `{"command":"echo one; echo ready; sleep 600; echo two"}`)
		r.call("c2", "run", `{"command":"touch second"}`)
		r.done()
	}, func(r *reply) { r.say("Good."); r.done() })
	w.agent.o.Settle = time.Minute // a machine can be slow to end a process
	turn, out := w.start(say("Do it."))
	w.until(func(ev Event) bool { return ev.Output != nil && strings.Contains(ev.Output.Text, "ready") })
	turn.Stop(ErrStopped)
	rep := <-out
	if rep.Outcome != transcript.TurnStopped || len(rep.Tools) != 2 ||
		rep.Tools[0].State != transcript.ToolStopped || rep.Tools[1].State != transcript.ToolNotStarted ||
		rep.Tools[1].Cause != transcript.CauseStoppedByUser {
		t.Fatalf("report %+v", rep)
	}
	w.run(say("And?"))
	got := w.model.messages(t, 2)
	if len(got) != 5 {
		t.Fatalf("next input: %s", w.model.body(2))
	}
	if r := got[2]; r.CallID != "c1" || !strings.Contains(*r.Content, "one") || !strings.Contains(*r.Content, "stopped") || strings.Contains(*r.Content, "two") {
		t.Errorf("the running call's result: %q", *r.Content)
	}
	if r := got[3]; r.CallID != "c2" || !strings.HasPrefix(*r.Content, "[not run: the user stopped") {
		t.Errorf("the queued call's receipt: %q", *r.Content)
	}
}

// guards S7
func TestAResultThatComesTooLateIsToldOnce(t *testing.T) {
	release := make(chan struct{})
	stubborn := tools.Tool{
		Name: "stubborn", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true,
		Summary: func(json.RawMessage) string { return "stubborn" },
		Check:   func(*workspace.Workspace, json.RawMessage) (tools.Result, bool) { return tools.Result{}, true },
		Ask: func(*workspace.Workspace, json.RawMessage) permit.Call {
			return permit.Call{Tool: "stubborn", ReadOnly: true}
		},
		Run: func(ctx context.Context, _ tools.Env, _ json.RawMessage) tools.Result {
			<-release
			return tools.Result{State: tools.Done, Output: "42 after all"}
		},
	}
	w := newWorld(t, []tools.Tool{stubborn}, func(r *reply) { r.call("c1", "stubborn", ""); r.done() },
		func(r *reply) { r.say("Good."); r.done() })
	turn, out := w.start(say("Do it."))
	w.until(is[*transcript.ToolStarted])
	turn.Stop(ErrStopped)
	rep := <-out
	if len(rep.Tools) != 1 || rep.Tools[0].State != transcript.ToolUnknown {
		t.Fatalf("report %+v", rep)
	}
	close(release)
	w.until(func(ev Event) bool { r, ok := entry[*transcript.ToolSettled](ev); return ok && r.Late })
	w.run(say("And?"))
	w.run(say("Then?"))
	if n := strings.Count(w.model.body(3), "42 after all"); n != 1 {
		t.Errorf("the late result is told %d times: %s", n, w.model.body(3))
	}
}

// guards S8, S14
func TestAStopAnswersThePermissionQuestion(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) {
		r.call("c1", "run", `{"command":"touch ran"}`)
		r.done()
	}, func(r *reply) { r.say("Good."); r.done() })
	asked, ended := make(chan struct{}), make(chan struct{})
	w.ask = func(ctx context.Context, q Question) (Reply, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return Reply{Answer: permit.AllowOnce}, nil
	}
	turn, out := w.start(say("Do it."))
	<-asked
	turn.Stop(ErrStopped)
	rep := <-out
	<-ended
	if len(rep.Tools) != 1 || rep.Tools[0].State != transcript.ToolNotStarted || rep.Tools[0].Cause != transcript.CauseStoppedByUser {
		t.Fatalf("report %+v", rep)
	}
}

// guards S8
func TestADeniedCallIsAResultTheModelCanRead(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) {
		r.call("c1", "run", `{"command":"touch ran"}`)
		r.done()
	}, func(r *reply) { r.say("I see."); r.done() })
	w.ask = func(context.Context, Question) (Reply, error) {
		return Reply{Answer: permit.DenyCall, Why: "not on my machine"}, nil
	}
	rep := w.run(say("Do it."))
	if rep.Outcome != transcript.TurnCompleted || rep.Tools[0].Cause != transcript.CausePermissionDenied {
		t.Fatalf("report %+v", rep)
	}
	if got := w.model.messages(t, 2); len(got) != 3 || !strings.Contains(*got[2].Content, "not on my machine") {
		t.Errorf("next input: %s", w.model.body(2))
	}
}

// guards S13
func TestAClientThatDoesNotReadDelaysNoStop(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) {
		for range 200 {
			r.say("word ")
		}
		r.hang()
	})
	deaf, err := w.s.Subscribe(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	turn, out := w.start(say("Talk."))
	w.until(deltaEndsWith(strings.Repeat("word ", 200)))
	turn.Stop(ErrStopped)
	rep := <-out
	var got strings.Builder
	for {
		ev, err := deaf.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ev.Delta != nil {
			got.WriteString(ev.Delta.Text)
		}
		if is[*transcript.TurnEnded](ev) {
			break
		}
	}
	if int64(got.Len()) != rep.Kept.Bytes {
		t.Errorf("the slow client was shown %d bytes, kept were %d", got.Len(), rep.Kept.Bytes)
	}
}
