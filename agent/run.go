package agent

import (
	"context"
	"io"
	"slices"
	"time"

	"fermata/agent/model"
	"fermata/transcript"
)

// run is a turn while it runs: the state that its one goroutine owns. Every transition appends to the log first and
// tells clients after.
type run struct {
	*Turn
	s        *Session
	m        Model
	reporter *reporter
	past     past   // of this turn: what the next one's notice will tell
	began    bool   // turn.started is in the log
	spoke    bool   // an answer of this turn is in the log: the turn is not silent (S6)
	answered judged // the last one
	edits    edits
	withheld []Withholding // why checks withheld it; nil: they did not
	queue    []waiting
	fresh    *transcript.MessageQueued // to be recorded with turn.started
}

func newRun(t *Turn, s *Session, m Model) *run {
	return &run{Turn: t, s: s, m: m, reporter: newReporter(s.ID(), t.id)}
}

// told takes note of committed entries and tells clients of them.
func (r *run) told(entries []transcript.Entry) {
	for _, e := range entries {
		r.reporter.add(e.Body)
		r.past.add(e.Body)
		r.edits.add(e.Body)
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			r.began = true
			close(r.begun)
		case *transcript.Answer:
			r.spoke, r.answered = true, judged{b, e.Seq}
		case *transcript.TurnEnded:
			close(r.over)
		}
	}
	r.s.known.told(entries)
	r.s.hub.publishEntries(entries)
}

// notice is what the turn that begins now tells the model of what was before.
func (s *Session) notice(ctx context.Context, redirects transcript.TurnID) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hub.tookForeign() || s.stale {
		p, err := readPast(ctx, s.agent.o.Store, s.ID(), s.hub.seq())
		if err != nil {
			return "", err
		}
		s.past, s.stale = p, false
	}
	return s.past.notice(redirects), nil
}

// causeMaxSteps is the cause of a turn that failed at [Options].MaxSteps.
const causeMaxSteps = "max_steps"

// run goes step by step until the session waits for the user again. Invariant: a turn whose turn.started was told ends
// with exactly one turn.ended (invariant 2). Tests: TestEveryEndingEndsTheTurnOnce.
func (r *run) run(ctx context.Context, start Start) (Report, error) {
	notice, err := r.s.notice(ctx, start.Redirects)
	if err != nil {
		return Report{}, err
	}
	changed, line, err := r.s.news(ctx, r.stopping)
	if err != nil {
		return Report{}, err
	}
	notice = joinLines(notice, line)
	if start.Retries != "" {
		notice = retryNotice(notice)
	}
	started := &transcript.TurnStarted{
		Turn: r.id, ClientID: start.ClientID, Prompt: start.Prompt, Notice: notice,
		Redirects: start.Redirects, Retries: start.Retries, Queued: start.messages, Anchor: start.Anchor, Changed: changed,
	}
	r.fresh = start.queued
	if r.agent.o.More != nil && r.s.Workspace() != "" { // P4: what the user said does not wait until servers have started
		if err = r.begin(ctx, started); err == nil {
			started = nil
			r.offer(ctx)
		}
	}
	if err == nil {
		err = r.steps(ctx, started)
	}
	if err == nil {
		r.s.mu.Lock()
		r.s.past = r.past
		r.s.mu.Unlock()
		return r.reporter.report(), nil
	}
	// The log refused an entry: a full disk, a lost lock. What was told stays told; the next turn repairs the log first.
	r.s.mu.Lock()
	r.s.dirty = true
	r.s.mu.Unlock()
	if !r.began {
		return Report{}, err
	}
	r.agent.o.Log.Error("the turn could not be recorded to its end", "turn", r.id, "err", err)
	rep := r.reporter.report()
	if rep.Outcome == "" {
		rep.Outcome, rep.Cause, rep.Error = transcript.TurnFailed, "storage", err.Error()
	}
	return rep, nil
}

// steps returns an error only when the log refused.
func (r *run) steps(ctx context.Context, started *transcript.TurnStarted) error {
	for step := 1; ; step++ {
		if r.stopping() {
			return r.endStopped(ctx, started, nil)
		}
		if step > r.agent.o.MaxSteps {
			return r.end(ctx, &transcript.TurnEnded{Outcome: transcript.TurnFailed, Cause: causeMaxSteps,
				Error: "the turn reached its limit of model requests (limits.max_steps); ask again to go on"})
		}
		answer, ended, err := r.step(ctx, step, started)
		if err != nil || ended {
			return err
		}
		started = nil
		if err := r.runTools(ctx, step, answer); err != nil {
			return err
		}
	}
}

