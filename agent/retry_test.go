package agent

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/agent/model"
	"fermata/transcript"
)

// guards F1, F2
func TestATryThatFailsInPassingIsRetractedAndTriedAgain(t *testing.T) {
	w := newWorld(t, nil,
		func(r *reply) { r.say("First "); panic(http.ErrAbortHandler) },
		func(r *reply) { r.w.WriteHeader(http.StatusServiceUnavailable) },
		func(r *reply) { r.say("Third"); r.done() },
		func(r *reply) { r.say("Good."); r.done() })
	w.agent.o.Retry = Retry{Tries: 3, Base: time.Millisecond, Max: time.Second}
	_, out := w.start(say("Tell."))
	if text, _ := w.until(func(ev Event) bool { return ev.Retracted != nil }); text != "First " {
		t.Errorf("before the retraction %q was shown", text)
	}
	text, _ := w.until(is[*transcript.TurnEnded])
	if rep := <-out; rep.Outcome != transcript.TurnCompleted || text != "Third" {
		t.Errorf("%+v; shown at last: %q", rep, text)
	}
	for n := 2; n <= 3; n++ {
		if w.model.body(n) != w.model.body(1) {
			t.Errorf("try %d sent other bytes than try 1", n)
		}
	}
	requests, err := w.store.Requests(t.Context(), w.s.ID())
	if err != nil || len(requests) != 3 || requests[2].Try != 3 || requests[0].Outcome != "broken" || requests[1].Status != 503 {
		t.Errorf("each try is a request of its own: %+v, %v", requests, err)
	}
	w.run(say("And?"))
	if strings.Contains(w.model.body(4), "First ") {
		t.Errorf("the attempt is in the next input: %s", w.model.body(4))
	}
}

// guards F3
func TestWhenTheTriesAreUsedUpTheTurnHasFailed(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.w.WriteHeader(http.StatusInternalServerError) })
	w.agent.o.Retry = Retry{Tries: 3, Base: time.Millisecond, Max: time.Second}
	rep := w.run(say("Tell."))
	requests, err := w.store.Requests(t.Context(), w.s.ID())
	if rep.Outcome != transcript.TurnFailed || rep.Cause != "overloaded" || err != nil || len(requests) != 3 {
		t.Errorf("%+v after %d requests, %v", rep, len(requests), err)
	}
}

// guards S12
func TestAStopInTheBackOffEndsTheTurnAndLeavesTheAttempt(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("First "); panic(http.ErrAbortHandler) }, func(r *reply) { r.say("Good."); r.done() })
	w.agent.o.Retry = Retry{Tries: 3, Base: time.Hour, Max: time.Hour}
	turn, out := w.start(say("Tell."))
	w.until(func(ev Event) bool { return ev.Retracted != nil })
	turn.Stop(ErrStopped)
	if rep := <-out; rep.Outcome != transcript.TurnStopped || rep.Kept != nil || rep.Silent {
		t.Errorf("%+v", rep)
	}
	w.run(say("And?"))
	got := w.model.messages(t, 2)
	if len(got) != 2 || strings.Contains(w.model.body(2), "First ") || *got[1].Content != "[The user stopped you at this point.]\n\nAnd?" {
		t.Errorf("the next input: %s", w.model.body(2))
	}
}

// guards F2
func TestOnlyWhatMayPassIsTriedAgainAndNeverTooSoon(t *testing.T) {
	r := Retry{Tries: 4, Base: time.Second, Max: 3 * time.Second}
	cases := map[string]struct {
		try      int
		failure  model.Error
		min, max time.Duration // max 0: not tried again
	}{
		"the first failure":           {1, model.Error{Class: model.Overloaded}, 500 * time.Millisecond, time.Second},
		"the second waits longer":     {2, model.Error{Class: model.Truncated}, time.Second, 2 * time.Second},
		"the bound holds":             {3, model.Error{Class: model.Connection}, 1500 * time.Millisecond, 3 * time.Second},
		"the tries are used up":       {4, model.Error{Class: model.Overloaded}, 0, 0},
		"the key is wrong":            {1, model.Error{Class: model.Auth}, 0, 0},
		"the request is wrong":        {1, model.Error{Class: model.Rejected}, 0, 0},
		"it is not the protocol":      {1, model.Error{Class: model.Malformed}, 0, 0},
		"the provider says when":      {1, model.Error{Class: model.RateLimited, RetryAfter: 3 * time.Second}, 3 * time.Second, 3 * time.Second},
		"the provider says next week": {1, model.Error{Class: model.RateLimited, RetryAfter: time.Hour}, 0, 0},
		"the provider says now":       {1, model.Error{Class: model.RateLimited, RetryAfter: 0}, 500 * time.Millisecond, time.Second},
		"silence may pass":            {1, model.Error{Class: model.Idle}, 500 * time.Millisecond, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				d, ok := r.wait(c.try, &c.failure)
				if ok != (c.max > 0) || ok && (d < c.min || d > c.max) {
					t.Fatalf("waits %v, %v; want between %v and %v", d, ok, c.min, c.max)
				}
			}
		})
	}
}

func TestManyTriesDoNotOverflowTheWait(t *testing.T) {
	r := Retry{Tries: 1000}.withDefaults()
	for try := 1; try < 1000; try++ {
		if d, ok := r.wait(try, &model.Error{Class: model.Overloaded}); !ok || d <= 0 || d > r.Max {
			t.Fatalf("try %d waits %v", try, d)
		}
	}
}
