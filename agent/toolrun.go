package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/transcript"
)

// calls is the tool phase of a step. Read-only calls that stand next to each other run at once; a mutating call waits
// for all before it, and all after it wait. The turn's goroutine owns it; tools and the permission question run in
// goroutines of their own that only send to its channels.
type calls struct {
	*run
	step    int
	all     []*call
	ctx     context.Context   // of the tools: cancelled by a stop, with its cause
	events  chan func() error // to be run by the turn's goroutine; its error is the log's
	gone    chan struct{}     // closed when the turn's goroutine takes no more events
	running int
	asking  *call
}

// call is one tool call on its way from queued to settled.
type call struct {
	transcript.Call
	tool    *tools.Tool // nil: there is no such tool
	permit  permit.Permit
	started time.Time
	state   callState
	touched []touch // known files that it changed without saying which; once it has come back

	rewritten []rewritten       // likewise: what it did to files, as far as that was seen
	changes   []transcript.Body // the entries of that, or why they cannot be recorded
	unsaid    error
}

type callState int

const (
	callWaiting callState = iota
	callAsked
	callRunning
	callSettled
)

// runTools runs an answer's calls until each has a result or a receipt. It returns an error only when the log refused.
func (r *run) runTools(ctx context.Context, step int, answer *transcript.Answer) error {
	c := &calls{run: r, step: step, events: make(chan func() error), gone: make(chan struct{})}
	defer close(c.gone)
	var cancel context.CancelCauseFunc
	c.ctx, cancel = context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, k := range answer.Calls() {
		c.all = append(c.all, &call{Call: k, tool: r.tool(k.Name)})
	}
	for c.open() > 0 {
		if r.stopping() {
			return c.stopped(ctx, cancel)
		}
		if err := c.dispatch(ctx); err != nil {
			return c.failed(ctx, cancel, err)
		}
		if c.running == 0 && c.asking == nil {
			continue // what was dispatched settled at once
		}
		select {
		case <-r.stop:
		case <-r.inbox.bell:
			r.receive(ctx)
		case f := <-c.events:
			if err := f(); err != nil {
				return c.failed(ctx, cancel, err)
			}
		}
	}
	return nil
}

func (r *run) tool(name string) *tools.Tool {
	offered := r.s.tools()
	if i := slices.IndexFunc(offered, func(t tools.Tool) bool { return t.Name == name }); i >= 0 {
		return &offered[i]
	}
	return nil
}

// open counts the calls that have not settled.
func (c *calls) open() (n int) {
	for _, k := range c.all {
		if k.state != callSettled {
			n++
		}
	}
	return n
}

// dispatch starts every call whose time has come: in order, up to the first that must wait.
func (c *calls) dispatch(ctx context.Context) error {
	for _, k := range c.all {
		switch {
		case k.state == callSettled:
			continue
		case k.state == callRunning && k.tool.ReadOnly:
			continue // its read-only neighbours run beside it
		case k.state != callWaiting:
			return nil
		case k.tool == nil:
			if err := c.settle(ctx, k, c.unknownTool(k)); err != nil {
				return err
			}
			continue
		case !k.tool.ReadOnly && c.running > 0:
			return nil
		}
		if err := c.decide(ctx, k); err != nil {
			return err
		}
		if k.state == callAsked || k.state == callRunning && !k.tool.ReadOnly {
			return nil
		}
	}
	return nil
}

func (c *calls) unknownTool(k *call) *transcript.ToolSettled {
	var names []string
	for _, t := range c.s.tools() {
		names = append(names, t.Name)
	}
	text := fmt.Sprintf("[not run: there is no tool %q. The tools are: %s.]", clip(k.Name, 100), strings.Join(names, ", "))
	if len(names) == 0 {
		text = fmt.Sprintf("[not run: there is no tool %q; this session has no workspace and no tools.]", clip(k.Name, 100))
	}
	return &transcript.ToolSettled{Turn: c.id, Step: c.step, Call: k.ID, Name: k.Name, State: transcript.ToolNotStarted, Cause: transcript.CauseUnknownTool, Output: text}
}

