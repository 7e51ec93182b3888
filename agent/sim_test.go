package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fermata/agent/check"
	"fermata/transcript"
)

// order is a case: happenings, and how often a request is tried.
type order struct {
	tries      int
	checks     bool
	happenings []happening
}

// definitions are the checks of an order that has any: each comes to its verdict by itself. What a user configures can be a
// program; the one here cannot be started.
func (o order) definitions() []check.Definition {
	if !o.checks {
		return nil
	}
	return []check.Definition{
		{Name: "flaws", Pattern: []string{flaw}},
		{Name: "nothing", Pattern: []string{"NEVER SAID"}},
		{Name: "edits", Command: []string{filepath.Join(os.TempDir(), "no", "such", "program")}, On: check.Edits},
	}
}

// begin is the course before the first happening of o that comes after the start.
func (o order) begin() (*course, []happening) {
	rest := o.happenings
	early := len(rest) > 0 && rest[0] == hapEarly
	if early {
		rest = rest[1:]
	}
	return newCourse(o.tries, o.checks, early), rest
}

// feasible gives every order of up to length happenings of those given, the short ones first. A stop before the start counts as
// one. What came of an order is told by the first course that may be.
func feasible(length int, of []happening, roots ...order) (out []order) {
	type node struct {
		order
		c *course
	}
	var level []node
	for _, o := range roots {
		c, _ := o.begin()
		level = append(level, node{o, c})
		if slices.Contains(of, hapEarly) {
			o.happenings = []happening{hapEarly}
			c, _ = o.begin()
			level = append(level, node{o, c})
		}
	}
	for n := 0; n <= length; n++ {
		var next []node
		for _, x := range level {
			if len(x.happenings) > n { // the one that begins with a stop
				next = append(next, x)
				continue
			}
			if x.own() {
				out = append(out, x.order)
			}
			if n == length {
				continue
			}
			for _, h := range of {
				if !x.c.can(h) || !x.again(h) {
					continue
				}
				o := x.order
				o.happenings = append(slices.Clone(x.happenings), h)
				next = append(next, node{o, x.c.after(h)[0]})
			}
		}
		level = next
	}
	return out
}

// own reports whether the order is another one than that with one try and without checks.
func (o order) own() bool {
	has := func(what happening) bool {
		return slices.ContainsFunc(o.happenings, func(h happening) bool { return slices.Contains(strings.Split(string(h), atOnce), string(what)) })
	}
	return (o.tries == 1 || has(hapTruncated)) && (!o.checks || has(hapFlawed) || has(hapAllow))
}

// again reports whether h may come once more: each does once, a delta twice.
func (o order) again(h happening) bool {
	n := 0
	for _, was := range o.happenings {
		if was == h {
			n++
		}
	}
	return n == 0 || n == 1 && h == hapDelta
}

// random gives the nth of the random orders: longer ones, of everything that can happen, as often as it may.
func random(n int) order {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	o := order{tries: 1 + rng.IntN(2), checks: rng.IntN(3) == 0}
	if rng.IntN(20) == 0 {
		o.happenings = append(o.happenings, hapEarly)
	}
	c, _ := o.begin()
	for range 8 + rng.IntN(9) {
		from := single
		if rng.IntN(4) == 0 {
			from = allHappenings
		}
		var can []happening
		for _, h := range from {
			if !c.can(h) || (h == hapKill || h == hapGone) && rng.IntN(5) > 0 {
				continue
			}
			can = append(can, h)
		}
		if len(can) == 0 {
			break
		}
		h := can[rng.IntN(len(can))]
		c = c.after(h)[0]
		o.happenings = append(o.happenings, h)
	}
	return o
}

