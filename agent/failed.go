package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fermata/transcript"
)

// What a turn's state does not allow. The errors say which turn, and what to do instead.
var (
	// ErrNotLast: only the session's last turn can be retried or kept, so that no earlier input changes (F4).
	ErrNotLast = errors.New("not the session's last turn")
	// ErrNothingToRetry: the turn was completed.
	ErrNothingToRetry = errors.New("nothing to retry")
	// ErrNothingToKeep: the turn holds no broken answer that is not admitted.
	ErrNothingToKeep = errors.New("nothing to keep")
)

// ReserveRetry registers a turn that tries again what another one was asked, which must be its session's last and must not
// have been completed (F3); "" is the last one of the session used last. All that the log holds of that turn stays in
// the input, its user message, the tool results (F5) and what was stopped or kept of its answer, so the new turn's user
// message is a notice alone: it says how the turn ended and that the request stands. Like [Agent.Reserve] it neither
// blocks nor touches the disk.
func (a *Agent) ReserveRetry(turn transcript.TurnID) *Turn {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.reserve(&Turn{session: a.home(turn), retry: true, retries: turn})
}

// resolveRetry finds the turn to try again and its session.
func (t *Turn) resolveRetry(ctx context.Context, start *Start) error {
	if start.Retries == "" {
		start.Retries = t.retries
	}
	if start.Retries == "" {
		var err error
		if start.Retries, err = t.agent.lastTurnOf(ctx, t.Session()); err != nil {
			return err
		}
	}
	info, err := t.agent.o.Store.Turn(ctx, start.Retries)
	if err != nil {
		return err
	}
	t.setSession(info.Session)
	return nil
}

// lastTurn is the last turn of the session used last. [transcript.ErrNoTurn].
func (a *Agent) lastTurn(ctx context.Context) (transcript.TurnID, error) {
	id, _ := a.NewestSession()
	return a.lastTurnOf(ctx, id)
}

// lastTurnOf is the last turn of a session; of "", which is none, [transcript.ErrNoTurn]. It is [transcript.ErrLeased] when the log
// cannot be read to its end yet because of another daemon.
func (a *Agent) lastTurnOf(ctx context.Context, id transcript.SessionID) (transcript.TurnID, error) {
	if id == "" {
		return "", transcript.ErrNoTurn
	}
	s, err := a.Open(ctx, id)
	if err != nil {
		return "", err
	}
	if turn := s.LastTurn(); turn != "" {
		return turn, nil
	}
	if err := s.repair(ctx); err != nil { // it may have turns, which another daemon runs
		return "", err
	}
	return "", transcript.ErrNoTurn
}

// LastTurn is the turn that runs, else the last one of the session; "" when there was none.
func (s *Session) LastTurn() transcript.TurnID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current.id
	}
	return s.past.turn
}

// admit has the last word about the start of a turn that is its session's current one.
func (s *Session) admit(ctx context.Context, t *Turn, start *Start) error {
	if q := start.queued; q != nil && !s.claim(q.ClientID) {
		return errKnown
	}
	if !t.retry {
		return nil
	}
	info, err := s.agent.o.Store.Turn(ctx, start.Retries)
	switch {
	case err != nil:
		return err
	case !info.Newest:
		return fmt.Errorf("retry %s: %w: say it again instead", info.Turn, ErrNotLast)
	case info.Ended == nil || info.Started == nil:
		return fmt.Errorf("retry %s: %w: the turn cannot be read", info.Turn, ErrNothingToRetry)
	case info.Ended.Outcome == transcript.TurnCompleted:
		return fmt.Errorf("retry %s: %w: the turn was completed; say what you want instead", info.Turn, ErrNothingToRetry)
	}
	start.Prompt = info.Started.Prompt
	if start.Anchor == nil {
		start.Anchor = info.Started.Anchor
	}
	return nil
}

// retryNotice is the user message of a retry: how the turn before ended, and that its request stands.
func retryNotice(notice string) string {
	return strings.TrimLeft(notice+"\n[The user asks you to go on with the request above.]", "\n")
}

