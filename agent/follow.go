package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"fermata/transcript"
)

const (
	// followEvery is how often a daemon looks whether another one wrote into a session that its client follows (C4).
	followEvery = 100 * time.Millisecond
	// reviveEvery is after how many looks it looks whether the one that ran a turn there still lives.
	reviveEvery = 10
	// leasePatience is how long a turn waits for a daemon that holds the session but runs no turn in it: one that has just
	// ended its turn, or is about to begin one.
	leasePatience = time.Second
)

// elsewhere is a turn that another daemon runs, as far as it was told to this one's client. Session.mu guards it.
type elsewhere struct {
	request transcript.RequestID
	turn    transcript.TurnID
	step    int
	n       int64                         // deltas read
	read    map[transcript.PartType]int64 // bytes of them
	shown   map[transcript.PartType]int64 // bytes told
	why     string                        // the last request failed
	held    bool                          // its answer is shown only when checks have passed it
}

// answering makes r the request whose answer is followed.
func (s *Session) answering(r transcript.RequestID, turn transcript.TurnID, step int) {
	if w := &s.elsewhere; w.request != r {
		*w = elsewhere{request: r, turn: turn, step: step, why: w.why,
			read: map[transcript.PartType]int64{}, shown: s.hub.shown(turn, step)}
	}
}

// said tells text that begins at an offset of its part, without what was told of it already.
func (s *Session) said(part transcript.PartType, at int64, text string) {
	w := &s.elsewhere
	if w.held {
		return
	}
	known := w.shown[part] - at
	if known < 0 || known >= int64(len(text)) {
		return
	}
	d := &Delta{Turn: w.turn, Step: w.step, Part: part, Offset: w.shown[part], Text: text[known:]}
	w.shown[part] += int64(len(d.Text))
	s.hub.publish(Event{Delta: d})
}

// startFollowing begins to look for what other daemons write, unless that has begun. It ends with [Agent.Close].
func (a *Agent) startFollowing() {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	if a.state.closed || a.state.unfollow != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.state.unfollow = cancel
	a.state.following.Go(func() { // ends when unfollow is called
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			a.state.mu.Lock()
			sessions := slices.Collect(maps.Values(a.state.sessions))
			a.state.mu.Unlock()
			for _, s := range sessions {
				if err := s.follow(ctx, n%reviveEvery == 0); err != nil && ctx.Err() == nil {
					a.o.Log.Debug("the session cannot be followed", "session", s.ID(), "err", err)
				}
			}
		}
	})
}

func (a *Agent) endFollowing() {
	a.state.mu.Lock()
	if a.state.unfollow != nil {
		a.state.unfollow()
	}
	a.state.mu.Unlock()
	a.state.following.Wait()
}

// follow tells what another daemon has written since the last look. revive also looks whether a turn was left behind by a
// daemon that died; then it is repaired now (C2), and not only when somebody asks something.
func (s *Session) follow(ctx context.Context, revive bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil || !s.hub.watched() {
		return nil
	}
	if err := s.catchUpLocked(ctx); err != nil || !revive || !s.dirty {
		return err
	}
	if open, alive, err := s.log.Runner(ctx); err != nil || alive || !open {
		return err
	}
	return s.repairLocked(ctx)
}

// catchUpLocked tells the client what others wrote, and remembers that the session has to be read again before a turn
// begins here. Invariant: entries are told in the order of the log, none twice and none left out, whoever wrote them
// (invariant 1). Tests: TestASessionIsFollowedWhileAnotherDaemonRunsIt.
func (s *Session) catchUpLocked(ctx context.Context) error {
	w := &s.elsewhere
	entries, said, err := s.agent.o.Store.News(ctx, s.ID(), transcript.Place{Seq: s.hub.seq(), Request: w.request, N: w.n})
	if err != nil {
		return err
	}
	s.dirty = s.dirty || len(entries) > 0 || len(said) > 0
	s.tellForeign(untilHeld(entries, w.held))
	for _, d := range said {
		s.answering(d.Request, d.Turn, d.Step)
		s.said(d.Part, w.read[d.Part], d.Text)
		w.n, w.read[d.Part] = d.N, w.read[d.Part]+int64(len(d.Text))
	}
	return nil
}