// run makes an order happen, lets the turn end, asks once more and checks everything. It returns what went wrong.
func (o order) run(t testing.TB, stores []*transcript.Store, root string) (next []string, problems []error) {
	sim := &simulation{t: t, stores: stores, root: root, order: o}
	c, rest := o.begin()
	sim.c = c
	sim.d = sim.daemon(stores[0], "")
	turn := sim.d.agent.Reserve(sim.id)
	if c.early {
		turn.Stop(ErrStopped)
	}
	sim.start(turn, sim.ask())
	synctest.Wait()
	sim.quiet([]*course{c})
	step := func(h happening) bool {
		if len(sim.calm) > 0 || !sim.c.can(h) {
			return false
		}
		sim.make(h)
		sim.quiet(sim.c.after(h))
		return true
	}
	open := false // what came at once has come otherwise than the order was made for
	for _, h := range rest {
		if !step(h) && len(sim.calm) == 0 && !open {
			sim.fail("%s cannot come here", h)
		}
		_, _, two := h.both()
		open = open || two || o.checks
	}
	for len(sim.c.waiting) > 0 || sim.c.phase != phaseIdle { // let the turns end
		if !step(hapDeadline) && !step(hapStop) {
			sim.fail("the turn does not end")
			break
		}
	}
	if len(sim.calm) == 0 {
		step(hapNext)
		step(hapDelta)
		next = sim.c.messages
		step(hapDone)
	}
	if len(sim.calm) == 0 {
		if len(sim.past) > 0 {
			<-time.After(followEvery) // the client is told what another daemon has written
			synctest.Wait()
		}
		sim.check()
	}
	sim.end()
	return next, sim.calm
}

// end ends all daemons.
func (sim *simulation) end() {
	daemons := append(slices.Clone(sim.past), sim.d)
	for _, d := range daemons {
		d.mu.Lock()
		d.dead = true
		d.mu.Unlock()
		sim.discard(d)
	}
	for _, d := range daemons {
		d.done.Wait()
	}
}

// testcase is o as a file of testdata/orders.
func (o order) testcase(next []string, why string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n-- order --\ntries %d\n", why, o.tries)
	if o.checks {
		fmt.Fprintln(&b, "checks")
	}
	for _, h := range o.happenings {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintln(&b, "-- next --")
	for _, line := range next {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// perStore is how many orders share a database.
const perStore = 40

// runOrders makes orders happen, shared out to workers with a database each.
func runOrders(t *testing.T, count int, get func(i int) order) {
	var failed atomic.Int64
	t.Run("workers", func(t *testing.T) {
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			t.Run(fmt.Sprint(w+1), func(t *testing.T) {
				t.Parallel()
				for from := w * perStore; from < count; from += workers * perStore {
					synctest.Test(t, func(t *testing.T) {
						runBatch(t, min(perStore, count-from), func(i int) order { return get(from + i) }, nil, &failed)
					})
					if failed.Load() >= 5 {
						return
					}
				}
			})
		}
	})
	if n := failed.Load(); n > 0 {
		t.Errorf("%d orders failed; drop one into testdata/orders to run it by name", n)
	}
}

// runBatch makes orders happen over one database, in a bubble. then, if not nil, is given the messages of each next input.
func runBatch(t *testing.T, count int, get func(i int) order, then func(next []string), failed *atomic.Int64) {
	stores := simStores(t)
	for i := range count {
		o := get(i)
		next, problems := o.run(t, stores, t.TempDir())
		if len(problems) > 0 {
			failed.Add(1)
			t.Errorf("%v\n%s", errors.Join(problems...), o.testcase(next, "What broke: "))
		} else if then != nil {
			then(next)
		}
	}
	verifyOrders(t, stores[0])
}

// simStores opens a database as two processes, the second of which goes on when the first is killed, and the first again when
// the second is. To each the other one counts as dead: what shows that it lives is taken away.
func simStores(t *testing.T) (stores []*transcript.Store) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	empty, err := simEmpty()
	if err == nil {
		err = os.WriteFile(path, empty, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		store, err := transcript.Open(path, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		stores = append(stores, store)
	}
	if err := os.RemoveAll(path + "-owners"); err != nil {
		t.Fatal(err)
	}
	return stores
}

// simEmpty is a new database: making one takes longer than copying it.
var simEmpty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "fermata.db")
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func verifyOrders(t *testing.T, store *transcript.Store) {
	report, err := store.Verify(context.Background(), simEncoders)
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	for _, p := range report.Problems {
		t.Errorf("verify: %v", p)
	}
}
