package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"fermata/transcript"
)

// registry knows the turns that are reserved or running, in the order in which they were asked for (S2), and the
// sessions that were opened.
type registry struct {
	mu       sync.Mutex
	turns    []*Turn // reserved or running, oldest first
	sessions map[transcript.SessionID]*Session
	newest   transcript.SessionID                       // the session used last
	last     map[transcript.SessionID]transcript.TurnID // of the sessions that were used
	closed   bool
	cause    error         // of the closing
	gone     chan struct{} // closed with it

	unfollow  context.CancelFunc // nil: nobody follows yet
	following sync.WaitGroup
}

// Reserve registers a turn before it runs, so that a stop which arrives right behind finds it (S2). It neither blocks
// nor touches the disk: call it where requests are read, in wire order. Whoever reserves must call [Turn.Run] or
// [Turn.Release] once.
func (a *Agent) Reserve(session transcript.SessionID) *Turn {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.reserve(&Turn{session: session})
}

// ReserveRedirect stops a turn and registers the one that replaces its course, with nothing between (D4). stop can name
// a turn that has ended; "" means the newest that runs, else the one that [Start] names, else the session's or the client's
// last one. Like Reserve it neither blocks nor touches the disk: whether the turn exists is found out by [Turn.Run].
func (a *Agent) ReserveRedirect(stop transcript.TurnID) *Turn {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	prev := a.find(stop)
	if prev == nil {
		return a.reserve(&Turn{session: a.home(stop), redirect: true, redirects: stop})
	}
	prev.Stop(ErrStopped)
	return a.reserve(&Turn{session: prev.Session(), redirect: true, redirects: prev.id, prev: prev})
}

// home is the session of a turn that has ended, as far as it can be told without the disk: of a session's last turn it can. ""
// is the turn that [Agent.ReserveRedirect] and [Agent.ReserveRetry] take then. It is called with the lock held.
//
// Invariant: a message or a start that comes behind a redirect or a retry of a session's last turn finds it (S2)
// (TestAMessageRightBehindARedirectOrARetryWaitsBehindIt).
func (a *Agent) home(id transcript.TurnID) transcript.SessionID {
	if id == "" {
		return a.state.newest
	}
	for s, last := range a.state.last {
		if last == id {
			return s
		}
	}
	return ""
}

// remember notes the last turn of a session.
func (a *Agent) remember(s transcript.SessionID, id transcript.TurnID) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	a.state.last[s] = id
}

// reserve is called with the lock held.
func (a *Agent) reserve(t *Turn) *Turn {
	t.agent, t.id = a, transcript.NewTurnID()
	t.stop, t.begun, t.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	t.inbox.bell, t.left, t.over = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	if a.state.closed {
		t.Stop(a.state.cause)
	}
	a.state.turns = append(a.state.turns, t)
	return t
}

// reserveNext registers the turn that follows another one of its session without a request of its own. nil: the agent is
// closed, or a stop came first. A redirect finds either the one turn or the other (D4).
func (a *Agent) reserveNext(s *Session, after *Turn) *Turn {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	if a.state.closed || after.stopping() {
		return nil
	}
	return a.reserve(&Turn{session: s.ID(), shown: s})
}

// find is called with the lock held. "" is the newest that nobody has stopped, else the newest.
func (a *Agent) find(id transcript.TurnID) *Turn {
	var newest *Turn
	for _, t := range slices.Backward(a.state.turns) {
		if t.id == id {
			return t
		}
		if id == "" {
			if !t.stopping() {
				return t
			}
			if newest == nil {
				newest = t
			}
		}
	}
	return newest
}

// Turn finds a reserved or running turn; "" is the newest.
func (a *Agent) Turn(id transcript.TurnID) (*Turn, bool) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	t := a.find(id)
	return t, t != nil
}

// Running are the reserved and running turns, oldest first.
func (a *Agent) Running() []*Turn {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return slices.Clone(a.state.turns)
}