// decide asks the policy about a call: it starts, settles as denied, or the user is asked. A call that cannot succeed is not
// asked about: its arguments are none that a tool can run, or the change it would make cannot be made.
func (c *calls) decide(ctx context.Context, k *call) error {
	w, _ := c.s.workspace() // without one the tool fails, and says why
	if bad, ok := k.tool.Check(w, json.RawMessage(k.Args)); !ok {
		return c.settleUnasked(ctx, k, bad)
	}
	question := k.tool.Ask(w, json.RawMessage(k.Args))
	decision := c.s.permits(question)
	if decision.Verdict != permit.Ask {
		return c.decided(ctx, k, decision)
	}
	k.state, c.asking = callAsked, k
	q := Question{Session: c.s.ID(), Turn: c.id, Step: c.step, Call: question, CallID: k.ID, Why: decision.Why, Narrow: decision.Narrow}
	go func() { // ends with the answer, at the latest when a stop cancels c.ctx
		bad, reply, err := c.question(k, q)
		c.send(func() error {
			c.asking = nil
			if k.state != callAsked {
				return nil // a stop has answered the question
			}
			if bad != nil {
				return c.settleUnasked(ctx, k, *bad)
			}
			if err != nil {
				reply = Reply{Answer: permit.DenyCall, Why: err.Error()}
			}
			return c.decided(ctx, k, c.s.answered(question, reply))
		})
	}()
	return nil
}

// question asks, and gives the answer; bad is the result of a call that there is nothing to ask about.
func (c *calls) question(k *call, q Question) (bad *tools.Result, reply Reply, err error) {
	defer func() {
		if c.agent.bug("a question about "+k.Name, recover()) {
			err = errors.New("it could not be asked about, by an error inside fermata")
		}
	}()
	if q.Call.Command != "" {
		q.Sandbox = c.agent.o.Sandbox.Says(c.s.Workspace())
	}
	if q.Diff, bad = c.preview(c.ctx, k, q.Call); bad == nil {
		reply, err = c.agent.o.Client.Permission(c.ctx, q)
	}
	return bad, reply, err
}

// settleUnasked settles a call that cannot succeed.
func (c *calls) settleUnasked(ctx context.Context, k *call, bad tools.Result) error {
	t, err := c.settledOf(k, bad, 0)
	if err != nil {
		return err
	}
	return c.settle(ctx, k, t)
}

// send gives f to the turn's goroutine; false when that takes no more.
func (c *calls) send(f func() error) bool {
	select {
	case c.events <- f:
		return true
	case <-c.gone:
		return false
	}
}

func (c *calls) decided(ctx context.Context, k *call, d permit.Decision) error {
	if d.Verdict != permit.Allow {
		return c.settle(ctx, k, receipt(c.id, c.step, k.Call, transcript.ToolNotStarted, transcript.CausePermissionDenied, d.Why))
	}
	k.permit = d.Permit
	return c.start(ctx, k)
}

// start commits that the call starts, then starts it.
func (c *calls) start(ctx context.Context, k *call) error {
	entries, err := c.s.log.Append(ctx, &transcript.ToolStarted{
		Turn: c.id, Step: c.step, Call: k.ID, Name: k.Name, ReadOnly: k.tool.ReadOnly, Summary: k.tool.Summary(json.RawMessage(k.Args)),
	})
	if err != nil {
		return err
	}
	c.told(entries)
	k.state, k.started = callRunning, time.Now()
	c.running++
	c.s.late.Go(func() { // ends when the tool comes back; a stop cancels c.ctx, and Session.close waits for it
		result := c.execute(k)
		k.changes, k.unsaid = c.commandChanges(ctx, k)
		millis := time.Since(k.started).Milliseconds()
		recorded := make(chan struct{})
		if !c.send(func() error { defer close(recorded); return c.came(ctx, k, result, millis) }) {
			if result.State != tools.Unknown { // that it is known already
				c.cameLate(ctx, k, result, millis)
			}
			close(recorded)
		}
		if result.Later != nil {
			<-recorded
			if late, ok := <-result.Later; ok {
				c.cameLate(ctx, k, late, time.Since(k.started).Milliseconds())
			}
		}
	})
	return nil
}

