package transcript

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// median reports the median of a benchmark's single runs: the mean of a machine that others use says little.
type median []time.Duration

func (m *median) time(f func()) {
	t := time.Now()
	f()
	*m = append(*m, time.Since(t))
}

func (m median) middle() time.Duration {
	slices.Sort(m)
	return m[len(m)/2]
}

func (m median) report(b *testing.B) {
	slices.Sort(m)
	b.ReportMetric(float64(m[len(m)/2].Nanoseconds())/1e3, "µs/median")
	b.ReportMetric(float64(m[0].Nanoseconds())/1e3, "µs/min")
	b.ReportMetric(float64(m[len(m)*99/100].Nanoseconds())/1e3, "µs/p99")
}

// long is a session of turns, each saying size bytes in all: half by the user, half by the model.
func long(b *testing.B, s *Store, turns, size int) (*Log, Sent) {
	b.Helper()
	l := newSession(b, s)
	var sent Sent
	for i := range turns {
		p := fmt.Sprint(i, " ", prose(size/2))
		_, sent = exchange(b, l, p, p)
	}
	return l, sent
}

func BenchmarkJournalOneRow(b *testing.B) {
	s := openStore(b, Options{})
	l := newSession(b, s)
	turn, sent := start(b, l, "q")
	var m median
	for b.Loop() {
		m.time(func() {
			if err := l.Journal(sent.Request, turn, 1, PartText, "a delta of a few words"); err != nil {
				b.Fatal(err)
			}
		})
	}
	m.report(b)
}

// BenchmarkSend is one turn's Send: its user message and the answer before it are new.
func BenchmarkSend(b *testing.B) {
	for _, tt := range []struct{ turns, size int }{{50, 2 << 10}, {1000, 20 << 10}} {
		b.Run(fmt.Sprintf("turn=%d,bytes=%d", tt.turns, tt.size), func(b *testing.B) {
			s := openStore(b, Options{})
			l, _ := long(b, s, tt.turns, tt.size)
			p := prose(tt.size / 2)
			var m, c median
			for b.Loop() {
				turn := NewTurnID()
				var sent Sent
				m.time(func() { sent = send(b, l, sendOf(turn, 1, prompt(turn, p))) })
				c.time(func() { conclude(b, l, turn, 1, sent.Request, Complete, TurnCompleted, text(p)) })
			}
			m.report(b)
			slices.Sort(c)
			b.ReportMetric(float64(c[len(c)/2].Nanoseconds())/1e3, "µs/conclude")
		})
	}
}

func BenchmarkFirstSendOfAColdLog(b *testing.B) {
	s := openStore(b, Options{})
	l, _ := long(b, s, 1000, 20<<10)
	var m median
	for b.Loop() {
		turn := NewTurnID()
		var sent Sent
		m.time(func() {
			l = reopen(b, s, l.Session())
			sent = send(b, l, sendOf(turn, 1, prompt(turn, "q")))
		})
		conclude(b, l, turn, 1, sent.Request, Complete, TurnCompleted, text("a"))
	}
	m.report(b)
}

func BenchmarkInputOfTheThousandth(b *testing.B) {
	s := openStore(b, Options{})
	_, sent := long(b, s, 1000, 20<<10)
	b.Run("input", func(b *testing.B) {
		var m median
		before := cpu()
		for b.Loop() {
			m.time(func() {
				if in := input(b, s, sent.Request); !in.Verified || len(in.Body) < 19e6 {
					b.Fatal(in.Verified, len(in.Body))
				}
			})
		}
		m.report(b)
		b.ReportMetric(float64((cpu()-before).Microseconds())/float64(len(m)), "µs-cpu")
	})
	b.Run("body", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rc, _, err := s.Body(context.Background(), sent.Request)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, rc); err != nil {
				b.Fatal(err)
			}
			rc.Close()
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if r := verify(b, s); len(r.Problems) > 0 {
				b.Fatal(r.Problems)
			}
		}
	})
}

func BenchmarkOpenWithAHundredMegabytes(b *testing.B) {
	s := openStore(b, Options{})
	for range 5 {
		long(b, s, 1000, 20<<10)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var m median
	for b.Loop() {
		m.time(func() {
			s, err := Open(s.Path(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := s.Sessions(context.Background(), SessionQuery{}); err != nil {
				b.Fatal(err)
			}
			s.Close()
		})
	}
	m.report(b)
}

// BenchmarkSizeOfAThousandTurns tells how many bytes are on disk for each byte that was said, with the deltas of every
// answer journalled first, and how large the process became.
func BenchmarkSizeOfAThousandTurns(b *testing.B) {
	for b.Loop() {
		s := openStore(b, Options{})
		l := newSession(b, s)
		said := 0
		for i := range 1000 {
			p := fmt.Sprint(i, " ", prose(10<<10))
			turn, sent := start(b, l, p)
			for at := 0; at < len(p); at += 100 {
				if err := l.Journal(sent.Request, turn, 1, PartText, p[at:min(at+100, len(p))]); err != nil {
					b.Fatal(err)
				}
			}
			conclude(b, l, turn, 1, sent.Request, Complete, TurnCompleted, text(p))
			said += 2 * len(p)
		}
		size := func() (n int64) {
			for _, suffix := range []string{"", "-wal"} {
				if fi, err := os.Stat(s.Path() + suffix); err == nil {
					n += fi.Size()
				}
			}
			return n
		}
		b.ReportMetric(float64(size())/float64(said), "bytes/said-open")
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.HeapAlloc)/(1<<20), "MiB-heap")
		b.ReportMetric(rss(b), "MiB-rss")
		s.Close()
		b.ReportMetric(float64(size())/float64(said), "bytes/said")
	}
}

func rss(b *testing.B) float64 {
	data, err := os.ReadFile(filepath.Join("/proc/self/statm"))
	if err != nil {
		return 0
	}
	var total, resident float64
	fmt.Sscan(string(data), &total, &resident)
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// BenchmarkStats is over 1,000 sessions with 100,000 entries: turns of two steps with a tool call each.
func BenchmarkStats(b *testing.B) {
	s := openStore(b, Options{})
	output := prose(2 << 10)
	for i := range 1000 {
		l, err := s.NewSession(b.Context(), SessionOpened{Workspace: fmt.Sprint("/w", i%10)})
		if err != nil {
			b.Fatal(err)
		}
		for range 9 {
			turn, sent := start(b, l, output[:rand.IntN(500)+1])
			conclude(b, l, turn, 1, sent.Request, Complete, "", text("I look."), call("c1", "read_file", `{"path":"a.go"}`))
			add(b, l, &ToolStarted{Turn: turn, Step: 1, Call: "c1", Name: "read_file", ReadOnly: true},
				&ToolSettled{Turn: turn, Step: 1, Call: "c1", Name: "read_file", State: ToolDone, Output: output})
			sent = send(b, l, sendOf(turn, 2, nil))
			out, state := TurnCompleted, Complete
			if rand.IntN(4) == 0 {
				out, state = TurnStopped, Stopped
			}
			conclude(b, l, turn, 2, sent.Request, state, out, text(output))
		}
	}
	b.ReportAllocs()
	var m median
	for b.Loop() {
		m.time(func() {
			if st, err := s.Stats(b.Context(), StatsQuery{}); err != nil || st.Turns != 9000 {
				b.Fatal(st, err)
			}
		})
	}
	m.report(b)
}
