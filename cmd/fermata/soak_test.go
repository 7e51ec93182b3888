package main

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"fermata/cmd/internal/peer"
)

// soakScenario goes through all that a model does to a turn, over and over. The long reply is there to be stopped in.
const soakScenario = `loop
reply
think "Let me see. "
words 30
reply
rate 2000
words 300
reply
words 20
drop
reply
say "I look. "
call list_dir {}
reply
words 10
reply
words 20
truncate
reply
call run {"command":"echo so far; sleep 0.05; echo done"}
call list_dir {"path":"."}
reply
words 10
reply
status 500
body "no"
reply
rate 2000
musing 300
`

// soak runs turns in one session with random ends: by themselves, stopped, redirected, killed, left. It returns the most
// memory that a daemon had, in MiB, and the most goroutines between turns. newEditor's clean-up verifies the database.
func soak(t testing.TB, turns int, seed uint64) (resident float64, goroutines int) {
	path := ""
	if b, ok := t.(*testing.B); ok {
		var err error
		if path, err = builtBinary(); err != nil {
			b.Fatal(err)
		}
	}
	o := peer.Options{Path: path, Answer: func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil }}
	e := newEditor(t, soakScenario, o)
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	random := rand.New(rand.NewPCG(seed, seed))
	again := func() {
		e.start(o)
		e.Initialize(e.root, nil)
	}
	for range turns {
		e.model.Forget()
		e.Forget()
		start := e.ask(session, "More.")
		if random.IntN(4) > 0 { // some ends come before anything was said
			e.Event("the turn", func(ev peer.Event) bool { return ev.Kind == "delta" || ev.Kind == "turn.ended" })
		}
		switch n := random.IntN(41); {
		case n < 16: // by itself
			e.turn(start)
		case n < 28:
			_ = e.Call("fermata/turn/stop", nil, nil) // refused when the turn has ended already
			e.turn(start)
		case n < 38:
			e.turn(e.Go("fermata/turn/redirect", map[string]any{"prompt": peer.Text("Rather this.")}))
			e.turn(start)
		case n == 38:
			resident = max(resident, rss(t, e.Pid()))
			e.turn(start)
			goroutines = max(goroutines, quitGoroutines(t, e))
			again()
		case n == 39:
			resident = max(resident, rss(t, e.Pid()))
			e.Kill()
			again()
		default:
			resident = max(resident, rss(t, e.Pid()))
			e.CloseStdin()
			e.Exit()
			again()
		}
	}
	resident = max(resident, rss(t, e.Pid()))
	goroutines = max(goroutines, quitGoroutines(t, e))
	again()
	e.quit()
	if left := processesOf(t, e.home); len(left) > 0 {
		t.Errorf("these processes are left: %v", left)
	}
	if goroutines > 40 { // 22 were seen; a leak of one a turn is far above
		t.Errorf("%d goroutines between two turns", goroutines)
	}
	return resident, goroutines
}

// guards P4, S14, C2: and every invariant that Verify checks
func TestASoakLeavesNoProcessNoGoroutineAndACleanDatabase(t *testing.T) {
	t.Parallel()
	_, goroutines := soak(t, 60, 1)
	t.Logf("%d goroutines between turns at most", goroutines)
}

// BenchmarkSoak is 2,000 turns; the seed is the number of the run.
func BenchmarkSoak(b *testing.B) {
	seed := uint64(0)
	resident, goroutines := 0.0, 0
	for b.Loop() {
		seed++
		r, g := soak(b, 2000, seed)
		resident, goroutines = max(resident, r), max(goroutines, g)
	}
	b.ReportMetric(resident, "MiB-resident-at-most")
	b.ReportMetric(float64(goroutines), "goroutines-at-most")
}
