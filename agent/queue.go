package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fermata/transcript"
)

// Message is a user message that waits behind the turn its session runs (S10): delivered as a user message after the next
// tool results, or, when the turn comes to its end without another step, the start of the next turn, together with the
// others that wait. Where no turn runs it starts one. A turn that is stopped or fails hands it back instead: nothing that
// the user meant for a running turn is sent into what came of its stop.
//
// Whoever reserves one must call [Message.Send] or [Message.Release] once.
type Message struct {
	agent   *Agent
	id      transcript.MessageID
	session transcript.SessionID
	behind  *Turn // in whose queue it has its place; nil: there is none
	place   *place
	own     *Turn // reserved when behind is nil: it starts with the message
}

// Receipt says where a message stands. Turn is the one that it waits behind, has started or was delivered into; "" for one
// that was returned, for which Cause says why.
type Receipt struct {
	Message transcript.MessageID
	State   transcript.MessageState
	Turn    transcript.TurnID
	Cause   string
}

// Returned is a message that a turn handed back: offer it to the user again.
type Returned struct {
	Message  transcript.MessageID
	ClientID string
	Prompt   []transcript.PromptPart
	Cause    string
}

var (
	// errNotTaken: the turn ended, or never began, without looking at the message.
	errNotTaken = errors.New("the turn before took no message")
	// errKnown: a message of that client id is in the log.
	errKnown = errors.New("the message was queued before")
)

// ReserveMessage gives a message its place in the order in which requests came (S2): a stop that comes right behind
// hands it back, one that came right before does not. Like [Agent.Reserve] it neither blocks nor touches the disk.
func (a *Agent) ReserveMessage(session transcript.SessionID) *Message {
	m := &Message{agent: a, id: transcript.NewMessageID(), session: session}
	m.reserve()
	return m
}

func (m *Message) reserve() {
	a := m.agent
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	m.behind, m.place, m.own = nil, nil, nil
	var newest *Turn
	for _, t := range slices.Backward(a.state.turns) {
		if t.Session() != m.session {
			continue
		}
		if newest == nil {
			newest = t
		}
		if t.stopping() {
			continue
		}
		if m.place = t.inbox.reserve(); m.place != nil {
			m.behind = t
			return
		}
	}
	m.own = a.reserve(&Turn{session: m.session, after: newest})
}

// Release gives the reservation up.
func (m *Message) Release() {
	if m.own != nil {
		m.own.Release()
		return
	}
	m.place.fill(nil)
	m.behind.inbox.ring()
}

// Send records the message, and returns when it is in the log. What it starts goes on without the caller. One whose
// ClientID was sent before is not sent again: the Receipt says what became of it. Errors are those of [Turn.Run].
func (m *Message) Send(ctx context.Context, start Start) (Receipt, error) {
	r, known, err := m.known(ctx, start.ClientID)
	if err == nil && !known {
		start.Prompt, err = m.fill(ctx, start.Prompt)
	}
	if err != nil || known {
		m.Release()
		return r, err
	}
	q := &transcript.MessageQueued{Message: m.id, Prompt: start.Prompt, ClientID: start.ClientID}
	for {
		if m.behind != nil {
			r, err = m.wait(ctx, q)
		} else {
			r, err = m.start(ctx, q, start)
		}
		if errors.Is(err, errKnown) {
			if r, known, err := m.known(ctx, start.ClientID); known || err != nil {
				return r, err
			}
			err = errNotTaken // the other one could not be recorded
		}
		if !errors.Is(err, errNotTaken) && !errors.Is(err, ErrBusy) {
			r.Message = m.id
			return r, err
		}
		m.reserve()
	}
}

func (m *Message) known(ctx context.Context, clientID string) (Receipt, bool, error) {
	if clientID == "" {
		return Receipt{}, false, nil
	}
	i, found, err := m.agent.o.Store.MessageByClientID(ctx, m.session, clientID)
	r := Receipt{Message: i.Message, State: i.State, Turn: i.Turn, Cause: i.Cause}
	if r.State == transcript.MessageWaiting && m.behind != nil {
		r.Turn = m.behind.id
	}
	return r, found, err
}

