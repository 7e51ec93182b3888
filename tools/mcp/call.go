package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// call runs a tool of the server. A stop tells the server, and takes its answer if that comes soon; one that comes later is
// the result's Later (S7).
func (s *server) call(ctx context.Context, name, own string, args json.RawMessage, progress func(string)) tools.Result {
	c, err := s.ensure(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return tools.Result{State: tools.Stopped, Output: notBegun}
	case err != nil:
		return failf("%s: the MCP server %s does not run, nothing was done: %v", name, s.c.Name, err)
	}
	params := &sdk.CallToolParams{Name: own}
	if len(args) > 0 {
		params.Arguments = args
	}
	done := func() {}
	if progress != nil {
		var token string
		token, done = c.follow(progress)
		params.SetProgressToken(token)
	}
	defer done()
	on := &sent{}
	answers := make(chan answer, 1)
	begun := time.Now()
	go func() { // ends with the answer or with the connection, at the latest when that is closed
		r, err := c.session.CallTool(on.with(c.calls), params)
		answers <- answer{r, err}
	}()
	timer := time.NewTimer(s.c.Call)
	defer timer.Stop()
	var why, reason string
	select {
	case a := <-answers:
		return s.result(c, name, a)
	case <-ctx.Done():
		why, reason = "stopped", "the user stopped it"
	case <-timer.C:
		why, reason = "timed out", "it took too long"
	}
	why = fmt.Sprintf("%s after %v", why, time.Since(begun).Round(100*time.Millisecond))
	go func() { // ends when the server has read it, or with the connection
		tell, cancel := context.WithTimeout(c.calls, partingTime)
		defer cancel()
		if err := on.tell(tell, reason); err != nil {
			s.log.Debug("the server could not be told that a call is cancelled", "err", err)
		}
	}()
	wait := time.NewTimer(answerTime)
	defer wait.Stop()
	select {
	case a := <-answers:
		return s.afterCancel(c, name, why, ctx.Err() != nil, a)
	case <-wait.C:
	}
	later := make(chan tools.Result, 1)
	go s.late(c, name, answers, later)
	return tools.Result{State: tools.Unknown, Later: later, Output: fmt.Sprintf(
		"[result unknown: %s, and the MCP server %s was told so but has not answered. The call may have taken effect.]", why, s.c.Name)}
}

// late waits for the answer to a call that nobody waits for any more.
func (s *server) late(c *conn, name string, answers <-chan answer, later chan<- tools.Result) {
	defer close(later)
	limit := time.NewTimer(lateTime)
	defer limit.Stop()
	select {
	case a := <-answers:
		if a.err == nil || isAnswer(a.err) {
			later <- s.result(c, name, a)
		}
	case <-c.gone:
	case <-c.calls.Done():
	case <-limit.C:
	}
}

// afterCancel is the result of a call that was cancelled and then answered. A real answer is the result; an error is what
// servers say to being cancelled.
func (s *server) afterCancel(c *conn, name, why string, stopped bool, a answer) tools.Result {
	if a.err == nil && !a.result.IsError {
		return s.result(c, name, a)
	}
	res := s.result(c, name, a)
	if res.State = tools.Stopped; !stopped {
		res.State = tools.Failed
	}
	res.Output = why + "; then: " + res.Output
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
	return failf("%s: the MCP server %s was lost before it answered, and the call may have taken effect: %v", name, s.c.Name, s.lost(c, a.err))
}

// notSent is the SDK's code for what it could not send.
const notSent = -32005

// isAnswer reports whether an error is what the server answered, and not that it could not be reached.
func isAnswer(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code != notSent && !errors.Is(err, sdk.ErrConnectionClosed) && !errors.Is(err, sdk.ErrSessionMissing)
}
