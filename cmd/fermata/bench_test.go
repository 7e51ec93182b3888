package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/cmd/internal/peer"
)

// The whole-process figures: the real binary, built once, between a client on stdio and a model on HTTP. The client's
// and the model's own work is in every figure. Medians and 99th percentiles are of single events.

var builtBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fermata")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// benchEditor is newEditor over the built binary, with a session.
func benchEditor(b *testing.B, scenario string) (e *editor, session string) {
	b.Helper()
	path, err := builtBinary()
	if err != nil {
		b.Fatal(err)
	}
	e = newEditor(b, scenario, peer.Options{Path: path})
	e.Initialize(e.root, nil)
	return e, e.NewSession(e.root)
}

// durations is a sample; report prints its median and 99th percentile in milliseconds.
type durations []time.Duration

func (d durations) report(b *testing.B, name string) {
	b.Helper()
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(d[min(len(d)*99/100, len(d)-1)].Microseconds())/1000, name+"-p99-ms")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkProviderByteToClientByte(b *testing.B) {
	b.Run("at 200 deltas a second", func(b *testing.B) {
		e, session := benchEditor(b, "reply\nstamp\nrate 200\nwords 1000\n")
		var d durations
		for b.Loop() {
			before := len(e.Events())
			e.turn(e.ask(session, "Count."))
			for _, ev := range e.Events()[before:] {
				if ev.Kind == "delta" {
					for field := range strings.FieldsSeq(ev.Text) {
						if stamp, ok := strings.CutPrefix(field, "@"); ok {
							if ns, err := strconv.ParseInt(stamp, 10, 64); err == nil {
								d = append(d, time.Duration(ev.At.UnixNano()-ns))
							}
						}
					}
				}
			}
		}
		d.report(b, "latency")
	})
	b.Run("sustained", func(b *testing.B) {
		const words = 100_000
		e, session := benchEditor(b, "reply\nwords "+strconv.Itoa(words)+"\n")
		begun := time.Now()
		n := 0
		for b.Loop() {
			e.turn(e.ask(session, "Count."))
			n += words
		}
		b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "deltas/s")
	})
}

func BenchmarkStop(b *testing.B) {
	e, session := benchEditor(b, "reply\nsay \"Once upon a time \"\nhang\n")
	var closed, answered durations
	request := 0
	for b.Loop() {
		request++
		start := e.ask(session, "Tell.")
		r, err := e.model.Await(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		e.WaitForEvents("the text", func(events []peer.Event) bool {
			n = 0
			for _, ev := range events {
				if ev.Kind == "delta" {
					n++
				}
			}
			return n >= request
		})
		frame, id := e.Request("fermata/turn/stop", nil)
		begun := time.Now()
		e.Write(frame)
		reply := e.Reply(id)
		<-r.Closed()
		closed = append(closed, r.ClosedAt().Sub(begun))
		answered = append(answered, reply.At.Sub(begun))
		e.Reply(start)
	}
	closed.report(b, "closed")
	answered.report(b, "answered")
}

func BenchmarkStartToRequest(b *testing.B) {
	for _, c := range []struct{ turns, bytes int }{{50, 2 << 10}, {1000, 20 << 10}} {
		b.Run(fmt.Sprintf("in turn %d of %d KB", c.turns, c.bytes>>10), func(b *testing.B) {
			e, session := benchEditor(b, fmt.Sprintf("reply\nsize 512\nsay %q\n", prose(c.bytes)))
			for range c.turns {
				e.turn(e.ask(session, "More."))
				e.model.Forget()
				e.Forget()
			}
			b.ReportMetric(rss(b, e.Pid()), "MiB-after")
			var d durations
			n := c.turns
			for b.Loop() {
				n++
				frame, id := e.Request("fermata/turn/start", map[string]any{"session": session, "prompt": peer.Text("More.")})
				begun := time.Now()
				e.Write(frame)
				e.turn(id)
				r, err := e.model.Await(b.Context(), n)
				if err != nil {
					b.Fatal(err)
				}
				d = append(d, r.Began.Sub(begun))
				e.model.Forget()
				e.Forget()
			}
			d.report(b, "request")
			b.ReportMetric(rss(b, e.Pid()), "MiB-resident")
			b.ReportMetric(e.databaseRatio(b, n*c.bytes), "database/said")
			shown := showEach(b, e, session)
			shown.report(b, "shown")
		})
	}
}

// prose is text of n bytes that is not the same twice in a row.
func prose(n int) string {
	var s strings.Builder
	for i := 0; s.Len() < n; i++ {
		fmt.Fprintf(&s, "%s %d ", []string{"the", "turn", "goes", "on", "where", "it", "was"}[i*i%7], i*7919%1000)
	}
	return s.String()[:n]
}

// databaseRatio is the size of the database, its log included, against the bytes said.
func (e *editor) databaseRatio(b *testing.B, said int) float64 {
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(e.database() + suffix); err == nil {
			size += info.Size()
		}
	}
	return float64(size) / float64(said)
}

// showEach shows ten model inputs of the session, the newest among them, as `fermata input --raw` does.
func showEach(b *testing.B, e *editor, session string) (d durations) {
	b.Helper()
	var list struct {
		Requests []struct {
			Request string `json:"request"`
		} `json:"requests"`
	}
	e.Must("fermata/request/list", map[string]any{"session": session}, &list)
	path, err := builtBinary()
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10 {
		id := list.Requests[len(list.Requests)-1-i*len(list.Requests)/10].Request
		cmd := exec.Command(path, "input", "--raw", id)
		cmd.Dir, cmd.Env = e.root, e.env
		begun := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("fermata input: %v", err)
		}
		d = append(d, time.Since(begun))
	}
	return d
}

func BenchmarkSpawnToInitialize(b *testing.B) {
	e, session := benchEditor(b, fmt.Sprintf("reply\nsize 65536\nsay %q\n", prose(1<<20)))
	for range 100 {
		e.turn(e.ask(session, "More."))
	}
	e.quit()
	path, err := builtBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(e.databaseRatio(b, 1<<20), "database-MiB")
	var d durations
	var idle []float64
	for b.Loop() {
		begun := time.Now()
		e.start(peer.Options{Path: path})
		m := e.Initialize(e.root, nil)
		d = append(d, m.At.Sub(begun))
		e.Must("fermata/session/list", nil, nil)
		idle = append(idle, rss(b, e.Pid()))
		e.quit()
	}
	d.report(b, "initialize")
	slices.Sort(idle)
	b.ReportMetric(idle[len(idle)/2], "MiB-idle")
}

func BenchmarkTurn(b *testing.B) {
	e, session := benchEditor(b, "reply\nsize 8\nsay "+strconv.Quote(prose(2<<10))+"\n")
	e.turn(e.ask(session, "More."))
	before := cpu(b, e.Pid())
	n := 0
	for b.Loop() {
		e.turn(e.ask(session, "More."))
		n++
	}
	b.ReportMetric(float64((cpu(b, e.Pid())-before).Microseconds())/1000/float64(n), "cpu-ms/turn")
}
