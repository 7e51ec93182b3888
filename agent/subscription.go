package agent

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"fermata/transcript"
)

// hub hands a session's events to its subscriptions, all in one order. It never waits for a client.
type hub struct {
	session transcript.SessionID
	load    func(after, upTo int64) ([]transcript.Entry, error) // entries of the log; nil error: all of them

	mu   sync.Mutex
	subs []*Subscription
	told int64             // seq of the last entry published
	over transcript.TurnID // the last turn whose end was told
	live []queued          // deltas of the running answer, joined: what a late subscriber has missed

	holding   bool    // entries wait: they hold an answer that is shown only when its checks have passed it
	heldAfter int64   // seq of the last entry before them
	waiting   []Event // such entries, in order

	foreign bool // others wrote between the entries of a turn of ours
}

// hold keeps entries back that are written from now on, of whomever they are, until release. Everything else is told as
// before. after is the seq of the last entry so far.
func (h *hub) hold(after int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding, h.heldAfter = true, after
}

// Shown is what a client may be shown of a session's entries, given in order: those of an answer that is held until its checks
// have passed it are not among them.
func (s *Session) Shown(entries []transcript.Entry) []transcript.Entry {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for i, e := range entries {
		if s.hub.holding && e.Seq > s.hub.heldAfter {
			return entries[:i]
		}
	}
	return entries
}

// release tells the entries that were kept back.
func (h *hub) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.waiting
	h.holding, h.waiting = false, nil
	for _, ev := range events {
		h.tell(ev)
	}
}

// publish tells every subscription. Invariant: an entry given to publish is committed (invariant 1).
// Tests: TestEveryEntryIsCommittedBeforeItIsTold.
func (h *hub) publish(events ...Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ev := range events {
		ev.Session = h.session
		if h.holding && ev.Entry != nil {
			h.waiting = append(h.waiting, ev)
			continue
		}
		h.tell(ev)
	}
}

// tell is called with the lock held.
func (h *hub) tell(ev Event) {
	switch {
	case ev.Entry != nil:
		if ev.Entry.Seq <= h.told {
			return // told by whoever came first
		}
		h.fill(ev.Entry.Seq)
		h.told = ev.Entry.Seq
		if k := ev.Entry.Kind(); k == transcript.KindRequestEnded || k == transcript.KindTurnEnded {
			h.live = nil
		}
		if b, ok := ev.Entry.Body.(*transcript.TurnEnded); ok {
			h.over = b.Turn
		}
	case ev.Stopping != nil && ev.Stopping.Turn == h.over:
		return // its end has been told, and does not follow
	case ev.Delta != nil:
		if n := len(h.live); n == 0 || !h.live[n-1].join(ev) {
			h.live = append(h.live, enqueue(ev))
		}
	}
	for _, s := range h.subs {
		s.push(ev)
	}
}

// fill tells the entries before one that others wrote. mu is held.
func (h *hub) fill(upTo int64) {
	if h.told+1 >= upTo {
		return
	}
	h.foreign = true
	entries, _ := h.load(h.told, upTo-1) // what cannot be read is missing; clients see it by its number
	for i := range entries {
		for _, s := range h.subs {
			s.push(Event{Session: h.session, Entry: &entries[i]})
		}
	}
}

// tookForeign reports whether others wrote between entries of ours since it was last asked.
func (h *hub) tookForeign() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.foreign
	h.foreign = false
	return was
}

// watched reports whether anybody is subscribed.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// shown is how many bytes of each part of the answer that is being said were told.
func (h *hub) shown(turn transcript.TurnID, step int) map[transcript.PartType]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[transcript.PartType]int64{}
	for _, q := range h.live {
		if d := q.ev.Delta; d.Turn == turn && d.Step == step {
			out[d.Part] = q.end
		}
	}
	return out
}

// seq is the number of the last entry told.
func (h *hub) seq() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told
}

func (h *hub) publishEntries(entries []transcript.Entry) {
	for i := range entries {
		h.publish(Event{Entry: &entries[i]})
	}
}

