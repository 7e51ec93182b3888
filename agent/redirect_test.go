package agent

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"fermata/tools"
	"fermata/transcript"
)

const revise = "[The user stopped you. Treat the answer above as a first attempt and revise it as follows.]"

// guards D2, D3, D4, D5
func TestARedirectOfARunningTurnStopsItAndGoesOnFromWhatWasSaid(t *testing.T) {
	w := newWorld(t, tools.All(),
		func(r *reply) { r.say("Long story: "); r.hang() },
		func(r *reply) { r.say("Short: "); r.hang() },
		func(r *reply) { r.say("42."); r.done() })
	first, out1 := w.start(say("Tell."))
	w.until(deltaEndsWith("Long story: "))
	second := w.agent.ReserveRedirect(first.ID())
	out2 := w.runIn(second, say("Shorter."))
	if rep := <-out1; rep.Outcome != transcript.TurnStopped || rep.Kept == nil {
		t.Fatalf("first %+v", rep)
	}
	w.until(deltaEndsWith("Short: "))
	third := w.agent.ReserveRedirect("")
	out3 := w.runIn(third, say("Just the number."))
	if rep := <-out2; rep.Outcome != transcript.TurnStopped {
		t.Fatalf("second %+v", rep)
	}
	if rep := <-out3; rep.Outcome != transcript.TurnCompleted || rep.Session != w.s.ID() {
		t.Fatalf("third %+v", rep)
	}
	got := w.model.messages(t, 3)
	want := []string{"Tell.", "Long story: ", revise + "\n\nShorter.", "Short: ", revise + "\n\nJust the number."}
	if len(got) != len(want) {
		t.Fatalf("input: %s", w.model.body(3))
	}
	for i := range want {
		if *got[i].Content != want[i] {
			t.Errorf("message %d is %q, want %q", i+1, *got[i].Content, want[i])
		}
	}
	info, err := w.store.Turn(t.Context(), third.ID())
	if err != nil || info.Started.Redirects != second.ID() {
		t.Errorf("the log links %q, want %q (%v)", info.Started.Redirects, second.ID(), err)
	}
}

// guards D2, D6, S6
func TestARedirectOfAnEndedTurnNamesIt(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) { r.hang() }, func(r *reply) { r.say("Here."); r.done() })
	first, out := w.start(say("Tell."))
	w.model.arrived(t)
	first.Stop(ErrStopped)
	<-out
	second := w.agent.ReserveRedirect(first.ID())
	if rep, err := second.Run(t.Context(), say("Tell me more.")); err != nil || rep.Outcome != transcript.TurnCompleted {
		t.Fatalf("%+v, %v", rep, err)
	}
	got := w.model.messages(t, 2)
	if len(got) != 2 || *got[0].Content != "Tell." || !strings.HasPrefix(*got[1].Content, "[The user stopped you before you had said anything. What follows replaces") {
		t.Errorf("input: %s", w.model.body(2))
	}
	unknown := w.agent.ReserveRedirect("t_unknown")
	if _, err := unknown.Run(t.Context(), say("x")); !errors.Is(err, transcript.ErrNoTurn) {
		t.Errorf("a redirect of an unknown turn: %v", err)
	}
}

// guards F1, F3, F5, P5
func TestAnAnswerThatBrokeOffIsKeptForPeopleAndFromTheModel(t *testing.T) {
	cases := map[string]struct {
		script func(*reply)
		cause  string
	}{
		"end of stream without the terminal event": {func(r *reply) { r.say("Half an ans") }, "truncated"},
		"an error event":       {func(r *reply) { r.say("Half an ans"); r.raw("data: {\"error\":{\"message\":\"boom\"}}\n\n") }, "overloaded"},
		"a dropped connection": {func(r *reply) { r.say("Half an ans"); panic(http.ErrAbortHandler) }, "connection"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), func(r *reply) {
				r.say("I look.")
				r.call("c1", "list_dir", "{}")
				r.done()
			}, c.script, func(r *reply) { r.say("Good."); r.done() })
			rep := w.run(say("Tell."))
			if rep.Outcome != transcript.TurnFailed || rep.Cause != c.cause || rep.Error == "" {
				t.Fatalf("report %+v", rep)
			}
			entries, err := w.store.Entries(t.Context(), w.s.ID(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			attempt := ""
			for _, e := range entries {
				if a, ok := e.Body.(*transcript.Answer); ok && a.State == transcript.Broken {
					attempt = a.Text()
				}
			}
			if attempt != "Half an ans" {
				t.Errorf("the attempt is %q", attempt)
			}
			w.run(say("Again."))
			got := w.model.messages(t, 3)
			if strings.Contains(w.model.body(3), "Half an ans") || len(got) != 4 || got[2].CallID != "c1" {
				t.Errorf("the next input: %s", w.model.body(3))
			}
			if u := *got[3].Content; u != "[Your last answer broke off by an error and is not shown here.]\n\nAgain." {
				t.Errorf("the next user message: %q", u)
			}
		})
	}
}

// guards M3, M4
func TestInputsOfASessionOnlyGrow(t *testing.T) {
	w := newWorld(t, tools.All(),
		func(r *reply) {
			r.reason("I think")
			r.call("c1", "list_dir", "")
			r.call("c2", "nothing", `{"a":`)
			r.done()
		},
		func(r *reply) { r.say("Done <here>."); r.done() },
		func(r *reply) { r.say("Yes."); r.done() })
	w.run(say("Look."))
	w.run(say("Sure?"))
	for n := 2; n <= 3; n++ {
		before, now := w.model.body(n-1), w.model.body(n)
		if prefix := strings.TrimSuffix(before, "]}"); !strings.HasPrefix(now, prefix+",") {
			t.Errorf("input %d does not extend input %d:\n%s\n%s", n, n-1, before, now)
		}
	}
	requests, err := w.store.Requests(t.Context(), w.s.ID())
	if err != nil || len(requests) != 3 {
		t.Fatalf("%d requests, %v", len(requests), err)
	}
	for i, r := range requests {
		input, err := w.store.Input(t.Context(), r.ID)
		if err != nil || !input.Verified || string(input.Body) != w.model.body(i+1) {
			t.Errorf("request %d: the input shown is not what the model was sent (verified %v, %v)", i+1, input.Verified, err)
		}
	}
}

// guards S1
func TestASecondTurnInABusySessionIsRefusedAndARepeatedOneJoins(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() })
	start := say("Hello")
	start.ClientID = "k1"
	first, out := w.start(start)
	w.until(deltaEndsWith("So "))
	_, err := w.agent.Reserve(w.s.ID()).Run(t.Context(), say("Other"))
	if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Turn != first.ID() {
		t.Errorf("a second turn: %v", err)
	}
	_, joined := w.start(start)
	first.Stop(ErrStopped)
	if a, b := <-out, <-joined; a.Turn != b.Turn || b.Turn != first.ID() {
		t.Errorf("the repeated start reports %s, the first %s", b.Turn, a.Turn)
	}
	again, err := w.agent.Reserve(w.s.ID()).Run(t.Context(), start)
	if err != nil || again.Turn != first.ID() || again.Outcome != transcript.TurnStopped {
		t.Errorf("repeated after the end: %+v, %v", again, err)
	}
}
