package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fermata/agent/model"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/transcript"
)

const (
	simSettle  = 40 * time.Millisecond
	simBackOff = 20 * time.Millisecond
)

// simulation makes one order happen to a session of a real agent over a real database. Its network, its tools and its user
// are played: they wait until the order says what they do. It runs in a synctest bubble; everything is quiet between two
// happenings.
type simulation struct {
	t     testing.TB
	store *transcript.Store
	root  string
	id    transcript.SessionID
	c     *course
	tries int

	d     *simDaemon
	past  []*simDaemon // dead or closed, oldest first
	turns []*simTurn   // in the order in which they were asked for
	stops []*simStop
	calm  []error // what went wrong, the first first
}

// simDaemon is one process: an agent with the client that it serves.
type simDaemon struct {
	sim    *simulation
	store  *transcript.Store
	agent  *Agent
	s      *Session
	sub    *Subscription
	dead   bool // killed
	closed bool // its client is gone
	copied bool // its store is a copy of its own
	done   sync.WaitGroup

	mu       sync.Mutex
	told     []transcript.Entry
	said     []*simSaid
	bodies   map[transcript.RequestID][]byte
	order    []transcript.RequestID
	stream   *simStream
	ask      chan Reply
	running  map[string]*simTool
	problems []error
}

// simSaid is an answer as a client was told it.
type simSaid struct {
	turn            transcript.TurnID
	step            int
	text, reasoning string
	over            bool
}

type simTurn struct {
	t    *Turn
	done bool
	rep  Report
	err  error
	lost bool // its process was killed before it was in the log
}

type simStop struct {
	turn *simTurn
	done bool
	rep  Report
	err  error
}

type simStream struct{ feed chan received }

type simTool struct {
	ret chan struct{}
	ctx context.Context
}

func (d *simDaemon) problem(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		d.problems = append(d.problems, fmt.Errorf(format, args...))
	}
}

// daemon starts a process on a database. id is the session that it opens, "" for a new one.
func (sim *simulation) daemon(store *transcript.Store, id transcript.SessionID) *simDaemon {
	d := &simDaemon{sim: sim, store: store, bodies: map[transcript.RequestID][]byte{}, running: map[string]*simTool{}}
	d.agent = New(Options{
		Store: store, Client: d, Settle: simSettle, Retry: Retry{Tries: sim.tries, Base: simBackOff},
		Tools:  []tools.Tool{d.tool("read", true), d.tool("read2", true), d.tool("write", false)},
		Models: func(string) (Model, error) { return Model{Provider: d, ProviderName: "played", Name: "m"}, nil },
	})
	ctx := context.Background()
	var err error
	if id == "" {
		d.s, err = d.agent.NewSession(ctx, SessionOptions{Workspace: sim.root})
	} else {
		d.s, err = d.agent.Open(ctx, id)
	}
	if err == nil {
		d.sub, err = d.s.Subscribe(ctx, 0)
	}
	if err != nil {
		sim.t.Fatalf("a daemon does not start: %v", err)
	}
	sim.id = d.s.ID()
	d.done.Go(d.listen) // ends when the subscription is closed
	return d
}

func (sim *simulation) fail(format string, args ...any) {
	sim.calm = append(sim.calm, fmt.Errorf(format, args...))
}

// start runs a turn; its report is noted when it comes.
func (sim *simulation) start(t *Turn, n int) *simTurn {
	st := &simTurn{t: t}
	sim.turns = append(sim.turns, st)
	d := sim.d
	d.done.Go(func() { // ends with the turn
		rep, err := t.Run(context.Background(), say(fmt.Sprintf("Ask %d.", n)))
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.dead {
			st.done, st.rep, st.err = true, rep, err
		}
	})
	return st
}

func (sim *simulation) feed(d model.Delta, err error) {
	sim.d.mu.Lock()
	st := sim.d.stream
	sim.d.mu.Unlock()
	if st == nil {
		sim.fail("the model is not being listened to")
		return
	}
	select {
	case st.feed <- received{d: d, err: err}:
	default:
		sim.fail("the model's stream is not being read")
	}
}