func (m *Message) fill(ctx context.Context, prompt []transcript.PromptPart) ([]transcript.PromptPart, error) {
	s, err := m.agent.Open(ctx, m.session)
	if err != nil {
		return nil, err
	}
	return s.fill(ctx, prompt)
}

// wait gives the message to the turn that it stands behind, and waits until that has recorded it.
func (m *Message) wait(ctx context.Context, q *transcript.MessageQueued) (Receipt, error) {
	m.place.fill(q)
	m.behind.inbox.ring()
	select {
	case <-m.place.settled:
		return m.place.receipt, m.place.err
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
}

// start runs a turn that begins with the message, and waits until it has begun.
func (m *Message) start(ctx context.Context, q *transcript.MessageQueued, start Start) (Receipt, error) {
	t := m.own
	start.ClientID, start.queued, start.messages = "", q, []transcript.MessageID{q.Message}
	go func() { // ends with the turn, which Agent.Close waits for
		defer func() { t.agent.bug("a turn that was queued", recover()) }()
		_, _ = t.Run(context.WithoutCancel(ctx), start)
	}()
	select {
	case <-t.begun:
	case <-t.done:
		if _, err := t.Report(); err != nil {
			return Receipt{}, err
		}
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
	return Receipt{State: transcript.MessageStarted, Turn: t.id}, nil
}

// inbox is a turn's queue on the side of those who send.
type inbox struct {
	bell chan struct{} // rung when something may be taken; holds one

	mu     sync.Mutex
	places []*place // in wire order
	closed bool
}

// place is a message's place in an inbox: it is given where messages are read, and filled when the prompt has been read.
type place struct {
	ready   chan struct{}
	queued  *transcript.MessageQueued // once ready; nil: the reservation was given up
	settled chan struct{}
	receipt Receipt // once settled
	err     error
}

// reserve returns nil when the turn takes no more messages.
func (b *inbox) reserve() *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	p := &place{ready: make(chan struct{}), settled: make(chan struct{})}
	b.places = append(b.places, p)
	return p
}

func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default: // it is ringing
	}
}

// take removes the messages that are ready and have no other before them that is not.
func (b *inbox) take() (out []*place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.places) > 0 {
		p := b.places[0]
		select {
		case <-p.ready:
		default:
			return out
		}
		b.places = b.places[1:]
		if p.queued != nil {
			out = append(out, p)
		}
	}
	return out
}

// pass gives all that waits to another inbox, unless that takes no more.
func (b *inbox) pass(to *inbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.closed {
		return
	}
	to.places = append(to.places, b.places...)
	b.places = nil
	to.ring()
}

// close lets no more messages in, waits for those that are being read, and removes all. late are those that took longer.
func (b *inbox) close(patience time.Duration) (out, late []*place) {
	b.mu.Lock()
	places := b.places
	b.places, b.closed = nil, true
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range places {
		select {
		case <-p.ready:
		case <-ctx.Done():
		}
		select {
		case <-p.ready:
			if p.queued != nil {
				out = append(out, p)
			}
		default:
			late = append(late, p)
		}
	}
	return out, late
}

func (p *place) fill(q *transcript.MessageQueued) {
	p.queued = q
	close(p.ready)
}

func (p *place) settle(r Receipt, err error) {
	p.receipt, p.err = r, err
	close(p.settled)
}

// leave ends the inbox of a turn that never ran.
func (t *Turn) leave(err error) {
	out, late := t.inbox.close(0)
	switch {
	case err == nil, errors.Is(err, errReleased), errors.Is(err, ErrBusy):
		err = errNotTaken
	default:
		err = fmt.Errorf("the turn before the message did not begin: %w", err)
	}
	for _, p := range append(out, late...) {
		p.settle(Receipt{}, err)
	}
}
