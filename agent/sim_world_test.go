package agent

import (
	"context"
	"errors"
	"fmt"
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
	t      testing.TB
	stores []*transcript.Store // of one database; the first is the process that runs now
	root   string
	id     transcript.SessionID
	c      *course
	order  order

	atOnce bool // another happening comes with this one: what is fed may find nobody listening
	asks   int  // what the user said
	asked  int  // messages sent
	sent   []*simMessage

	stream   *simStream // as it was before what comes now
	question *simQuestion

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
	done   sync.WaitGroup

	mu       sync.Mutex
	told     []transcript.Entry
	said     []*simSaid
	bodies   map[transcript.RequestID][]byte
	order    []transcript.RequestID
	stream   *simStream
	ask      *simQuestion
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
	id   transcript.TurnID
	done bool
	rep  Report
	err  error
	lost bool // its process was killed before it was in the log
}

type simStop struct {
	done bool
	rep  Report
	err  error
}

// simMessage is one that was sent into the queue.
type simMessage struct {
	done bool
	r    Receipt
	err  error
}

type simStream struct {
	feed chan received
	over chan struct{} // nobody listens any more
}

type simQuestion struct {
	reply chan Reply
	over  chan struct{}
}

type simTool struct {
	ret chan struct{}
	ctx context.Context
}

func (d *simDaemon) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
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
		Store: store, Client: d, Settle: simSettle, Retry: Retry{Tries: sim.order.tries, Base: simBackOff}, Checks: sim.order.definitions(),
		Tools:  []tools.Tool{d.tool("read", true), d.tool("read2", true), d.tool("write", false)},
		Models: d.model,
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
func (sim *simulation) start(t *Turn, what Start) {
	sim.discover()
	d := sim.d
	d.done.Go(func() { // ends with the turn
		if _, err := t.Run(context.Background(), what); err != nil && !d.isDead() {
			d.problem("a turn does not run: %v", err)
		}
	})
}

// ask is a start with the next thing that the user says.
func (sim *simulation) ask() Start {
	sim.asks++
	return say(askText(sim.asks))
}

// discover finds the turns that were reserved since it was last called, also those that messages start.
func (sim *simulation) discover() {
	d := sim.d
	for _, t := range d.agent.Running() {
		if slices.ContainsFunc(sim.turns, func(st *simTurn) bool { return st.id == t.ID() }) {
			continue
		}
		st := &simTurn{id: t.ID()}
		sim.turns = append(sim.turns, st)
		d.done.Go(func() { // ends with the turn
			<-t.Done()
			rep, err := t.Report()
			d.mu.Lock()
			defer d.mu.Unlock()
			if !d.dead {
				st.done, st.rep, st.err = true, rep, err
			}
		})
	}
}

// message sends one into the queue; it has its place when message returns.
func (sim *simulation) message() {
	sim.asked++
	x := &simMessage{}
	sim.sent = append(sim.sent, x)
	m, d, text := sim.d.agent.ReserveMessage(sim.id), sim.d, messageText(sim.asked)
	sim.discover()
	d.done.Go(func() { // ends when the message is in the log, at the latest with the turn
		r, err := m.Send(context.Background(), say(text))
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.dead {
			x.done, x.r, x.err = true, r, err
		}
	})
}

func (sim *simulation) feed(d model.Delta, err error) {
	st := sim.stream
	switch {
	case st != nil && sim.atOnce:
		sim.d.done.Go(func() { // ends at the latest with the stream
			select {
			case st.feed <- received{d: d, err: err}:
			case <-st.over:
			}
		})
	case sim.atOnce:
	case st == nil:
		sim.fail("the model is not being listened to")
	default:
		select {
		case st.feed <- received{d: d, err: err}:
		default:
			sim.fail("the model's stream is not being read")
		}
	}
}

// make lets h happen; the course has not moved yet.
func (sim *simulation) make(h happening) {
	a, b, two := h.both() // without another one a is h
	sim.serve(a)
	sim.serve(b)
	sim.d.mu.Lock()
	sim.stream, sim.question = sim.d.stream, sim.d.ask
	sim.d.mu.Unlock()
	if sim.atOnce = two; two {
		sim.deliver(a)
		sim.deliver(b)
	} else {
		sim.deliver(h)
	}
	synctest.Wait()
	sim.discover()
}

func (sim *simulation) deliver(h happening) {
	c := sim.c
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
		sim.start(sim.d.agent.ReserveRedirect(""), sim.ask())
	case hapNext:
		sim.start(sim.d.agent.Reserve(sim.id), sim.ask())
	case hapMessage:
		sim.message()
	case hapRetry:
		sim.start(sim.d.agent.ReserveRetry(""), Start{})
	case hapKeep:
		if _, err := sim.d.agent.Keep(context.Background(), ""); err != nil {
			sim.fail("keep: %v", err)
		}
	case hapFlawed:
		sim.feed(model.Delta{Kind: model.Text, Text: c.flawedText()}, nil)
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
}

// serve starts another daemon where the client of the last one is gone and h needs one.
func (sim *simulation) serve(h happening) {
	if sim.d.closed && slices.Contains([]happening{hapStop, hapRedirect, hapNext, hapMessage, hapRetry, hapKeep}, h) {
		sim.past = append(sim.past, sim.d)
		sim.d = sim.daemon(sim.d.store, sim.id)
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
	ask := sim.question
	switch {
	case ask != nil:
		sim.d.done.Go(func() { // ends at the latest when the question is withdrawn
			select {
			case ask.reply <- r:
			case <-ask.over:
			}
		})
	case !sim.atOnce:
		sim.fail("nobody is asked for permission")
	}
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

// stop asks for the newest turn to be stopped, with no argument at all while one runs (S1). It is stopped when stop returns.
func (sim *simulation) stop() {
	x := &simStop{}
	sim.stops = append(sim.stops, x)
	d := sim.d
	id := transcript.TurnID("")
	if t, ok := d.agent.Turn(""); ok {
		t.Stop(ErrStopped)
		id = t.ID()
	} else {
		i := len(sim.turns) - 1
		for sim.turns[i].lost {
			i--
		}
		id = sim.turns[i].id
	}
	d.done.Go(func() { // ends with the turn
		rep, err := d.agent.Stop(context.Background(), id, ErrStopped)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.dead {
			x.done, x.rep, x.err = true, rep, err
		}
	})
}

// kill ends the daemon at once, and another one goes on with what it has left behind. The dead one writes nothing more: its
// tools and its client do not come back, and what its turn would write is refused, for the other process has taken its lease
// over (C4).
func (sim *simulation) kill() {
	dead := append(slices.Clone(sim.past), sim.d)
	for _, d := range dead {
		d.mu.Lock()
		d.dead = true
		d.mu.Unlock()
		d.sub.Close()
	}
	sim.stores = append(slices.Clone(sim.stores[1:]), sim.stores[0])
	next := sim.daemon(sim.stores[0], sim.id)
	for _, d := range dead {
		sim.discard(d)
		d.done.Wait()
	}
	sim.past, sim.d = dead, next
	for _, t := range sim.turns {
		if _, err := sim.stores[0].Turn(context.Background(), t.id); errors.Is(err, transcript.ErrNoTurn) {
			t.lost = true
		}
	}
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
