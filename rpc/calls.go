package rpc

import (
	"context"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// Calls are the client's requests that are not answered yet, by id. The zero value is ready; any goroutine may use it.
// Requests begin where messages are read, in wire order, so that a cancel right behind a request finds it (S2).
type Calls struct {
	mu   sync.Mutex
	byID map[jsonrpc2.ID]*Call
	open int
	idle chan struct{} // made by Idle, closed when open comes to 0
}

// Call is one request in flight.
type Call struct {
	// ID is the request's.
	ID jsonrpc2.ID

	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func()
}

// Begin registers a request. Its context ends with ctx, when the client cancels it, and with Done.
func (c *Calls) Begin(ctx context.Context, id jsonrpc2.ID) *Call {
	call := &Call{ID: id}
	call.ctx, call.cancel = context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[jsonrpc2.ID]*Call{}
	}
	c.byID[id] = call
	c.open++
	return call
}

// End forgets a request that was answered. Of two with one id the first answer ends both: it leaves their contexts alone.
func (c *Calls) End(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID[call.ID] == call { // a client may use an id twice at a time, against the rules
		delete(c.byID, call.ID)
	}
	c.open--
	if c.open == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// Idle waits until all requests were answered, or ctx ends.
func (c *Calls) Idle(ctx context.Context) {
	c.mu.Lock()
	if c.open == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Cancel is $/cancelRequest: it does what OnCancel said, else it ends the context of the request with [ErrCanceled]. A
// request that is not in flight is none of its business. It does not block.
func (c *Calls) Cancel(id jsonrpc2.ID) {
	c.mu.Lock()
	call := c.byID[id]
	var stop func()
	if call != nil {
		stop = call.stop
	}
	c.mu.Unlock()
	switch {
	case call == nil:
	case stop != nil:
		stop()
	default:
		call.cancel(ErrCanceled)
	}
}

// OnCancel has stop called instead of ending the context when the client cancels the request: a cancelled start is a
// stopped turn, whose reply is a result. Call it before the next message is read.
func (c *Calls) OnCancel(call *Call, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.stop = stop
}

// Context is the request's.
func (c *Call) Context() context.Context { return c.ctx }

// Done ends the context: the request was served.
func (c *Call) Done() { c.cancel(nil) }