// execute runs the tool in the calling goroutine.
func (c *calls) execute(k *call) (result tools.Result) {
	defer func() {
		if c.agent.bug("the tool "+k.Name, recover()) {
			result = tools.Result{State: tools.Failed, Output: fmt.Sprintf("internal error in %s; nothing more is known", k.Name)}
		}
	}()
	env, err := c.env(k)
	if err != nil {
		return tools.Result{State: tools.Failed, Output: "the workspace cannot be opened: " + err.Error()}
	}
	if args := json.RawMessage(k.Args); !k.tool.ReadOnly && len(k.tool.Ask(env.Workspace, args).Paths) == 0 {
		again := c.s.known.watchCommand(env.Workspace) // it does not say which files it changes
		snap := c.s.snapshot(c.ctx, env.Workspace)
		defer func() { k.touched, k.rewritten = again(), snap.rewritten() }()
	}
	return k.tool.Run(c.ctx, env, json.RawMessage(k.Args))
}

// env is what a tool's run is given.
func (c *calls) env(k *call) (tools.Env, error) {
	w, err := c.s.workspace()
	if err != nil {
		return tools.Env{}, err
	}
	return tools.Env{
		Workspace: w,
		Permit:    k.permit,
		MayRead:   c.s.mayRead(w, k.Name),
		Memory:    c.s.known,
		Secrets:   c.agent.o.Secrets,
		Sandbox:   c.agent.o.Sandbox,
		Intent:    func(ctx context.Context, change tools.Change) error { return c.intent(ctx, k, change) },
		Progress: func(text string) {
			c.s.hub.publish(Event{Output: &Output{Turn: c.id, Step: c.step, Call: k.ID, Text: text}})
		},
	}, nil
}

// intent records what a tool is about to do to a file, in the turn's goroutine (C3). After a stop nothing more is begun.
func (c *calls) intent(ctx context.Context, k *call, change tools.Change) error {
	put := func(content []byte) (string, error) {
		if content == nil {
			return "", nil
		}
		return c.s.log.PutBlob(ctx, content)
	}
	before, err := put(change.Before)
	if err != nil {
		return err
	}
	after, err := put(change.After)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	ok := c.send(func() error {
		if c.stopping() {
			done <- ErrStopped
			return nil
		}
		f := &transcript.FileChanged{
			Turn: c.id, Step: c.step, Call: k.ID, Path: change.Path, Before: before, After: after, Buffer: change.Buffer, Mode: string(change.Mode),
		}
		entries, err := c.s.log.Append(context.WithoutCancel(ctx), movedFrom(change.From, f)...)
		if err == nil {
			c.told(entries)
		}
		done <- err
		return nil // the tool fails by it and says so
	})
	if !ok {
		return ErrStopped
	}
	return <-done
}

func (c *calls) settledOf(k *call, result tools.Result, millis int64) (*transcript.ToolSettled, error) {
	t := &transcript.ToolSettled{
		Turn: c.id, Step: c.step, Call: k.ID, Name: k.Name, State: transcript.ToolState(result.State),
		Output: strings.ToValidUTF8(result.Output, "\uFFFD"), Exit: result.Exit, Millis: millis,
	}
	if t.State == transcript.ToolStopped || t.State == transcript.ToolUnknown && c.stopping() {
		t.Cause = c.stoppedBecause()
	}
	t.Touched = touched(k.touched)
	var err error
	if t.Seen, err = c.s.seen(context.WithoutCancel(c.ctx), result.Seen); err != nil {
		return t, err
	}
	if result.Full != nil {
		sum, err := c.s.log.PutBlob(context.WithoutCancel(c.ctx), result.Full)
		if err != nil {
			return t, err
		}
		t.Full = sum
	}
	return t, nil
}

