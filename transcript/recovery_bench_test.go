package transcript

import (
	"context"
	"fmt"
	"testing"
)

// tenThousand is a session of about 10,000 entries, in turns of so many steps each, whose last turn is open with an answer
// that was being said when its daemon died.
func tenThousand(b *testing.B, s *Store, steps int) *Log {
	b.Helper()
	l := newSession(b, s)
	for l.Seq() < 10_000 {
		turn, sent := start(b, l, prose(200))
		for step := 1; ; step++ {
			if l.Seq() >= 10_000 {
				for range 1000 {
					if err := l.Journal(sent.Request, turn, step, PartText, "a delta of a few words "); err != nil {
						b.Fatal(err)
					}
				}
				return l
			}
			if step == steps {
				conclude(b, l, turn, step, sent.Request, Complete, TurnCompleted, text(prose(400)))
				break
			}
			id := fmt.Sprint("c", step)
			conclude(b, l, turn, step, sent.Request, Complete, "", text(prose(400)), call(id, "write_file", `{"path":"a"}`))
			add(b, l, &ToolStarted{Turn: turn, Step: step, Call: CallID(id), Name: "write_file"},
				&FileChanged{Turn: turn, Step: step, Call: CallID(id), Path: "a"},
				&ToolSettled{Turn: turn, Step: step, Call: CallID(id), Name: "write_file", State: ToolDone, Output: prose(300)})
			sent = send(b, l, sendOf(turn, step+1, nil))
		}
	}
	b.Fatal("the session has no open turn")
	return nil
}

// BenchmarkRecovery is what the next daemon does with a session of 10,000 entries whose daemon was killed: repair it, at most
// 300 ms, and show its newest page, at most 20 ms (issue 3). One turn that is the whole session is the worst that repair
// can meet.
func BenchmarkRecovery(b *testing.B) {
	for name, steps := range map[string]int{"turns of one step": 1, "turns of five steps": 5, "one turn": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			var repair, page median
			for b.Loop() {
				b.StopTimer()
				dead := openStore(b, Options{})
				id := tenThousand(b, dead, steps).Session()
				s := openAt(b, dead.Path(), Options{})
				b.StartTimer()
				repair.time(func() {
					l := reopen(b, s, id)
					if err := l.Lease(b.Context()); err != nil {
						b.Fatal(err)
					}
					got, err := l.Repair(b.Context(), func(string) (string, bool, error) { return "", false, nil })
					if err != nil || len(got) < 3 {
						b.Fatal(len(got), err)
					}
				})
				page.time(func() {
					l := reopen(b, s, id)
					got, err := s.Entries(context.Background(), id, l.Seq()-100, 0)
					if err != nil || len(got) != 100 {
						b.Fatal(len(got), err)
					}
				})
				b.StopTimer()
				s.Close()
				dead.Close()
				b.StartTimer()
			}
			ms := func(m median, what string) {
				b.ReportMetric(float64(m.middle().Microseconds())/1e3, "ms/"+what)
			}
			ms(repair, "repair")
			ms(page, "page")
		})
	}
}
