// Package lsp is fermata's LSP face: the standard methods, for clients that know nothing of fermata, and the fermata/*
// methods of rpc/wire. Both are views of one [agent.Agent]; nothing of a conversation is kept here that the log could not
// rebuild. It promises the order of semantics.md on the wire: requests take effect in the order in which they were sent
// (S2), and all events of a turn are written before the replies to its start and its stop (S4).
//
// [Serve] runs one client. One goroutine reads messages; it applies document changes and registers turns and stops, and
// never waits for a turn or for the client. Each request then goes on in a goroutine of its own, and each followed
// session has one that writes its events. When the client is gone its turns are stopped with [agent.ErrClientGone].
package lsp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// ErrNoShutdown is returned by [Serve] when the client ended without the shutdown request: the exit status is then 1.
var ErrNoShutdown = errors.New("the client went without a shutdown request")

// endDeadline is how long the end of all turns may take once the client is gone.
const endDeadline = 4500 * time.Millisecond

// replyDeadline is how long the client may take to read the last replies, within endDeadline.
const replyDeadline = 2 * time.Second

// Options say what to serve. Open and StateDir are required.
type Options struct {
	// Version is told in serverInfo.
	Version string
	// Open makes the agent for a client, and the store it uses. It is called at once and in the background, so that
	// initialize need not wait for the database, and again for a later request when it failed. Serve closes the agent; the
	// store is the caller's to close after Serve.
	Open func(ctx context.Context, c agent.Client) (*agent.Agent, *transcript.Store, error)
	// Dialect finds the dialect that a request was encoded with, to tell what it could not send (T2); nil tells nothing.
	Dialect func(name string) (model.Dialect, error)
	// Models tells the models that turns can use; nil tells none.
	Models func(ctx context.Context) (wire.ModelListResult, error)
	// StateDir is the folder for files that editors open: transcripts, model inputs, prompts. It is made when needed.
	StateDir string
	// MaxMessage is the length of the longest message in bytes; 0 means rpc.DefaultMaxMessage.
	MaxMessage int64
	// EditDeadline is how long the client has to make an edit and to tell the document's new text; 0 means 5 seconds.
	EditDeadline time.Duration
	// Log is nil for none. It must not be what the client reads.
	Log *slog.Logger
}

// server is one client's connection.
type server struct {
	o      Options
	log    *slog.Logger
	stream *rpc.Stream
	conn   jsonrpc2.Conn

	ctx  context.Context         // ends when the client is gone or leaves
	end  context.CancelCauseFunc // of ctx
	life context.Context         // ends later, when all turns have ended and Serve is about to return

	back struct {
		mu     sync.Mutex
		newest *opening
	}
	closing sync.Once // of the agent

	calls  rpc.Calls
	work   sync.WaitGroup // every goroutine that is not the reader's
	client client         // set by initialize
	phase  phase          // the reading goroutine's
	left   chan struct{}  // closed by exit

	folders folders
	docs    documents
	pumps   pumps
	views   views
	lenses  refresher
	prompts prompts
	models  models
	tokens  tokens
}

// Serve serves the client at in and out until it leaves, its input ends or ctx does. Running turns are then stopped and
// committed. It returns nil when the client left in order, else [ErrNoShutdown] or the cause of ctx.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.EditDeadline == 0 {
		o.EditDeadline = 5 * time.Second
	}
	s := &server{o: o, log: o.Log, left: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	life, endLife := context.WithCancel(context.WithoutCancel(ctx))
	s.life = life
	s.ctx, s.end = context.WithCancelCause(life)
	s.stream = rpc.NewStream(in, out, rpc.StreamOptions{MaxMessage: o.MaxMessage, Hangup: s.hangup})
	s.conn = jsonrpc2.NewConn(s.stream)
	s.lenses = newRefresher()

	s.open(nil)
	s.work.Go(s.refreshLenses)                                          // ends with life
	defer context.AfterFunc(ctx, func() { s.end(agent.ErrShutdown) })() // a signal
	s.conn.Go(s.life, s.handle)                                         // ends with the input

	select {
	case <-s.left:
		s.finish(agent.ErrClientGone)
	case <-s.ctx.Done():
		s.finish(context.Cause(s.ctx))
	}
	endLife()
	_ = s.stream.Close() // the reader ends; nothing is left to read
	s.wait(300 * time.Millisecond)
	switch cause := context.Cause(ctx); {
	case s.phase.shutdown():
		return nil
	case cause != nil:
		return cause
	}
	return ErrNoShutdown
}