// begin records that the turn has started, apart from its first request.
func (r *run) begin(ctx context.Context, started *transcript.TurnStarted) error {
	first := []transcript.Body{started}
	if r.fresh != nil {
		first = []transcript.Body{r.fresh, started}
		r.fresh = nil
	}
	entries, err := r.s.log.Append(ctx, first...)
	if err != nil {
		return err
	}
	r.told(entries)
	return nil
}

// endStopped ends the turn as stopped. started is not nil when nothing of the turn is in the log yet.
func (r *run) endStopped(ctx context.Context, started *transcript.TurnStarted, kept *transcript.Kept) error {
	if started != nil {
		if err := r.begin(ctx, started); err != nil {
			return err
		}
	}
	return r.end(ctx, &transcript.TurnEnded{Outcome: transcript.TurnStopped, Cause: r.stopCause(), Silent: !r.spoke, Kept: kept, Withheld: names(r.withheld)})
}

// end ends the turn; what stands before its end is written with it.
func (r *run) end(ctx context.Context, ended *transcript.TurnEnded, before ...transcript.Body) error {
	ended.Turn = r.id
	if ended.Outcome == transcript.TurnStopped {
		ended.StopMillis = r.stopMillis()
	}
	returned, done := r.returning(r.returnCause(ended.Outcome))
	entries, err := r.s.log.Append(ctx, slices.Concat(before, returned, []transcript.Body{ended})...)
	if err == nil {
		r.told(entries)
	}
	done(err)
	return err
}

// step sends one request and takes its answer, trying again what failed in passing (F2). ended says that the turn is over.
func (r *run) step(ctx context.Context, step int, started *transcript.TurnStarted) (answer *transcript.Answer, ended bool, err error) {
	f, err := r.s.frame(r.m)
	if err != nil {
		return nil, false, err
	}
	for try := 1; ; try++ {
		st, err := r.send(ctx, step, try, f, started)
		if err != nil {
			return nil, false, err
		}
		started = nil
		answer, ended, failure, err := st.follow(ctx)
		st.close()
		if err != nil || failure == nil {
			return answer, ended, err
		}
		wait, again := r.agent.o.Retry.wait(try, failure)
		if err := st.broken(ctx, failure, !again); err != nil || !again {
			return nil, true, err
		}
		if r.stopped(ctx, wait) { // S12
			return nil, true, r.endStopped(ctx, nil, nil)
		}
	}
}

// stopped waits; true when the turn was stopped before the wait was over.
func (r *run) stopped(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return true
		case <-r.inbox.bell:
			r.receive(ctx)
		case <-timer.C:
			return r.stopping()
		}
	}
}

// send stores a request and opens its stream. The caller closes it.
func (r *run) send(ctx context.Context, step, try int, f frame, started *transcript.TurnStarted) (*stream, error) {
	provider := r.m.Provider
	var queued *transcript.MessageQueued
	var delivered []*transcript.MessageDelivered
	switch {
	case started != nil:
		queued = r.fresh
	case try == 1 && step > 1:
		r.receive(ctx)
		delivered = r.delivered(step)
	}
	hold := r.holds()
	sent, err := r.s.log.Send(ctx, transcript.Send{
		Held:   hold,
		Queued: queued, Started: started, Delivered: delivered, Turn: r.id, Step: step, Try: try,
		Route: provider.Route(), Provider: r.m.ProviderName, Model: r.m.Name, Enc: provider.Dialect(),
		Head: f.head, Tail: f.tail, Instructions: f.instructions, Tools: f.tools,
	})
	if err != nil {
		return nil, err
	}
	if len(delivered) > 0 {
		r.queue = nil
	}
	r.told(sent.Entries)
	st := &stream{run: r, step: step, try: try, request: sent.Request, sentAt: time.Now(), hold: hold}
	st.open(ctx, model.Request{ID: sent.Request, Bytes: sent.Bytes, Body: r.body(ctx, sent.Request)})
	return st, nil
}

// body opens the stored bytes of a request: the bytes that leave are the bytes that are stored (M2).
func (r *run) body(ctx context.Context, id transcript.RequestID) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		b, _, err := r.agent.o.Store.Body(ctx, id)
		return b, err
	}
}
