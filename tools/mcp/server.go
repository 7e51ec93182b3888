package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fermata/tools"
)

const (
	startTime = 10 * time.Second
	callTime  = 10 * time.Minute
	listTime  = 5 * time.Second // for a list that has changed
	backOff   = time.Second     // before the second start in a row that came to nothing; it doubles
	backOffTo = time.Minute
	spared    = 10          // times as long as a list was waited for in vain it is not waited for again
	lived     = time.Minute // a server that ran for so long has not failed to start
)

var (
	errClosed = errors.New("fermata is ending")
	errEnded  = errors.New("it ended the connection")
)

// server is one configured server for one root, whether it runs or not.
type server struct {
	c    Config
	root string
	o    Options
	log  *slog.Logger

	life context.Context // ends with close
	end  context.CancelFunc

	mu       sync.Mutex
	conn     *conn        // nil: it does not run
	starting *starting    // nil: nobody starts it
	tools    []tools.Tool // as listed last; nil: never
	notes    []string     // about that list, not told yet
	failures int          // in a row
	failed   error        // the last of them
	again    time.Time    // not to be started before
	told     bool         // the user knows that it fails
	unlisted int          // times in a row that its list could not be read while it ran
	relist   time.Time    // the list is not to be read before
	closed   bool
}

// starting is an attempt to start; its fields are valid when done is closed.
type starting struct {
	done chan struct{}
	conn *conn
	err  error
}

func newServer(c Config, root string, o Options) *server {
	if c.Start == 0 {
		c.Start = startTime
	}
	if c.Call == 0 {
		c.Call = callTime
	}
	s := &server{c: c, root: root, o: o, log: o.Log.With("mcp", c.Name)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// offer is what a server offers for the turn that begins.
type offer struct {
	tools    []tools.Tool
	warnings []string // not told before
	err      error    // why it offers nothing, or nothing new
	took     time.Duration
}

// offer starts the server if it never was, and reads its list again if that has changed. The tools of one that has ended
// stay on offer: the next call starts it.
func (s *server) offer(ctx context.Context) (o offer) {
	begun := time.Now()
	s.mu.Lock()
	conn, known, due := s.conn, s.tools != nil, !time.Now().Before(s.relist)
	s.mu.Unlock()
	switch {
	case !known:
		_, o.err = s.ensure(ctx)
	case due && conn != nil && !conn.over() && (conn.changed.CompareAndSwap(true, false) || conn.wire.unheard()):
		err := s.list(ctx, conn)
		if err != nil {
			conn.changed.Store(true) // it is still to be read
		}
		if err != nil && ctx.Err() == nil { // not by a stop
			s.unread(time.Since(begun))
		}
		if err != nil && !conn.lost(err) {
			o.err = err
		}
	}
	o.took = time.Since(begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	o.tools = s.tools
	if o.warnings, s.notes = s.notes, nil; o.err == nil || ctx.Err() != nil {
		return o
	}
	if !s.told { // however it puts it the next time
		s.told = true
		o.warnings = append(o.warnings, fmt.Sprintf("the MCP server %s cannot be used: %v", s.c.Name, o.err))
	}
	return o
}

// ensure gives the server's connection, and starts it if there is none. Whoever leaves by its own ctx leaves the start to the
// others.
func (s *server) ensure(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if c := s.conn; c != nil {
		s.mu.Unlock()
		if !c.over() {
			return c, nil
		}
		left := make(chan struct{})
		go func() { // ends when the server's processes have, which does not take long
			defer close(left)
			_ = s.lost(c, errEnded)
		}()
		select {
		case <-left:
			return s.ensure(ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	st := s.starting
	switch wait := time.Until(s.again); {
	case s.closed:
		defer s.mu.Unlock()
		return nil, errClosed
	case st == nil && wait > 0:
		defer s.mu.Unlock()
		return nil, fmt.Errorf("%w (it is not started again for %v)", s.failed, wait.Round(time.Second)+time.Second)
	case st == nil:
		st = &starting{done: make(chan struct{})}
		s.starting = st
		go s.start(st) // ends at the latest after the time that the server has to start
	}
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.conn, st.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start starts the server and reads its list.
func (s *server) start(st *starting) {
	defer close(st.done)
	ctx, cancel := context.WithTimeout(s.life, s.c.Start)
	defer cancel()
	st.conn, st.err = s.dial(ctx)
	if st.err == nil {
		if err := s.list(ctx, st.conn); err != nil {
			st.err = st.conn.ended(err)
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && st.err != nil {
		st.err = fmt.Errorf("it did not start within %v%s", s.c.Start, st.conn.lastWords())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = nil
	switch {
	case st.err != nil:
		st.conn = nil
		s.failLocked(st.err)
	case s.closed:
		st.conn.close()
		st.conn, st.err = nil, errClosed
	default:
		s.conn = st.conn
		go func(c *conn) { // ends with the connection, which close sees to
			<-c.gone
			_ = s.lost(c, cmp.Or(c.cause, errEnded))
		}(st.conn)
	}
}

// failLocked takes note that the server came to nothing, and sets the time before which it is not started again.
func (s *server) failLocked(err error) {
	s.failed = err
	s.again = time.Now().Add(min(backOff<<min(s.failures, 10), backOffTo))
	s.failures++
	s.log.Warn("the MCP server cannot be used", "err", err)
}

// unread takes note that the list was waited for in vain, so that turns that follow do not wait for it too.
func (s *server) unread(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relist = time.Now().Add(max(min(backOff<<min(s.unlisted, 10), backOffTo), spared*took))
	s.unlisted++
}

// lost takes note that a connection is over, and closes it, with what the server has left behind. It says how.
func (s *server) lost(c *conn, cause error) error {
	c.close()
	err := c.ended(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case s.conn != c:
		return err // said already
	}
	s.conn = nil
	if time.Since(c.begun) > lived {
		s.failures = 0
	}
	s.failLocked(err)
	if s.failures == 1 {
		s.again = time.Time{} // the next call may start it
	}
	return err
}

// list reads the server's list and keeps what is fit to be offered.
func (s *server) list(ctx context.Context, c *conn) error {
	ctx, cancel := context.WithTimeout(ctx, max(listTime, s.c.Start))
	defer cancel()
	listed, err := c.tools(ctx, s.c.Tools)
	if err != nil {
		return fmt.Errorf("its list of tools cannot be read: %w", err)
	}
	fit, notes := s.fit(listed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.notes, s.told = fit, append(s.notes, notes...), false
	s.unlisted, s.relist = 0, time.Time{}
	return nil
}

func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.end()
	conn, st := s.conn, s.starting
	s.mu.Unlock()
	if st != nil {
		<-st.done
	}
	if conn != nil {
		conn.close()
	}
}