// Stop stops a turn and waits for its end; "" is the newest that runs. A turn that has ended answers how it ended.
// Errors: [transcript.ErrNoTurn], [ErrNothingRuns], the context's cause.
func (a *Agent) Stop(ctx context.Context, id transcript.TurnID, cause error) (Report, error) {
	t, ok := a.Turn(id)
	if !ok && id == "" {
		return Report{}, ErrNothingRuns
	}
	if !ok {
		return a.report(ctx, id)
	}
	t.Stop(cause)
	select {
	case <-t.done:
		return t.Report()
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	}
}

// forget takes an ended turn out of the registry.
func (a *Agent) forget(t *Turn) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	a.state.turns = slices.DeleteFunc(a.state.turns, func(o *Turn) bool { return o == t })
}

// report tells from the log how a turn ended.
func (a *Agent) report(ctx context.Context, id transcript.TurnID) (Report, error) {
	info, err := a.o.Store.Turn(ctx, id)
	if err != nil {
		return Report{}, err
	}
	entries, err := a.o.Store.Entries(ctx, info.Session, info.Seq-1, 0)
	if err != nil {
		return Report{}, err
	}
	r := newReporter(info.Session, id)
	for _, e := range entries {
		if started, ok := e.Body.(*transcript.TurnStarted); ok && started.Turn != id {
			break
		}
		r.add(e.Body) // what waited may be handed back behind the turn's end
	}
	if r.r.Outcome != "" {
		return r.report(), nil
	}
	return Report{}, fmt.Errorf("%w: turn %s does not run here; stop it there", transcript.ErrLeased, id)
}

// reporter folds a turn's entries into its Report.
type reporter struct {
	r        Report
	queued   []*transcript.MessageQueued
	verdicts []*transcript.Verdict // about the last answer
}

func newReporter(session transcript.SessionID, turn transcript.TurnID) *reporter {
	return &reporter{r: Report{Session: session, Turn: turn}}
}

func (p *reporter) add(b transcript.Body) {
	switch b := b.(type) {
	case *transcript.TurnStarted:
		if b.Turn == p.r.Turn {
			p.r.Prompt = b.Prompt
		}
	case *transcript.ToolStarted:
		if b.Turn == p.r.Turn {
			p.fate(b.Step, b.Call, b.Name).Summary = b.Summary
		}
	case *transcript.ToolSettled:
		if b.Turn == p.r.Turn && !b.Late { // a report says how the turn ended (S1)
			f := p.fate(b.Step, b.Call, b.Name)
			f.State, f.Cause = b.State, b.Cause
		}
	case *transcript.MessageQueued:
		p.queued = append(p.queued, b)
	case *transcript.MessageReturned:
		for _, q := range p.queued {
			if q.Message == b.Message {
				p.r.Returned = append(p.r.Returned, Returned{q.Message, q.ClientID, q.Prompt, b.Cause})
			}
		}
	case *transcript.Answer:
		if b.Turn == p.r.Turn {
			p.verdicts, p.r.Withheld = nil, nil
		}
	case *transcript.Verdict:
		if b.Turn == p.r.Turn {
			p.verdicts = append(p.verdicts, b)
		}
	case *transcript.Admission:
		if b.Turn == p.r.Turn && b.By == "checks" {
			p.r.Withheld = withheldBy(b, p.verdicts)
		}
	case *transcript.TurnEnded:
		if b.Turn == p.r.Turn {
			p.r.Outcome, p.r.Cause, p.r.Error, p.r.Silent, p.r.Kept = b.Outcome, b.Cause, b.Error, b.Silent, b.Kept
		}
	}
}

func (p *reporter) fate(step int, call transcript.CallID, name string) *Fate {
	for i := range p.r.Tools {
		if f := &p.r.Tools[i]; f.Step == step && f.Call == call {
			return f
		}
	}
	p.r.Tools = append(p.r.Tools, Fate{Step: step, Call: call, Name: name})
	return &p.r.Tools[len(p.r.Tools)-1]
}

func (p *reporter) report() Report {
	r := p.r
	r.Tools, r.Returned = slices.Clone(r.Tools), slices.Clone(r.Returned)
	return r
}
