package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fermata/transcript"
)

var discard = slog.New(slog.DiscardHandler)

// errReleased is the error of a reservation that was given up.
var errReleased = fmt.Errorf("%w: it was never begun", transcript.ErrNoTurn)

// errPanicked is the error of a turn that a bug of ours has ended.
var errPanicked = errors.New("the turn was cut off by an error inside fermata; what was shown is kept, and the session can be used again")

// Turn is one user message and all that follows until the session waits for the user again.
//
// Locks are taken in the order Session.mu, registry.mu, Turn.mu, hub.mu, Subscription.mu; each inbox has one of its own that is
// taken last.
type Turn struct {
	// Up to inbox: set by the reservation, and from then on the running goroutine's. Others read only agent, id and inbox.
	agent     *Agent
	id        transcript.TurnID
	redirect  bool              // replaces the course of another turn (D2)
	redirects transcript.TurnID // that turn; "" with redirect: the newest
	prev      *Turn             // that turn, while it was running when this one was reserved
	inherited []Returned        // what that turn handed back
	retry     bool              // tries the request of another turn again (F3)
	retries   transcript.TurnID // that turn; "" with retry: the newest
	after     *Turn             // not nil: this turn begins when that one has ended
	inbox     inbox             // messages that wait behind this turn

	stop  chan struct{} // closed by the first Stop
	begun chan struct{} // closed when turn.started is in the log
	over  chan struct{} // closed when turn.ended is in the log, before anyone is told
	done  chan struct{} // closed when the turn has ended, and nothing of it holds the session
	left  chan struct{} // closed by the first Stop because the client is gone or the daemon shuts down

	mu      sync.Mutex
	session transcript.SessionID // "" until Run when only the redirected turn is known
	cause   error                // of the stop
	stopAt  time.Time            // when it arrived
	report  Report
	err     error
	shown   *Session // set when the turn runs: whom to tell of a stop
}

// ID is the turn's id; it is valid from the reservation on.
func (t *Turn) ID() transcript.TurnID { return t.id }

// Session is the turn's session, "" before Run when a redirect names an ended turn.
func (t *Turn) Session() transcript.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session
}

// Done is closed when the turn has ended and its end was told.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Over reports whether the turn's end is in the log: it holds the session for a moment longer.
func (t *Turn) Over() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// Report says, after Done, how the turn ended, or why it could not begin.
func (t *Turn) Report() (Report, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report, t.err
}

// Stop marks the turn as stopped; it never blocks. Only the first stop counts (S1). That the turn is stopping is told before
// anything that follows from it.
func (t *Turn) Stop(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause, t.stopAt = cause, time.Now()
		if t.shown != nil {
			t.shown.hub.publish(Event{Stopping: &Stopping{Turn: t.id}})
		}
		close(t.stop)
	}
	if errors.Is(cause, ErrClientGone) || errors.Is(cause, ErrShutdown) {
		select {
		case <-t.left:
		default:
			close(t.left)
		}
	}
}

func (t *Turn) stopping() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// stoppedBecause is the cause of a stop as receipts state it: who did not stop is never said to have (S8).
func (t *Turn) stoppedBecause() string {
	switch t.stopCause() {
	case "client_gone":
		return transcript.CauseClientGone
	case "shutdown":
		return transcript.CauseShutdown
	}
	return transcript.CauseStoppedByUser
}

// stopCause is the word for the stop's cause in the log.
func (t *Turn) stopCause() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(t.cause, ErrClientGone):
		return "client_gone"
	case errors.Is(t.cause, ErrShutdown):
		return "shutdown"
	}
	return "user"
}

// stopMillis is how long the stop has taken so far, rounded up (X4).
func (t *Turn) stopMillis() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(1, (time.Since(t.stopAt) + time.Millisecond - 1).Milliseconds())
}

// Release gives a reservation up.
func (t *Turn) Release() { t.finish(Report{}, errReleased) }

func (t *Turn) finish(r Report, err error) {
	t.mu.Lock()
	t.report, t.err = r, err
	t.mu.Unlock()
	t.leave(err)
	t.agent.forget(t)
	close(t.done)
}

// Run runs the turn to its end; cancelling ctx stops it. It returns an error only when the turn could not begin: the
// session or the redirected turn is unknown, the session is busy ([ErrBusy]), the model is unknown, the database refused.
// However a turn ends that began, a Report says so. A start with the ClientID of an earlier one joins that turn.
func (t *Turn) Run(ctx context.Context, start Start) (Report, error) {
	defer context.AfterFunc(ctx, func() { t.Stop(context.Cause(ctx)) })()
	r, err := Report{}, errPanicked
	defer func() { t.finish(r, err) }() // also when a panic goes on to the caller: nobody waits for this turn for ever
	r, err = t.run(context.WithoutCancel(ctx), start)
	return r, err
}