// keptNotice says of an answer that broke off, and that the user has kept, where it ends.
func (p *past) keptNotice() string {
	broke, cut := "Your answer above broke off by an error where it ends", "Your answer above was cut off where it ends, when fermata itself ended"
	if !p.words { // reasoning alone does not go to every model
		broke, cut = "You were still thinking when an error cut you off", "You were still thinking when fermata itself ended"
	}
	switch p.ended.Outcome {
	case transcript.TurnStopped:
		stopper := strings.Replace(p.stopper(), "The user", "the user", 1)
		return "[" + broke + ", and " + stopper + " you there. The user has kept it.]"
	case transcript.TurnAbandoned:
		return "[" + cut + ". The user has kept it.]"
	}
	return "[" + broke + ". The user has kept it.]"
}

// Keep admits the broken answer with which the session's last turn ended (F4): the next input holds it verbatim. "" is the
// last turn of the session used last. It returns what was kept. Errors: [ErrNotLast], [ErrNothingToKeep], [ErrBusy],
// [transcript.ErrNoTurn], and those of [transcript.Log.Append] and of the lease.
func (a *Agent) Keep(ctx context.Context, turn transcript.TurnID) (Keeping, error) {
	if turn == "" {
		var err error
		if turn, err = a.lastTurn(ctx); err != nil {
			return Keeping{}, err
		}
	}
	info, err := a.o.Store.Turn(ctx, turn)
	if err != nil {
		return Keeping{}, err
	}
	s, err := a.Open(ctx, info.Session)
	if err != nil {
		return Keeping{}, err
	}
	return s.keep(ctx, turn)
}

// Keeping says what [Agent.Keep] has kept.
type Keeping struct {
	Session transcript.SessionID
	Turn    transcript.TurnID
	Step    int
	Answer  int64 // seq of the answer
	Kept    transcript.Kept
}

func (s *Session) keep(ctx context.Context, turn transcript.TurnID) (Keeping, error) {
	s.lockCleared()
	defer s.mu.Unlock()
	if s.current != nil {
		return Keeping{}, &BusyError{Turn: s.current.id}
	}
	if err := s.leaseLocked(ctx); err != nil {
		return Keeping{}, err
	}
	defer func() { _ = s.log.Release(context.WithoutCancel(ctx)) }() // an expired lease is as good as a released one
	answer, seq, err := s.keepable(ctx, turn)
	if err != nil {
		return Keeping{}, fmt.Errorf("keep %s: %w", turn, err)
	}
	entries, err := s.log.Append(ctx, &transcript.Admission{Turn: turn, Step: answer.Step, Answer: seq, Admitted: true, By: "user"})
	if err != nil {
		return Keeping{}, err
	}
	for _, e := range entries {
		s.past.add(e.Body)
	}
	s.hub.publishEntries(entries)
	return Keeping{Session: s.ID(), Turn: turn, Step: answer.Step, Answer: seq, Kept: *keptOf(answer)}, nil
}

// keepable is the broken answer that a turn ended with, and its seq.
func (s *Session) keepable(ctx context.Context, turn transcript.TurnID) (*transcript.Answer, int64, error) {
	info, err := s.agent.o.Store.Turn(ctx, turn)
	if err != nil {
		return nil, 0, err
	}
	if !info.Newest {
		return nil, 0, fmt.Errorf("%w: what was said in it stays an attempt", ErrNotLast)
	}
	entries, err := s.agent.o.Store.Entries(ctx, s.ID(), info.Seq, 0)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range slices.Backward(entries) {
		switch b := e.Body.(type) {
		case *transcript.Admission:
			if b.Admitted && b.By == "user" {
				return nil, 0, fmt.Errorf("%w: it was kept already", ErrNothingToKeep)
			}
		case *transcript.Answer:
			if b.State != transcript.Broken {
				return nil, 0, fmt.Errorf("%w: its answer did not break off", ErrNothingToKeep)
			}
			if strings.TrimSpace(b.Text()+b.Reasoning()) == "" {
				return nil, 0, fmt.Errorf("%w: nothing was said", ErrNothingToKeep)
			}
			return b, e.Seq, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: nothing was said in it", ErrNothingToKeep)
}
