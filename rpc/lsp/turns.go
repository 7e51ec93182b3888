package lsp

import (
	"context"
	"errors"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// asked is a turn that was registered where messages are read (S2) and is about to run.
type asked struct {
	turn      *agent.Turn
	prompt    []wire.PromptPart
	anchor    *wire.Anchor
	redirects transcript.TurnID // of a start, or of a redirect whose turn was found in the log
	replaces  transcript.TurnID // of a redirect: the turn it named, "" for the newest
	redirect  bool
	retry     bool // of the turn in replaces, "" for the last one of the session, "" for the one used last
	session   transcript.SessionID
	clientID  string
	model     string
	token     jsonValue // the client's, for progress
	file      bool      // asked in a prompt file
}

// turnStart answers at the end of the turn. Cancelling it is a stop, whose reply is a result (S1).
func turnStart(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p wire.TurnStartParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	if p.Session == "" {
		return nil, rpc.BadParam("session", "is missing")
	}
	if err := checkPrompt(p.Prompt); err != nil {
		return nil, err
	}
	a, _, err := s.backend(s.ctx)
	if err != nil {
		return nil, err
	}
	return s.answerTurn(call, asked{
		turn: a.Reserve(p.Session), prompt: p.Prompt, anchor: p.Anchor, redirects: p.Redirects,
		clientID: p.ClientID, model: p.Model, token: p.WorkDoneToken,
	}), nil
}

// turnRedirect stops the old turn and registers the new one at once (D4).
func turnRedirect(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p wire.TurnRedirectParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	if err := checkPrompt(p.Prompt); err != nil {
		return nil, err
	}
	a, _, err := s.backend(s.ctx)
	if err != nil {
		return nil, err
	}
	return s.answerTurn(call, asked{
		turn: a.ReserveRedirect(p.Turn), prompt: p.Prompt, anchor: p.Anchor, replaces: p.Turn, redirect: true,
		clientID: p.ClientID, model: p.Model, token: p.WorkDoneToken,
	}), nil
}

// answerTurn runs a turn for a request, and makes the request's cancel a stop.
func (s *server) answerTurn(call *rpc.Call, q asked) then {
	s.stopOnCancel(call, q.turn)
	return func(ctx context.Context) (any, error) {
		report, err := s.run(ctx, q)
		if err != nil {
			return nil, err
		}
		return turnResult(report), nil
	}
}

// stopOnCancel makes the cancel of the request that asked for a turn a stop, whose reply is a result (S1).
func (s *server) stopOnCancel(call *rpc.Call, t *agent.Turn) {
	s.calls.OnCancel(call, func() { t.Stop(agent.ErrStopped) })
}

// run runs a registered turn to its end, and returns when all of its events were written. Cancelling ctx stops it.
func (s *server) run(ctx context.Context, q asked) (agent.Report, error) {
	start, session, err := s.prepare(q)
	if err != nil {
		q.turn.Release()
		return agent.Report{}, rpc.About(session, err)
	}
	finished := s.progress(q.turn, q.token)
	report, err := q.turn.Run(ctx, start)
	s.drain(s.life, session)
	finished(report)
	if errors.Is(err, transcript.ErrNoTurn) {
		err = rpc.About(q.redirects, err)
	}
	if err != nil {
		return agent.Report{}, rpc.About(session, err)
	}
	return report, nil
}

// prepare follows the turn's session and reads what its prompt names. It goes on when the client is gone: what the user
// said belongs in the log all the same.
func (s *server) prepare(q asked) (agent.Start, transcript.SessionID, error) {
	ctx := s.life
	a, _, err := s.backend(ctx)
	if err != nil {
		return agent.Start{}, "", err
	}
	id := q.turn.Session()
	if q.retry {
		start, sess, err := s.prepareRetry(ctx, q)
		if err != nil {
			return start, "", rpc.About(q.replaces, err)
		}
		return start, sess.ID(), s.follow(ctx, sess, -1, nil)
	}
	if q.redirect && id == "" {
		sess, turn, err := s.lastOf(ctx, "", q.replaces)
		if q.replaces == "" && errors.Is(err, transcript.ErrNoSession) {
			err = transcript.ErrNoTurn // no session was named, and there is no turn either
		}
		if err != nil {
			return agent.Start{}, "", rpc.About(q.replaces, err)
		}
		id, q.redirects = sess.ID(), turn
	}
	sess, err := a.Open(ctx, id)
	if err != nil {
		return agent.Start{}, id, err
	}
	if err := s.follow(ctx, sess, -1, nil); err != nil {
		return agent.Start{}, id, err
	}
	start := agent.Start{Redirects: q.redirects, ClientID: q.clientID, Model: q.model, Anchor: logAnchor(q.anchor)}
	if q.redirect && q.anchor == nil {
		if old, ok := s.views.get(q.replaces); ok && old.key != "" {
			start.Anchor = logAnchor(&old.anchor) // the thread stays where it is
		}
	}
	if start.Model == "" {
		start.Model = s.models.get(id)
	}
	start.Prompt, err = s.readPrompt(sess.Workspace(), q.prompt)
	return start, id, err
}

// turnStop marks the turn as stopped at once, and answers when it has ended.
func turnStop(s *server, _ *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p wire.TurnStopParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	stopped, err := s.stopTurn(p.Turn)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		report, err := stopped(ctx)
		if err != nil {
			return nil, err
		}
		return turnResult(report), nil
	}, nil
}