// subscribe adds a subscription that first gets the entries up to the last one told, then what is being said, then all
// that follows.
func (h *hub) subscribe(since int64) (*Subscription, error) {
	s := newSubscription(h)
	s.since = since
	// Most is read without the lock: a stop takes it to be told (S3). What is told meanwhile is little, and read under it.
	if upTo := h.seq(); since >= 0 && since < upTo {
		if err := s.catchUp(upTo); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if since >= 0 && s.since < h.told {
		if err := s.catchUp(h.told); err != nil {
			return nil, err
		}
	}
	for i := range h.live {
		s.push(h.live[i].event())
	}
	h.subs = append(h.subs, s)
	return s, nil
}

// Subscription is one client's view of a session's events: in order, none left out. When its consumer is slow, deltas
// that follow each other are joined; nothing else is changed or dropped, and nobody waits (S13).
// Next belongs to one goroutine; Drain and Close may be called from any.
type Subscription struct {
	hub   *hub
	since int64 // the entries up to this one are known

	mu      sync.Mutex
	wake    sync.Cond
	queue   []queued
	pushed  int64 // events ever queued, joined ones counted once
	handled int64 // events that the consumer is done with
	taken   bool  // the consumer is working on one
	closed  bool
}

// catchUp queues the entries that are not known yet, up to one. Nobody else has the subscription yet.
func (s *Subscription) catchUp(upTo int64) error {
	entries, err := s.hub.load(s.since, upTo)
	if err != nil {
		return err
	}
	for i := range entries {
		s.push(Event{Session: s.hub.session, Entry: &entries[i]})
	}
	s.since = upTo
	return nil
}

// queued is an event, with the texts that were joined to its delta or output.
type queued struct {
	ev   Event
	more []string
	end  int64 // offset behind the last text
}

func enqueue(ev Event) queued {
	q := queued{ev: ev}
	if ev.Delta != nil {
		q.end = ev.Delta.Offset + int64(len(ev.Delta.Text))
	}
	return q
}

func newSubscription(h *hub) *Subscription {
	s := &Subscription{hub: h}
	s.wake.L = &s.mu
	return s
}

func (s *Subscription) push(ev Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ev.Entry != nil && ev.Entry.Seq <= s.since {
		return
	}
	if n := len(s.queue); n > 0 && s.queue[n-1].join(ev) {
		return
	}
	s.queue = append(s.queue, enqueue(ev))
	s.pushed++
	s.wake.Broadcast()
}

// join adds the text of ev when it goes on where q ends.
func (q *queued) join(ev Event) bool {
	switch {
	case q.ev.Delta != nil && ev.Delta != nil:
		a, b := q.ev.Delta, ev.Delta
		if a.Turn != b.Turn || a.Step != b.Step || a.Part != b.Part || q.end != b.Offset {
			return false
		}
		q.more = append(q.more, b.Text)
		q.end += int64(len(b.Text))
		return true
	case q.ev.Output != nil && ev.Output != nil:
		a, b := q.ev.Output, ev.Output
		if a.Turn != b.Turn || a.Step != b.Step || a.Call != b.Call {
			return false
		}
		q.more = append(q.more, b.Text)
		return true
	}
	return false
}

// event is q with its texts joined.
func (q *queued) event() Event {
	ev := q.ev
	if len(q.more) == 0 {
		return ev
	}
	if ev.Delta != nil {
		d := *ev.Delta
		d.Text += strings.Join(q.more, "")
		ev.Delta = &d
	} else {
		o := *ev.Output
		o.Text += strings.Join(q.more, "")
		ev.Output = &o
	}
	return ev
}

// Next waits for the next event. Calling it says that the one before has been dealt with. It returns io.EOF after
// Close, and the context's cause when that ends first.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		s.taken = false
		s.handled++
		s.wake.Broadcast()
	}
	if err := s.wait(ctx, func() bool { return len(s.queue) > 0 || s.closed }); err != nil {
		return Event{}, err
	}
	if s.closed {
		return Event{}, io.EOF
	}
	ev := s.queue[0].event()
	s.queue[0] = queued{}
	s.queue = s.queue[1:]
	s.taken = true
	return ev, nil
}

// Drain waits until the consumer has dealt with every event that was queued before the call: what a reply must not
// overtake (S4). It returns nil after Close, and the context's cause when that ends first.
func (s *Subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo := s.pushed
	return s.wait(ctx, func() bool { return s.handled >= upTo || s.closed })
}

// wait is called with mu held and returns with it held.
func (s *Subscription) wait(ctx context.Context, done func() bool) error {
	if done() {
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake.Broadcast()
	})()
	for !done() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.wake.Wait()
	}
	return nil
}

// Close ends the subscription; what is still queued is dropped.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	s.hub.subs = slices.DeleteFunc(s.hub.subs, func(o *Subscription) bool { return o == s })
	s.hub.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue = true, nil
	s.wake.Broadcast()
}
