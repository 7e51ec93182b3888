package agent

import (
	"context"
	"errors"

	"fermata/transcript"
)

// waiting is a message in the queue of a running turn.
type waiting struct {
	*transcript.MessageQueued
	place *place // of one that is not in the log yet
}

// claim notes a client id, and reports false when it was noted before.
func (s *Session) claim(clientID string) bool {
	if clientID == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clientIDs[clientID] {
		return false
	}
	if s.clientIDs == nil {
		s.clientIDs = map[string]bool{}
	}
	s.clientIDs[clientID] = true
	return true
}

func (s *Session) unclaim(clientID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clientIDs, clientID)
}

// receive records what waits in the inbox; then whoever sent it is told (invariant 1). One that the log refuses is refused:
// the turn does not end by it.
func (r *run) receive(ctx context.Context) { r.record(ctx, r.inbox.take(), r.id) }

// record puts messages into the turn's queue. behind is the turn that they wait for, as their senders are told.
func (r *run) record(ctx context.Context, places []*place, behind transcript.TurnID) {
	for _, p := range places {
		q := p.queued
		if !r.s.claim(q.ClientID) {
			p.settle(Receipt{}, errKnown)
			continue
		}
		entries, err := r.s.log.Append(ctx, q)
		if err != nil {
			r.s.unclaim(q.ClientID)
			p.settle(Receipt{}, err)
			continue
		}
		r.told(entries)
		r.queue = append(r.queue, waiting{MessageQueued: q})
		p.settle(Receipt{State: transcript.MessageWaiting, Turn: behind}, nil)
	}
}

// delivered is what a step's first request begins to hold: what waits, in its order.
func (r *run) delivered(step int) (out []*transcript.MessageDelivered) {
	for _, w := range r.queue {
		out = append(out, &transcript.MessageDelivered{Message: w.Message, Turn: r.id, Step: step, Prompt: w.Prompt})
	}
	return out
}

// returning is what hands back all that waits, to be committed together with the turn's end. done is to be called with
// the outcome of that. Nothing can be queued behind the turn from here on.
//
// Invariant: a message that was queued behind a turn that was stopped or failed is in its Report and in no model input
// (TestAStopHandsBackWhatWaits).
//
// taken are messages that were taken out of the inbox before, and are not in the queue.
func (r *run) returning(cause string, taken ...*place) (entries []transcript.Body, done func(error)) {
	places, late := r.inbox.close(r.agent.o.Settle)
	places = append(taken, places...)
	var repeated []*place
	for _, p := range places {
		if !r.s.claim(p.queued.ClientID) {
			repeated = append(repeated, p)
			continue
		}
		r.queue = append(r.queue, waiting{p.queued, p})
	}
	for _, w := range r.queue {
		if w.place != nil {
			entries = append(entries, w.MessageQueued)
		}
		entries = append(entries, &transcript.MessageReturned{Message: w.Message, Cause: cause})
	}
	return entries, func(err error) {
		back := Receipt{State: transcript.MessageHandedOut, Cause: cause}
		for _, w := range r.queue {
			if w.place == nil {
				continue
			}
			if err != nil {
				r.s.unclaim(w.ClientID)
			}
			w.place.settle(back, err)
		}
		r.queue = nil // what the log did not take stands in it as queued: the repair hands it back
		for _, p := range repeated {
			p.settle(Receipt{}, errKnown)
		}
		for _, p := range late {
			p.settle(back, nil) // it never was in the log; its sender has it
		}
	}
}

// conclude commits the end of a request. When that is the turn's end too, what waits is handed back with it, unless the
// turn came to its end by itself.
func (r *run) conclude(ctx context.Context, c transcript.Conclusion) error {
	done := func(error) {}
	if e := c.TurnEnded; e != nil && (e.Outcome != transcript.TurnCompleted || r.stopping()) {
		c.Messages, done = r.returning(r.returnCause(e.Outcome))
	}
	entries, err := r.s.log.Conclude(ctx, c)
	if err == nil {
		r.told(entries)
	}
	done(err)
	return err
}

// returnCause is why a turn that ends by itself or by a stop hands back what waits (S8).
func (r *run) returnCause(o transcript.Outcome) string {
	if o == transcript.TurnFailed || !r.stopping() {
		return transcript.CauseTurnFailed
	}
	return r.stoppedBecause()
}