// run is Run on a context that a stop does not cancel: what a stop has to finish must not fail by it.
func (t *Turn) run(ctx context.Context, start Start) (Report, error) {
	if t.after != nil {
		<-t.after.done
	}
	if err := t.resolve(ctx, &start); err != nil {
		return Report{}, err
	}
	s, err := t.agent.Open(ctx, t.Session())
	if err != nil {
		return Report{}, err
	}
	m, err := t.agent.o.Models(start.Model)
	if err != nil {
		return Report{}, err
	}
	if !t.retry {
		start.Prompt, err = s.fill(ctx, start.Prompt)
	}
	if err != nil {
		return Report{}, err
	}
	joined, err := s.begin(ctx, t, start.ClientID)
	if err != nil {
		return Report{}, err
	}
	if joined != "" {
		return t.join(ctx, joined)
	}
	release, err := s.hold(ctx)
	if err == nil {
		err = s.admit(ctx, t, &start)
	}
	if err != nil {
		release()
		s.end(t)
		return Report{}, err
	}
	return t.proceed(ctx, s, m, start, release)
}

// hold takes the session's lease and keeps it until release is called.
func (s *Session) hold(ctx context.Context) (release func(), err error) {
	s.mu.Lock()
	err = s.leaseLocked(ctx)
	s.mu.Unlock()
	if err != nil {
		return func() {}, err
	}
	stopRenewing := s.renew(ctx)
	return func() {
		stopRenewing()
		if err := s.log.Release(ctx); err != nil {
			s.agent.o.Log.Warn("the session's lease was not released; it expires by itself", "session", s.ID(), "err", err)
		}
	}, nil
}

// resolve waits for the turn that this one redirects and finds its session.
func (t *Turn) resolve(ctx context.Context, start *Start) error {
	if t.retry {
		return t.resolveRetry(ctx, start)
	}
	if !t.redirect {
		return t.checkRedirects(ctx, start.Redirects)
	}
	if t.prev != nil {
		<-t.prev.done // it was stopped when this turn was reserved
		rep, err := t.prev.Report()
		if err != nil {
			return fmt.Errorf("the turn to redirect did not begin: %w", err)
		}
		t.inherited = rep.Returned
		start.Redirects = rep.Turn // not always prev's id: a repeated start has joined another turn
		t.setSession(rep.Session)
		return nil
	}
	if t.redirects == "" {
		t.redirects = start.Redirects
	}
	if t.redirects == "" {
		id := t.Session()
		if id == "" {
			return transcript.ErrNoTurn
		}
		s, err := t.agent.Open(ctx, id)
		if err != nil {
			return err
		}
		if t.redirects = s.newestTurn(); t.redirects == "" {
			return transcript.ErrNoTurn
		}
	}
	info, err := t.agent.o.Store.Turn(ctx, t.redirects)
	if err != nil {
		return err
	}
	start.Redirects = t.redirects
	t.setSession(info.Session)
	return nil
}

// checkRedirects wants a turn of the same session, or "": the log never links to a turn that there is not (D2).
func (t *Turn) checkRedirects(ctx context.Context, id transcript.TurnID) error {
	if id == "" {
		return nil
	}
	info, err := t.agent.o.Store.Turn(ctx, id)
	if err == nil && info.Session != t.Session() {
		err = fmt.Errorf("redirect: %w: %s in session %s", transcript.ErrNoTurn, id, t.Session())
	}
	return err
}

func (t *Turn) setSession(id transcript.SessionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session = id
}

// join waits for the turn that an equal start has begun. A stop of t is one of that turn, for the same reason (S8), and what
// waits behind t waits behind that turn (S10).
func (t *Turn) join(ctx context.Context, id transcript.TurnID) (Report, error) {
	other, ok := t.agent.Turn(id)
	if !ok {
		return t.agent.report(ctx, id)
	}
	stop := t.stop
	for {
		select {
		case <-other.done:
			return other.Report()
		case <-t.inbox.bell:
			t.inbox.pass(&other.inbox)
		case <-stop:
			stop = nil
			t.inbox.pass(&other.inbox)
			t.mu.Lock()
			cause := t.cause
			t.mu.Unlock()
			other.Stop(cause)
		}
	}
}

// begin makes t the session's current turn. When a turn with the same client id exists it returns that one's id.
func (s *Session) begin(ctx context.Context, t *Turn, clientID string) (joined transcript.TurnID, err error) {
	s.lockCleared()
	defer s.mu.Unlock()
	if clientID != "" {
		if s.current != nil && s.currentClientID == clientID {
			return s.current.id, nil
		}
		id, found, err := s.agent.o.Store.TurnByClientID(ctx, s.ID(), clientID)
		if err != nil || found {
			return id, err
		}
	}
	if s.current != nil {
		return "", &BusyError{Turn: s.current.id}
	}
	if err := s.repairLocked(ctx); err != nil {
		return "", err
	}
	s.current, s.currentClientID = t, clientID
	s.agent.remember(s.ID(), t.id)
	t.mu.Lock()
	t.shown = s
	t.mu.Unlock()
	return "", nil
}

// lockCleared locks the session when no turn is clearing up any more whose end was told.
//
// Invariant: who has been told of a turn's end is not refused because of that turn (TestWhatComesRightBehindATurnsEndIsNotRefused).
func (s *Session) lockCleared() {
	for {
		s.mu.Lock()
		t := s.current
		if t == nil || !t.Over() {
			return
		}
		s.mu.Unlock()
		<-t.done
	}
}

func (s *Session) end(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.currentClientID = nil, ""
}

// renew keeps the session's lease while its turn runs; the goroutine ends when the returned function is called.
func (s *Session) renew(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := s.log.Renew(ctx); err != nil && ctx.Err() == nil {
					s.agent.o.Log.Warn("the session's lease was not renewed", "session", s.ID(), "err", err)
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}
