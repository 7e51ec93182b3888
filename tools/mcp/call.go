package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tools"
)

const (
	answerTime = time.Second      // for an answer to a call that was cancelled
	lateTime   = 10 * time.Minute // after that it is not waited for any more
)

// answer is what came of a call: a result or an error.
type answer struct {
	result *sdk.CallToolResult
	err    error
}

// request is a call to be made.
type request struct {
	name, own string // the tool's for models, and the server's
	args      json.RawMessage
	progress  func(string) // may be nil
}

// call runs a tool of the server. A connection that turns out to have ended before the call could leave is replaced once: the
// server has not seen the call.
func (s *server) call(ctx context.Context, r request) tools.Result {
	var unsent error
	for range 2 {
		c, err := s.ensure(ctx)
		switch {
		case ctx.Err() != nil:
			return tools.Result{State: tools.Stopped, Output: notBegun}
		case err != nil:
			return failf("%s: the MCP server %s does not run, nothing was done: %v", r.name, s.c.Name, err)
		}
		var res tools.Result
		if res, unsent = s.callOn(ctx, c, r); unsent == nil {
			return res
		}
	}
	return failf("%s: the MCP server %s does not run, nothing was done: %v", r.name, s.c.Name, unsent)
}

// callOn makes a call on a connection. unsent says why the connection could not take it. A stop tells the server, and takes its
// answer if that comes soon; one that comes later is the result's Later (S7).
func (s *server) callOn(ctx context.Context, c *conn, r request) (res tools.Result, unsent error) {
	end := c.begin()
	if end == nil {
		return res, s.lost(c, sdk.ErrConnectionClosed)
	}
	params := &sdk.CallToolParams{Name: r.own}
	if len(r.args) > 0 {
		params.Arguments = r.args
	}
	done := func() {}
	if r.progress != nil {
		var token string
		token, done = c.follow(r.progress)
		params.SetProgressToken(token)
	}
	defer done()
	calling, drop := context.WithCancel(c.calls)
	on := &sent{drop: drop}
	answers := make(chan answer, 1)
	begun := time.Now()
	go func() { // ends with the answer or with the connection, at the latest when that is closed
		defer end()
		defer drop() // what the server says in this answer's stream after the answer is for nobody
		r, err := c.session.CallTool(on.with(calling), params)
		answers <- answer{r, err}
	}()
	timer := time.NewTimer(s.c.Call)
	defer timer.Stop()
	var why, reason string
	select {
	case a := <-answers:
		if a.err != nil && !on.left() {
			return res, s.lost(c, a.err)
		}
		return s.result(c, r.name, a), nil
	case <-ctx.Done():
		why, reason = "stopped", "the user stopped it"
	case <-timer.C:
		why, reason = "timed out", "it took too long"
	}
	why = fmt.Sprintf("%s after %v", why, time.Since(begun).Round(100*time.Millisecond))
	var told atomic.Bool
	go func() { // ends when the server has read it, or in partingTime
		tell, cancel := context.WithTimeout(c.calls, partingTime)
		defer cancel()
		err := on.tell(tell, reason)
		if told.Store(err == nil); err != nil {
			s.log.Debug("the server could not be told that a call is cancelled", "err", err)
		}
	}()
	wait := time.NewTimer(answerTime)
	defer wait.Stop()
	select {
	case a := <-answers:
		return s.afterCancel(c, r.name, why, ctx.Err() != nil, on.left(), a), nil
	case <-wait.C:
	}
	later := make(chan tools.Result, 1)
	go s.late(c, r.name, answers, later)
	said := "was told so but has not answered"
	if !told.Load() {
		said = "could not be told so"
	}
	return tools.Result{State: tools.Unknown, Later: later, Output: fmt.Sprintf(
		"[result unknown: %s, and the MCP server %s %s. The call may have taken effect.]", why, s.c.Name, said)}, nil
}

// late waits for the answer to a call that nobody waits for any more. It comes at the latest, as an error, with the end of the
// connection: an answer that came just before that is not lost.
func (s *server) late(c *conn, name string, answers <-chan answer, later chan<- tools.Result) {
	defer close(later)
	limit := time.NewTimer(lateTime)
	defer limit.Stop()
	select {
	case a := <-answers:
		if a.err == nil || isAnswer(a.err) {
			later <- s.result(c, name, a)
		}
	case <-limit.C:
	}
}

// afterCancel is the result of a call that was cancelled and then answered. A real answer is the result; an error is what
// servers say to being cancelled.
func (s *server) afterCancel(c *conn, name, why string, stopped, left bool, a answer) tools.Result {
	if a.err == nil && !a.result.IsError {
		return s.result(c, name, a)
	}
	var res tools.Result
	switch {
	case left:
		res = s.result(c, name, a)
		res.Output = why + "; then: " + res.Output
	case stopped:
		res.Output = notBegun
	default:
		res.Output = why + ", before the MCP server " + s.c.Name + " had read it: nothing was done"
	}
	if res.State = tools.Stopped; !stopped {
		res.State = tools.Failed
	}
	return res
}

// result is an answer as the model reads it. The end of the server is one.
func (s *server) result(c *conn, name string, a answer) tools.Result {
	if a.err == nil {
		return resultOf(a.result)
	}
	if e, ok := errors.AsType[*jsonrpc.Error](a.err); ok && isAnswer(a.err) {
		return failf("%s: the MCP server %s answers with an error: %s (code %d)", name, s.c.Name, readable(e.Message, 2000), e.Code)
	}
	if !c.lost(a.err) { // other calls run on
		return failf("%s: the MCP server %s gave no answer that can be read, and the call may have taken effect: %s", name, s.c.Name, readable(a.err.Error(), 300))
	}
	return failf("%s: the MCP server %s was lost before it answered, and the call may have taken effect: %v", name, s.c.Name, s.lost(c, a.err))
}

// notSent is the SDK's code for what it could not send.
const notSent = -32005

// isAnswer reports whether an error is what the server answered, and not that it could not be reached.
func isAnswer(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code != notSent && !errors.Is(err, sdk.ErrConnectionClosed) && !errors.Is(err, sdk.ErrSessionMissing)
}
