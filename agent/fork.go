package agent

import (
	"context"

	"fermata/transcript"
)

// Fork begins a session that goes on from a turn of another one, or from its last turn that has ended when after is ""; see
// [transcript.Store.Fork]. Files stay as they are: a fork is of the conversation. Errors: [transcript.ErrNoSession],
// [transcript.ErrNoTurn], [transcript.ErrTurnOpen].
func (a *Agent) Fork(ctx context.Context, parent transcript.SessionID, after transcript.TurnID) (*Session, error) {
	if _, err := a.Open(ctx, parent); err != nil { // a turn that a dead daemon left is closed first (C2)
		return nil, err
	}
	log, err := a.o.Store.Fork(ctx, parent, after)
	if err != nil {
		return nil, err
	}
	s := a.adopt(log)
	return s, s.repair(ctx) // reads what the next notice tells: the parent's last turn may have been stopped
}

// Delete removes a session for good; see [transcript.Store.Delete]. Whoever follows it is told no more. It is refused while
// a turn runs in it: a [*BusyError] when it runs here, else a [*transcript.LeaseError]. [transcript.ErrNoSession].
func (a *Agent) Delete(ctx context.Context, id transcript.SessionID) (transcript.Deleted, error) {
	for _, t := range a.Running() {
		if t.Session() == id && !t.Over() {
			return transcript.Deleted{}, &BusyError{Turn: t.ID()}
		}
	}
	a.state.mu.Lock()
	s := a.state.sessions[id]
	a.state.mu.Unlock()
	if s == nil {
		return a.o.Store.Delete(ctx, id)
	}
	d, err := s.delete(ctx)
	if err != nil {
		return d, err
	}
	a.state.mu.Lock()
	delete(a.state.sessions, id)
	delete(a.state.last, id)
	if a.state.newest == id {
		a.state.newest = ""
	}
	a.state.mu.Unlock()
	s.hub.end()
	if err := s.close(ctx); err != nil {
		a.o.Log.Warn("the deleted session's workspace was not closed", "session", id, "err", err)
	}
	return d, nil
}

// delete holds the lock, so that no turn begins meanwhile. One that comes later finds no session to lease.
func (s *Session) delete(ctx context.Context) (transcript.Deleted, error) {
	s.lockCleared()
	defer s.mu.Unlock()
	if s.current != nil {
		return transcript.Deleted{}, &BusyError{Turn: s.current.id}
	}
	return s.agent.o.Store.Delete(ctx, s.ID())
}

// end closes all subscriptions.
func (h *hub) end() {
	h.mu.Lock()
	subs := append([]*Subscription(nil), h.subs...)
	h.mu.Unlock()
	for _, s := range subs {
		s.Close()
	}
}