// handOver looks after what still waits when the turn has ended. Behind a turn that came to its end by itself it starts the
// next one: handOver makes that the session's current turn and returns it with its start, else nil.
func (r *run) handOver(ctx context.Context, start Start, o transcript.Outcome) (*Turn, Start) {
	var taken []*place
	if o == transcript.TurnCompleted && !r.stopping() {
		places, late := r.inbox.close(r.agent.o.Settle)
		var next *Turn
		if len(places)+len(r.queue) > 0 {
			next = r.agent.reserveNext(r.s, r.Turn)
		}
		switch {
		case next != nil:
			r.record(ctx, places, next.id)
			places = nil
		case r.stopping(): // meanwhile: they are handed back
			taken, places = places, nil
		}
		for _, p := range append(places, late...) {
			p.settle(Receipt{}, errNotTaken)
		}
		switch {
		case next != nil && len(r.queue) > 0:
			r.s.mu.Lock()
			r.s.current, r.s.currentClientID = next, ""
			r.s.mu.Unlock()
			r.agent.remember(r.s.ID(), next.id)
			return next, r.nextStart(start)
		case next != nil:
			next.Release() // the log took none
		}
	}
	entries, done := r.returning(r.returnCause(o), taken...)
	var err error
	if len(entries) > 0 {
		var told []transcript.Entry
		if told, err = r.s.log.Append(ctx, entries...); err == nil {
			r.told(told)
		}
	}
	done(err)
	if err != nil {
		r.agent.o.Log.Warn("messages that waited could not be handed back yet", "turn", r.id, "err", err)
		r.s.mu.Lock()
		r.s.dirty = true
		r.s.mu.Unlock()
	}
	return nil, Start{}
}

// nextStart is a turn made of all that waits, where the one before was asked.
func (r *run) nextStart(before Start) Start {
	next := Start{Anchor: before.Anchor}
	for _, w := range r.queue {
		next.Prompt = append(next.Prompt, w.Prompt...)
		next.messages = append(next.messages, w.Message)
	}
	return next
}

// proceed runs the turn that is its session's current one and holds its lease, and then the one that starts with what was
// queued behind it, in a goroutine of its own. Whoever comes last releases.
func (t *Turn) proceed(ctx context.Context, s *Session, m Model, start Start, release func()) (Report, error) {
	last, panicked := true, true
	defer func() {
		if panicked { // the log holds an open turn
			s.mu.Lock()
			s.dirty = true
			s.mu.Unlock()
		}
		if last {
			release()
			s.end(t)
		}
	}()
	r := newRun(t, s, m)
	rep, err := r.run(ctx, start)
	switch {
	case err == nil:
	case start.queued != nil:
		s.unclaim(start.queued.ClientID) // it is not in the log: who sends it again is not told that it was sent before
	default:
		r.giveBackStart(ctx, start)
	}
	if err != nil {
		panicked = false
		return rep, err // nothing was queued behind a turn that did not begin; see leave
	}
	if next, nextStart := r.handOver(ctx, start, rep.Outcome); next != nil {
		last = false
		go func() { // ends with the turn, which Agent.Close waits for
			rep, err := Report{}, errPanicked
			defer func() {
				t.agent.bug("a turn that was queued", recover())
				next.finish(rep, err)
			}()
			rep, err = next.proceed(ctx, s, m, nextStart, release)
		}()
	}
	rep.Returned = append(t.inherited, r.reporter.report().Returned...)
	panicked = false
	return rep, err
}

// giveBackStart hands back the messages that a turn was to start with when it could not begin.
func (r *run) giveBackStart(ctx context.Context, start Start) {
	var back []transcript.Body
	for _, m := range start.messages {
		back = append(back, &transcript.MessageReturned{Message: m, Cause: transcript.CauseTurnFailed})
	}
	if len(back) == 0 {
		return
	}
	if entries, err := r.s.log.Append(ctx, back...); err == nil {
		r.told(entries)
	} else if !errors.Is(err, transcript.ErrLeaseLost) {
		r.agent.o.Log.Warn("messages could not be handed back yet", "turn", r.id, "err", err)
	}
}