// tellForeign tells entries that this process did not write in a turn of its own. Text that was not told yet is told as
// deltas before its answer, so that the deltas of an answer are the whole of it for whoever follows it.
func (s *Session) tellForeign(entries []transcript.Entry) {
	w := &s.elsewhere
	for i := range entries {
		switch b := entries[i].Body.(type) {
		case *transcript.RequestSent:
			if b.Try > 1 {
				s.hub.publish(Event{Retracted: &Retracted{Turn: b.Turn, Step: b.Step, Try: b.Try - 1, Why: w.why}})
			}
			s.answering(b.Request, b.Turn, b.Step)
			w.held = b.Held
		case *transcript.RequestEnded:
			w.why = b.Error
			w.held = w.held && !passed(entries[i+1:])
			s.tellRest(b.Request, entries[i+1:])
		case *transcript.TurnEnded:
			*w = elsewhere{}
		}
		s.hub.publish(Event{Entry: &entries[i]})
	}
}

// tellRest tells what was not told yet of the answer to a request, which stands at the front of entries.
func (s *Session) tellRest(r transcript.RequestID, entries []transcript.Entry) {
	if len(entries) == 0 {
		return
	}
	a, ok := entries[0].Body.(*transcript.Answer)
	if !ok || a.Request != r {
		return
	}
	s.answering(r, a.Turn, a.Step)
	at := map[transcript.PartType]int64{}
	for _, p := range a.Parts {
		if p.Type == transcript.PartText || p.Type == transcript.PartReasoning {
			s.said(p.Type, at[p.Type], p.Text)
			at[p.Type] += int64(len(p.Text))
		}
	}
}

// untilHeld are the entries before an answer that is held and that nothing has decided about yet. held says that the request
// before the first entry is of that kind.
func untilHeld(entries []transcript.Entry, held bool) []transcript.Entry {
	from := len(entries)
	for i, e := range entries {
		switch b := e.Body.(type) {
		case *transcript.RequestSent:
			held, from = b.Held, len(entries)
		case *transcript.RequestEnded:
			if held && from == len(entries) {
				from = i
			}
		case *transcript.Admission, *transcript.TurnEnded:
			from = len(entries)
		}
	}
	return entries[:from]
}

// passed reports whether the answer at the front of entries was admitted.
func passed(entries []transcript.Entry) bool {
	for _, e := range entries {
		switch b := e.Body.(type) {
		case *transcript.Admission:
			return b.Admitted
		case *transcript.TurnEnded, *transcript.RequestSent:
			return false
		}
	}
	return false
}

// leaseLocked takes the session's lease for a turn, and brings the session up to date under it: what others wrote meanwhile
// is told and repaired before this process writes. It is refused with a [transcript.LeaseError] while another daemon runs
// a turn.
func (s *Session) leaseLocked(ctx context.Context) error {
	deadline := time.Now().Add(leasePatience)
	for {
		err := s.log.Lease(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, transcript.ErrLeased) {
			return err
		}
		if open, _, e := s.log.Runner(ctx); e != nil || open || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(leasePatience / 50):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := s.settleLocked(ctx)
	if err != nil {
		_ = s.log.Release(context.WithoutCancel(ctx)) // an expired lease is as good as a released one
	}
	return err
}

// settleLocked repairs what needs it. The caller holds the lease.
func (s *Session) settleLocked(ctx context.Context) error {
	if err := s.catchUpLocked(ctx); err != nil || !s.dirty {
		return err
	}
	entries, err := s.log.Repair(ctx, s.evidence)
	if err != nil {
		return err
	}
	s.tellForeign(entries)
	if s.past, err = readPast(ctx, s.agent.o.Store, s.ID(), s.hub.seq()); err != nil {
		return err
	}
	s.agent.remember(s.ID(), s.past.turn)
	s.dirty = false
	return nil
}