// came commits a result as it arrives (S9).
func (c *calls) came(ctx context.Context, k *call, result tools.Result, millis int64) error {
	c.running--
	t, err := c.settledOf(k, result, millis)
	if err != nil {
		return err
	}
	if k.unsaid != nil {
		return k.unsaid
	}
	return c.settle(ctx, k, t, k.changes...)
}

// settle records a result, and before it in the same transaction what only came out with it.
func (c *calls) settle(ctx context.Context, k *call, t *transcript.ToolSettled, before ...transcript.Body) error {
	entries, err := c.s.log.Append(ctx, append(before, t)...)
	if err != nil {
		return err
	}
	k.state = callSettled
	c.told(entries)
	return nil
}

// stopped is S3 for a turn whose tools run: the receipts of what never started are committed at once, then what runs is
// stopped and its real results are taken, then the turn ends.
func (c *calls) stopped(ctx context.Context, cancel context.CancelCauseFunc) error {
	if err := c.commitReceipts(ctx, c.stoppedBecause(), ""); err != nil {
		cancel(ErrStopped)
		return err
	}
	cancel(ErrStopped)
	return c.settleRunning(ctx)
}

// commitReceipts writes, in one transaction, a receipt for every call that has not started.
func (c *calls) commitReceipts(ctx context.Context, cause, why string) error {
	var receipts []transcript.Body
	var waiting []*call
	for _, k := range c.all {
		if k.state == callWaiting || k.state == callAsked {
			receipts = append(receipts, receipt(c.id, c.step, k.Call, transcript.ToolNotStarted, cause, why))
			waiting = append(waiting, k)
		}
	}
	if len(receipts) == 0 {
		return nil
	}
	entries, err := c.s.log.Append(ctx, receipts...)
	if err != nil {
		return err
	}
	for _, k := range waiting {
		k.state = callSettled
	}
	c.told(entries)
	return nil
}

// settleRunning takes the real results of running calls. One that is not back at the deadline gets `unknown`; its real
// result is appended when it comes (S7).
func (c *calls) settleRunning(ctx context.Context) error {
	deadline := time.NewTimer(c.agent.o.Settle)
	defer deadline.Stop()
	for c.running > 0 {
		select {
		case f := <-c.events:
			if err := f(); err != nil {
				return err
			}
		case <-deadline.C:
			for _, k := range c.all {
				if k.state != callRunning {
					continue
				}
				c.running--
				t := receipt(c.id, c.step, k.Call, transcript.ToolUnknown, c.stoppedBecause(), "")
				t.Millis = time.Since(k.started).Milliseconds()
				if err := c.settle(ctx, k, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cameLate appends the real result of a call that was settled as unknown. It runs in the tool's goroutine: the turn's has
// ended.
func (c *calls) cameLate(ctx context.Context, k *call, result tools.Result, millis int64) {
	t, err := c.settledOf(k, result, millis)
	t.Late = true
	if err == nil {
		err = k.unsaid
	}
	if err == nil {
		err = c.s.appendLate(ctx, t, k.changes...)
	}
	if err != nil {
		c.agent.o.Log.Warn("a late result could not be recorded", "call", k.ID, "err", err)
	}
}

// appendLate records a late result (S7): the next notice tells it, once.
func (s *Session) appendLate(ctx context.Context, t *transcript.ToolSettled, before ...transcript.Body) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.log.Append(ctx, append(before, t)...)
	if err != nil {
		return err
	}
	if s.current == nil {
		s.past.add(t)
	} else {
		s.stale = true // the running turn's notice is written: the one after it tells
	}
	s.hub.publishEntries(entries)
	return nil
}

// failed ends a turn whose log refused an entry: what runs is stopped, and the rest is left to the repair.
func (c *calls) failed(ctx context.Context, cancel context.CancelCauseFunc, cause error) error {
	cancel(cause)
	err := c.settleRunning(ctx)
	if err == nil {
		err = c.commitReceipts(ctx, transcript.CauseTurnFailed, "the transcript could not be written")
	}
	if err == nil {
		err = c.end(ctx, &transcript.TurnEnded{Outcome: transcript.TurnFailed, Cause: "storage", Error: cause.Error()})
	}
	return errors.Join(cause, err)
}