// opening is the agent on its way. Its fields are valid once ready is closed.
type opening struct {
	before error // of the one before, that failed; nil for the first
	ready  chan struct{}

	agent *agent.Agent
	store *transcript.Store
	err   error
}

// open begins to make the agent, unless one was begun after the failed one that the caller knows; nil is for the first.
func (s *server) open(failed *opening) *opening {
	s.back.mu.Lock()
	defer s.back.mu.Unlock()
	if s.back.newest != failed {
		return s.back.newest
	}
	o := &opening{ready: make(chan struct{})}
	if failed != nil {
		o.before = failed.err
	}
	s.back.newest = o
	s.work.Go(func() { // ends with Open
		o.agent, o.store, o.err = s.o.Open(s.ctx, s)
		close(o.ready)
	})
	return o
}

// reopenPatience is how long a request waits for the agent that could not be made before. The reader of messages waits too.
const reopenPatience = time.Second

// backend is the agent and its store, once they are there. When they could not be made it is tried again: a full disk has
// room by now, or the right file is back.
func (s *server) backend(ctx context.Context) (*agent.Agent, *transcript.Store, error) {
	s.back.mu.Lock()
	o := s.back.newest
	s.back.mu.Unlock()
	err := o.wait(ctx)
	if failed(o) && s.ctx.Err() == nil {
		o = s.open(o)
		err = o.wait(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return o.agent, o.store, o.err
}

// failed reports whether an opening is over and was in vain.
func failed(o *opening) bool {
	select {
	case <-o.ready:
		return o.err != nil
	default:
		return false
	}
}

// wait waits until the opening is over: the first one for as long as it takes, another one not longer than reopenPatience,
// with the error of the one before.
func (o *opening) wait(ctx context.Context) error {
	var late <-chan time.Time
	if o.before != nil {
		late = time.After(reopenPatience)
	}
	select {
	case <-o.ready:
		return nil
	case <-late:
		return o.before
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hangup is what happens when the client is gone. It returns when all turns have ended and their replies are written, as
// far as anybody reads them.
func (s *server) hangup(err error) {
	if _, broken := errors.AsType[*rpc.OutputError](err); broken {
		s.log.Info("the client hung up", "err", err)
		s.end(agent.ErrClientGone)
		return
	}
	s.finish(agent.ErrClientGone)
}

// finish ends all turns, then all requests.
func (s *server) finish(cause error) {
	s.end(cause)
	ctx, cancel := s.deadline()
	defer cancel()
	s.closeAgent(ctx, cause)
	ctx, cancel = context.WithTimeout(ctx, replyDeadline)
	defer cancel()
	s.calls.Idle(ctx)
}

// deadline makes a context for what must be done although the client is gone.
func (s *server) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.life, endDeadline)
}

// closeAgent stops every turn and waits for their ends. Only the first cause counts.
func (s *server) closeAgent(ctx context.Context, cause error) {
	s.closing.Do(func() {
		a, _, err := s.backend(ctx)
		if err != nil {
			return // nothing was opened, so nothing runs
		}
		if err := a.Close(ctx, cause); err != nil {
			s.log.Error("close the agent", "err", err)
		}
	})
}

// wait waits for all goroutines, but not for ever: one may be writing to a client that does not read.
func (s *server) wait(atMost time.Duration) {
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }() // ends with the last of them
	select {
	case <-done:
	case <-time.After(atMost):
	}
}
