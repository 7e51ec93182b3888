package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/agent/check"
	"fermata/tools"
	"fermata/transcript"
)

// Every way in which a turn ends while its daemon lives, but for a storage that fails: what is stored, and what the model is
// sent next. The rows of the table of endings in doc.go name its cases.
//
// guards F1, F2, F3, F5, K1, K2, M2, P5, S1, S2, S3, S4, S6, S11, S12, S14, X4, invariant 2
func TestEveryEndingEndsTheTurnOnce(t *testing.T) {
	const (
		before = "[The last turn ended with an error before you had answered.]"
		broke  = "[Your last answer broke off by an error and is not shown here.]"
		silent = "[The user stopped you before you had said anything.]"
		here   = "[The user stopped your answer above where it ends.]"
		point  = "[The user stopped you at this point.]"
		held   = "[Your last answer was withheld by a check and is not shown here.]"
	)
	list := func(r *reply) { r.call("c1", "list_dir", "{}"); r.done() }
	half := func(end func(*reply)) func(*reply) {
		return func(r *reply) { r.say("Half an ans"); end(r) }
	}
	refuse := func(status int) func(*reply) {
		return func(r *reply) { r.w.WriteHeader(status); r.raw(`{"error":{"message":"no"}}`) }
	}
	drop := func(*reply) { panic(http.ErrAbortHandler) }
	cases := map[string]struct {
		scripts []func(*reply) // one for each request of the turn
		set     func(*Options)
		stopAt  func(Event) bool // the turn is stopped when it matches
		arrived int              // the turn is stopped when so many requests have come whole
		cause   error            // of that stop
		outcome transcript.Outcome
		why     string
		stored  string // the answers, each with its admission; what became of the calls
		next    string // the messages of the next request
	}{
		"completed": {
			scripts: []func(*reply){func(r *reply) { r.say("Done."); r.done() }},
			outcome: transcript.TurnCompleted, stored: `complete "Done." admitted`, next: "user: Tell.|assistant: Done.|user: Go on.",
		},
		"completed after tools": {
			scripts: []func(*reply){list, func(r *reply) { r.say("Done."); r.done() }},
			outcome: transcript.TurnCompleted, stored: `complete "" admitted, c1 done, complete "Done." admitted`,
			next: "user: Tell.|assistant: |tool: (the folder is empty)|assistant: Done.|user: Go on.",
		},
		"completed at the second try": {
			scripts: []func(*reply){half(drop), func(r *reply) { r.say("Done."); r.done() }},
			set:     func(o *Options) { o.Retry = Retry{Tries: 2, Base: time.Millisecond} },
			outcome: transcript.TurnCompleted, stored: `broken "Half an ans" withheld, complete "Done." admitted`,
			next: "user: Tell.|assistant: Done.|user: Go on.",
		},
		"stopped in the answer": {
			scripts: []func(*reply){half((*reply).hang)},
			stopAt:  deltaEndsWith("ans"), cause: ErrStopped,
			outcome: transcript.TurnStopped, why: "user", stored: `stopped "Half an ans" admitted`,
			next: "user: Tell.|assistant: Half an ans|user: " + here + "\n\nGo on.",
		},
		"stopped before a word": {
			scripts: []func(*reply){(*reply).hang},
			arrived: 1, cause: ErrStopped,
			outcome: transcript.TurnStopped, why: "user", next: "user: Tell.|user: " + silent + "\n\nGo on.",
		},
		"stopped before a word, after tools": {
			scripts: []func(*reply){list, (*reply).hang},
			arrived: 2, cause: ErrStopped,
			outcome: transcript.TurnStopped, why: "user", stored: `complete "" admitted, c1 done`,
			next: "user: Tell.|assistant: |tool: (the folder is empty)|user: " + point + "\n\nGo on.",
		},
		"stopped in the back-off": {
			scripts: []func(*reply){half(drop)},
			set:     func(o *Options) { o.Retry = Retry{Tries: 2, Base: time.Hour, Max: time.Hour} },
			stopAt:  func(ev Event) bool { return ev.Retracted != nil }, cause: ErrStopped,
			outcome: transcript.TurnStopped, why: "user", stored: `broken "Half an ans" withheld`,
			next: "user: Tell.|user: " + point + "\n\nGo on.",
		},
		"the client is gone": {
			scripts: []func(*reply){half((*reply).hang)},
			stopAt:  deltaEndsWith("ans"), cause: ErrClientGone,
			outcome: transcript.TurnStopped, why: "client_gone", stored: `stopped "Half an ans" admitted`,
			next: "user: Tell.|assistant: Half an ans|user: [The user's editor was closed, which stopped your answer above where it ends.]\n\nGo on.",
		},
		"shutdown": {
			scripts: []func(*reply){half((*reply).hang)},
			stopAt:  deltaEndsWith("ans"), cause: ErrShutdown,
			outcome: transcript.TurnStopped, why: "shutdown", stored: `stopped "Half an ans" admitted`,
			next: "user: Tell.|assistant: Half an ans|user: [fermata was shut down, which stopped your answer above where it ends.]\n\nGo on.",
		},
		"truncated": {
			scripts: []func(*reply){half(func(*reply) {})},
			outcome: transcript.TurnFailed, why: "truncated", stored: `broken "Half an ans" withheld`,
			next: "user: Tell.|user: " + broke + "\n\nGo on.",
		},
		"an error event": {
			scripts: []func(*reply){half(func(r *reply) { r.raw("data: {\"error\":{\"message\":\"boom\"}}\n\n") })},
			outcome: transcript.TurnFailed, why: "overloaded", stored: `broken "Half an ans" withheld`,
			next: "user: Tell.|user: " + broke + "\n\nGo on.",
		},
		"a dropped connection": {
			scripts: []func(*reply){half(drop)},
			outcome: transcript.TurnFailed, why: "connection", stored: `broken "Half an ans" withheld`,
			next: "user: Tell.|user: " + broke + "\n\nGo on.",
		},
		"rejected": {
			scripts: []func(*reply){refuse(http.StatusBadRequest)},
			set:     func(o *Options) { o.Retry = Retry{Tries: 5, Base: time.Millisecond} }, // not one of them is used
			outcome: transcript.TurnFailed, why: "rejected", next: "user: Tell.|user: " + before + "\n\nGo on.",
		},
		"a wrong key": {
			scripts: []func(*reply){refuse(http.StatusUnauthorized)},
			outcome: transcript.TurnFailed, why: "auth", next: "user: Tell.|user: " + before + "\n\nGo on.",
		},
		"the tries are used up": {
			scripts: []func(*reply){half(drop), refuse(http.StatusServiceUnavailable)},
			set:     func(o *Options) { o.Retry = Retry{Tries: 2, Base: time.Millisecond} },
			outcome: transcript.TurnFailed, why: "overloaded", stored: `broken "Half an ans" withheld`,
			next: "user: Tell.|user: " + broke + "\n\nGo on.",
		},
		"failed after tools": {
			scripts: []func(*reply){list, half(drop)},
			outcome: transcript.TurnFailed, why: "connection", stored: `complete "" admitted, c1 done, broken "Half an ans" withheld`,
			next: "user: Tell.|assistant: |tool: (the folder is empty)|user: " + broke + "\n\nGo on.",
		},
		"max_steps": {
			scripts: []func(*reply){list},
			set:     func(o *Options) { o.MaxSteps = 1 },
			outcome: transcript.TurnFailed, why: "max_steps", stored: `complete "" admitted, c1 done`,
			next: "user: Tell.|assistant: |tool: (the folder is empty)|user: " + "[The last turn ended at its limit of model requests.]" + "\n\nGo on.",
		},
		"withheld": {
			scripts: []func(*reply){func(r *reply) { r.say("A secret."); r.call("c1", "list_dir", "{}"); r.done() }},
			set:     func(o *Options) { o.Checks = []check.Definition{{Name: "no-secrets", Pattern: []string{"secret"}}} },
			outcome: transcript.TurnFailed, why: "rejected", stored: `complete "A secret." withheld`,
			next: "user: Tell.|user: " + held + "\n\nGo on.",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), append(c.scripts, func(r *reply) { r.say("Good."); r.done() })...)
			if c.set != nil {
				c.set(&w.agent.o)
				w.agent.o.Retry = w.agent.o.Retry.withDefaults()
			}
			ctx, stop := context.WithCancelCause(t.Context())
			turn, out := w.agent.Reserve(w.s.ID()), make(chan Report, 1)
			go func() {
				r, err := turn.Run(ctx, say("Tell."))
				if err != nil {
					t.Error(err)
				}
				out <- r
			}()
			if c.stopAt != nil {
				w.until(c.stopAt)
			}
			for range c.arrived {
				w.model.arrived(t)
			}
			if c.cause != nil {
				stop(c.cause)
			}
			r := <-out
			stop(nil)
			if r.Outcome != c.outcome || r.Cause != c.why || (r.Error != "") != (c.outcome == transcript.TurnFailed) {
				t.Fatalf("the turn ended %+v, want %s %s", r, c.outcome, c.why)
			}
			entries, err := w.store.Entries(t.Context(), w.s.ID(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var ends []*transcript.TurnEnded
			for _, e := range entries {
				if b, ok := e.Body.(*transcript.TurnEnded); ok {
					ends = append(ends, b)
				}
			}
			if len(ends) != 1 || ends[0].Turn != turn.ID() || entries[len(entries)-1].Body != transcript.Body(ends[0]) {
				t.Fatalf("the log: %s", w.dump())
			}
			if measured := ends[0].StopMillis > 0; measured != (c.outcome == transcript.TurnStopped) {
				t.Errorf("the stop took %d ms", ends[0].StopMillis)
			}
			if got := storedOf(entries); got != c.stored {
				t.Errorf("stored is %s, want %s", got, c.stored)
			}
			if r := w.run(say("Go on.")); r.Outcome != transcript.TurnCompleted {
				t.Fatalf("the session does not go on: %+v", r)
			}
			if got := nextOf(w.model.messages(t, len(w.model.bodies))); got != c.next {
				t.Errorf("the next request holds\n%s\nwant\n%s", got, c.next)
			}
		})
	}
}

// storedOf says which answers a log holds, whether they are admitted, and what became of their calls.
func storedOf(entries []transcript.Entry) string {
	var out []string
	at := map[int64]int{}
	for _, e := range entries {
		switch b := e.Body.(type) {
		case *transcript.Answer:
			at[e.Seq] = len(out)
			out = append(out, fmt.Sprintf("%s %q", b.State, b.Text()))
		case *transcript.Admission:
			out[at[b.Answer]] += map[bool]string{true: " admitted", false: " withheld"}[b.Admitted]
		case *transcript.ToolSettled:
			out = append(out, fmt.Sprintf("%s %s", b.Call, b.State))
		}
	}
	return strings.Join(out, ", ")
}

func nextOf(messages []message) string {
	var out []string
	for _, m := range messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		out = append(out, m.Role+": "+text)
	}
	return strings.Join(out, "|")
}
