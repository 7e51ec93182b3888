package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"
)

// Each happens at most once in an order, a delta twice. Under the race detector SQLite is ten times slower: there the longer
// orders are a sample. `make bench` goes up to length 7, and through as many random ones as it is told to.
//
// guards P1, P2, P3, P4, P5, S1, S2, S4, S5, S6, S7, S9, S11, S12, D3, D4, D5, D6, F1, F2, C1, C2, C3, M1, M2
func TestEveryOrderOfWhatCanHappenKeepsThePromises(t *testing.T) {
	every(t, simLength, simSample, ordered, plain...)
}

// guards P2, P4, P5, S8, S10, F3, F4, K1, K3
func TestEveryOrderWithMessagesChecksRetriesAndKeepingKeepsThePromises(t *testing.T) {
	every(t, simWidened, simSample, widened, checked...)
}

// Two of them come at once, before the turn has looked at either.
//
// guards P1, P2, P4, P5, S1, S2, S3, S4, S5, S7, S9, S10, D4, F1, F2
func TestWhatComesAtOnceKeepsThePromises(t *testing.T) {
	every(t, simAtOnce, simSample, allHappenings, checked...)
}

// guards P1, P2, P3, P4, P5, S1, S2, S4, S5, S6, S7, S8, S9, S10, S11, S12, D3, D4, D5, D6, F1, F2, F3, F4, C1, C2, C3, K1, K3, M1, M2
func TestRandomOrdersKeepThePromises(t *testing.T) {
	runOrders(t, simRandom, random)
	t.Logf("%d random orders of 8 to 16 happenings", simRandom)
}

// every runs all orders of up to length happenings, and a sample of those that are one longer.
func every(t *testing.T, length, sample int, of []happening, roots ...order) {
	orders := feasible(length+min(sample, 1), of, roots...)
	whole := len(orders)
	if sample > 0 {
		whole = slices.IndexFunc(orders, func(o order) bool { return len(o.happenings) > length })
	}
	longer := orders[whole:]
	orders = orders[:whole:whole]
	for i := range min(sample, len(longer)) {
		orders = append(orders, longer[i*len(longer)/sample])
	}
	runOrders(t, len(orders), func(i int) order { return orders[i] })
	t.Logf("all %d orders of up to %d happenings, and %d of those that are one longer", whole, length, len(orders)-whole)
}

// TestOrders runs the files of testdata/orders. A case is what happens in a turn, one a line, and then the messages of the
// next input. To shrink it, take lines away.
func TestOrders(t *testing.T) {
	files, err := filepath.Glob("testdata/orders/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			o, want := parseOrder(t, file)
			times := 1
			if slices.ContainsFunc(o.happenings, func(h happening) bool { return strings.Contains(string(h), atOnce) }) {
				times = 20 // what comes of it is not always the same
			}
			synctest.Test(t, func(t *testing.T) {
				var failed atomic.Int64
				runBatch(t, times, func(int) order { return o }, func(next []string) {
					if len(want) > 0 && !slices.Equal(next, want) {
						t.Errorf("the next input holds\n%s\nand should hold\n%s", strings.Join(next, "\n"), strings.Join(want, "\n"))
					}
				}, &failed)
			})
		})
	}
}

func parseOrder(t *testing.T, file string) (o order, next []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.tries = 1
	for _, f := range txtar.Parse(data).Files {
		for line := range strings.Lines(string(f.Data)) {
			line = strings.TrimSuffix(line, "\n")
			tries, found := strings.CutPrefix(line, "tries ")
			switch {
			case f.Name == "next":
				next = append(next, line)
			case f.Name != "order":
				t.Fatalf("%s: no section %q", file, f.Name)
			case line == "checks":
				o.checks = true
			case found:
				if o.tries, err = strconv.Atoi(tries); err != nil {
					t.Fatal(err)
				}
			case !slices.Contains(allHappenings, happening(line)):
				t.Fatalf("%s: no happening %q", file, line)
			default:
				o.happenings = append(o.happenings, happening(line))
			}
		}
	}
	return o, next
}

// BenchmarkEveryOrder makes every order of up to 7 happenings happen, once; it takes minutes.
func BenchmarkEveryOrder(b *testing.B) { benchmarkEvery(b, 7, ordered, plain...) }

// BenchmarkEveryWidenedOrder does so up to 5, with all that one can come at a time.
func BenchmarkEveryWidenedOrder(b *testing.B) { benchmarkEvery(b, 5, widened, checked...) }

// BenchmarkEveryOrderAtOnce does so up to 2, with what comes at once too.
func BenchmarkEveryOrderAtOnce(b *testing.B) { benchmarkEvery(b, 2, allHappenings, checked...) }

func benchmarkEvery(b *testing.B, length int, of []happening, roots ...order) {
	orders := feasible(length, of, roots...)
	for b.Loop() {
		simulated(b, len(orders), func(i int) order { return orders[i] })
	}
	b.ReportMetric(float64(len(orders)), "orders")
}

// BenchmarkRandomOrder makes a random order happen, the nth always the same. `make bench BENCH=RandomOrder
// BENCHTIME=1000000x` goes through a million of them.
func BenchmarkRandomOrder(b *testing.B) { simulated(b, b.N, random) }

// simulated runs orders as a test within a benchmark: a synctest bubble needs a test.
func simulated(b *testing.B, count int, get func(i int) order) {
	test := testing.InternalTest{Name: fmt.Sprint(count, " orders"), F: func(t *testing.T) { runOrders(t, count, get) }}
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}) {
		b.Fatal("an order failed")
	}
}

// The beginnings of orders, without checks and with them. What would be the same from two of them comes once.
var (
	plain   = []order{{tries: 1}, {tries: 2}}
	checked = append(slices.Clone(plain), order{tries: 1, checks: true}, order{tries: 2, checks: true})
)