// stopTurn stops a turn, "" being the newest that runs. What it returns waits for its end and for the writing of its
// events.
func (s *server) stopTurn(id transcript.TurnID) (func(ctx context.Context) (agent.Report, error), error) {
	a, _, err := s.backend(s.ctx)
	if err != nil {
		return nil, err
	}
	t, runs := a.Turn(id)
	if runs {
		t.Stop(agent.ErrStopped)
	}
	return func(ctx context.Context) (agent.Report, error) {
		if !runs {
			report, err := a.Stop(ctx, id, agent.ErrStopped) // how it ended, from the log
			return report, rpc.About(id, err)
		}
		select {
		case <-t.Done():
		case <-ctx.Done():
			return agent.Report{}, context.Cause(ctx)
		}
		report, err := t.Report()
		if err != nil {
			return agent.Report{}, rpc.About(t.ID(), err)
		}
		s.drain(s.life, report.Session)
		return report, nil
	}, nil
}

func turnResult(r agent.Report) wire.TurnResult {
	w := wire.TurnResult{
		Session: r.Session, Turn: r.Turn, Outcome: r.Outcome, Cause: r.Cause, Error: r.Error,
		Silent: r.Silent, Kept: r.Kept, Prompt: r.Prompt, Tools: make([]wire.ToolFate, 0, len(r.Tools)),
		Returned: make([]wire.Returned, 0, len(r.Returned)),
	}
	for _, m := range r.Returned {
		w.Returned = append(w.Returned, wire.Returned{Message: m.Message, ClientID: m.ClientID, Prompt: m.Prompt, Cause: m.Cause})
	}
	if len(r.Withheld) > 0 {
		w.Withheld = withholdings(r.Withheld)
	}
	for _, f := range r.Tools {
		w.Tools = append(w.Tools, wire.ToolFate{
			Step: f.Step, Call: f.Call, Name: f.Name, Summary: f.Summary, State: f.State, Cause: f.Cause,
		})
	}
	return w
}

func logAnchor(a *wire.Anchor) *transcript.Anchor {
	if a == nil {
		return nil
	}
	return &transcript.Anchor{
		URI:       a.URI,
		StartLine: int(a.Range.Start.Line), StartChar: int(a.Range.Start.Character),
		EndLine: int(a.Range.End.Line), EndChar: int(a.Range.End.Character),
	}
}