// make lets h happen; the course has not moved yet.
func (sim *simulation) make(h happening) {
	c := sim.c
	sim.serve(h)
	switch h {
	case hapDelta:
		sim.feed(model.Delta{Kind: model.Text, Text: c.deltaText()}, nil)
	case hapReasoning:
		sim.feed(model.Delta{Kind: model.Reasoning, Text: c.reasoningText()}, nil)
	case hapBlank:
		sim.feed(model.Delta{Kind: model.Text, Text: blankText}, nil)
	case hapDone:
		sim.feed(sim.answer(), nil)
	case hapCallsRW:
		sim.feed(sim.answer("read", "write"), nil)
	case hapCallsWR:
		sim.feed(sim.answer("write", "read"), nil)
	case hapCallsRR:
		sim.feed(sim.answer("read", "read2"), nil)
	case hapError:
		sim.feed(model.Delta{}, &model.Error{Class: model.Rejected, Status: 400, Message: "no"})
	case hapTruncated:
		sim.feed(model.Delta{}, &model.Error{Class: model.Truncated, Message: "the stream ended before the answer was complete"})
	case hapAllow:
		sim.reply(Reply{Answer: permit.AllowOnce})
	case hapDeny:
		sim.reply(Reply{Answer: permit.DenyCall})
	case hapRead, hapRead2, hapWrite:
		name, _, _ := strings.Cut(string(h), " ")
		sim.back(c.find(name, callRunning).key)
	case hapLate:
		sim.back(c.outlived[0].key)
	case hapDeadline:
		<-time.After(simSettle)
	case hapBackOff:
		<-time.After(simBackOff)
	case hapStop:
		sim.stop()
	case hapRedirect:
		sim.start(sim.d.agent.ReserveRedirect(""), c.reserved+1)
	case hapNext:
		sim.start(sim.d.agent.Reserve(sim.id), c.reserved+1)
	case hapGone:
		d := sim.d
		d.closed = true
		d.done.Go(func() { // ends when the last tool is back
			if err := d.agent.Close(context.Background(), ErrClientGone); err != nil {
				d.problem("close: %v", err)
			}
		})
	case hapKill:
		sim.kill()
	}
	synctest.Wait()
}

// serve starts another daemon where the client of the last one is gone and h needs one.
func (sim *simulation) serve(h happening) {
	if sim.d.closed && (h == hapStop || h == hapRedirect || h == hapNext) {
		sim.past = append(sim.past, sim.d)
		sim.d = sim.daemon(sim.d.store, sim.id)
		sim.d.copied, sim.past[len(sim.past)-1].copied = sim.past[len(sim.past)-1].copied, false
	}
}

// answer is the terminal event: what was said in this try, and calls.
func (sim *simulation) answer(calls ...string) model.Delta {
	d := model.Delta{Kind: model.End, Finish: "stop", Usage: &transcript.Usage{Input: 1, Output: 1}}
	if sim.c.reasoning != "" {
		d.Parts = append(d.Parts, transcript.Part{Type: transcript.PartReasoning, Text: sim.c.reasoning})
	}
	if sim.c.text != "" {
		d.Parts = append(d.Parts, transcript.Part{Type: transcript.PartText, Text: sim.c.text})
	}
	for i, name := range calls {
		d.Parts = append(d.Parts, transcript.Part{Type: transcript.PartCall, Call: &transcript.Call{
			ID: transcript.CallID(fmt.Sprint("c", i+1)), Name: name, Args: fmt.Sprintf(`{"key":"%d.%d.%s"}`, sim.c.turn, sim.c.step, name),
		}})
	}
	return d
}

func (sim *simulation) reply(r Reply) {
	sim.d.mu.Lock()
	ask := sim.d.ask
	sim.d.mu.Unlock()
	if ask == nil {
		sim.fail("nobody is asked for permission")
		return
	}
	ask <- r
}

// back lets a tool come back, of whichever daemon it is.
func (sim *simulation) back(key string) {
	for _, d := range append(slices.Clone(sim.past), sim.d) {
		d.mu.Lock()
		k := d.running[key]
		d.mu.Unlock()
		if k != nil && !d.dead {
			close(k.ret)
			return
		}
	}
	sim.fail("%s does not run", key)
}

// stop asks for the newest turn to be stopped, with no argument at all while one runs (S1).
func (sim *simulation) stop() {
	i := len(sim.turns) - 1
	for sim.turns[i].lost {
		i--
	}
	x := &simStop{turn: sim.turns[i]}
	sim.stops = append(sim.stops, x)
	id := transcript.TurnID("")
	if sim.c.phase == phaseIdle {
		id = x.turn.t.ID()
	}
	d := sim.d
	d.done.Go(func() { // ends with the turn
		rep, err := d.agent.Stop(context.Background(), id, ErrStopped)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.dead {
			x.done, x.rep, x.err = true, rep, err
		}
	})
}

// kill goes on with a copy of the database as it is now, as the next process finds it, and throws the daemon away.
func (sim *simulation) kill() {
	path := filepath.Join(sim.t.TempDir(), "fermata.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(sim.d.store.Path() + end)
		if err == nil {
			err = os.WriteFile(path+end, b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			sim.t.Fatal(err)
		}
	}
	sim.past = append(sim.past, sim.d)
	for _, d := range sim.past {
		d.mu.Lock()
		d.dead = true
		d.mu.Unlock()
		sim.discard(d)
	}
	synctest.Wait()
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		sim.t.Fatal(err)
	}
	for _, t := range sim.turns {
		if _, err := store.Turn(context.Background(), t.t.ID()); errors.Is(err, transcript.ErrNoTurn) {
			t.lost = true
		}
	}
	sim.d = sim.daemon(store, sim.id)
	sim.d.copied = true
}

// discard ends what still runs in a daemon.
func (sim *simulation) discard(d *simDaemon) {
	d.mu.Lock()
	for _, k := range d.running {
		close(k.ret)
	}
	clear(d.running)
	d.mu.Unlock()
	d.done.Go(func() { // ends when the turns have
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.agent.Close(ctx, ErrShutdown); err != nil {
			d.problem("close: %v", err)
		}
		d.sub.Close()
	})
}
