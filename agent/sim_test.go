package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fermata/transcript"
)

// order is a case: happenings, and how often a request is tried.
type order struct {
	tries      int
	happenings []happening
}

// begin is the course before the first happening of o that comes after the start.
func (o order) begin() (*course, []happening) {
	rest := o.happenings
	early := len(rest) > 0 && rest[0] == hapEarly
	if early {
		rest = rest[1:]
	}
	return newCourse(o.tries, early), rest
}

// feasible gives every order of up to length happenings, the short ones first. A stop before the start counts as one.
func feasible(length int) (out []order) {
	type node struct {
		order
		c *course
	}
	var level []node
	for _, tries := range []int{1, 2} {
		o := order{tries: tries}
		c, _ := o.begin()
		level = append(level, node{o, c})
		o.happenings = []happening{hapEarly}
		c, _ = o.begin()
		level = append(level, node{o, c})
	}
	for n := 0; n <= length; n++ {
		var next []node
		for _, x := range level {
			if len(x.happenings) > n { // the one that begins with a stop
				next = append(next, x)
				continue
			}
			if x.tries == 1 || slices.Contains(x.happenings, hapTruncated) {
				out = append(out, x.order)
			}
			if n == length {
				continue
			}
			for _, h := range ordered {
				if !x.c.can(h) || !x.again(h) {
					continue
				}
				c := x.c.clone()
				c.do(h)
				next = append(next, node{order{x.tries, append(slices.Clone(x.happenings), h)}, c})
			}
		}
		level = next
	}
	return out
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
	o := order{tries: 1 + rng.IntN(2)}
	if rng.IntN(20) == 0 {
		o.happenings = append(o.happenings, hapEarly)
	}
	c, _ := o.begin()
	for range 8 + rng.IntN(9) {
		var can []happening
		for _, h := range allHappenings {
			if !c.can(h) || (h == hapKill || h == hapGone) && rng.IntN(5) > 0 {
				continue
			}
			can = append(can, h)
		}
		if len(can) == 0 {
			break
		}
		h := can[rng.IntN(len(can))]
		c.do(h)
		o.happenings = append(o.happenings, h)
	}
	return o
}

// run makes an order happen, lets the turn end, asks once more and checks everything. It returns what went wrong.
func (o order) run(t testing.TB, store *transcript.Store, root string) (next []string, problems []error) {
	sim := &simulation{t: t, store: store, root: root, tries: o.tries}
	c, rest := o.begin()
	sim.c = c
	sim.d = sim.daemon(store, "")
	turn := sim.d.agent.Reserve(sim.id)
	if c.early {
		turn.Stop(ErrStopped)
	}
	sim.start(turn, 1)
	synctest.Wait()
	sim.quiet()
	step := func(h happening) bool {
		if len(sim.calm) > 0 || !sim.c.can(h) {
			return false
		}
		sim.make(h)
		sim.c.do(h)
		sim.quiet()
		return true
	}
	for _, h := range rest {
		if !step(h) && len(sim.calm) == 0 {
			sim.fail("%s cannot come here", h)
		}
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
		if d.copied {
			if err := d.store.Close(); err != nil {
				sim.fail("close: %v", err)
			}
		}
	}
}

// testcase is o as a file of testdata/orders.
func (o order) testcase(next []string, why string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n-- order --\ntries %d\n", why, o.tries)
	for _, h := range o.happenings {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintln(&b, "-- next --")
	for _, line := range next {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// perStore is how many orders share a database: a kill copies it.
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
	store, err := transcript.Open(filepath.Join(t.TempDir(), "fermata.db"), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for i := range count {
		o := get(i)
		next, problems := o.run(t, store, t.TempDir())
		if len(problems) > 0 {
			failed.Add(1)
			t.Errorf("%v\n%s", errors.Join(problems...), o.testcase(next, "What broke: "))
		} else if then != nil {
			then(next)
		}
	}
	verifyOrders(t, store)
}

func verifyOrders(t *testing.T, store *transcript.Store) {
	report, err := store.Verify(context.Background(), simEncoders)
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	for _, p := range report.Problems {
		t.Errorf("verify: %v", p)
	}
}
