package lsp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

var commandNames = []string{
	wire.CommandAsk, wire.CommandStop, wire.CommandRedirect, wire.CommandOpenTranscript, wire.CommandShowModelInput,
	wire.CommandRetry, wire.CommandKeep, wire.CommandShowChanges, wire.CommandRevert,
}

type executeCommandParams struct {
	Command   string             `json:"command"`
	Arguments []wire.CommandArgs `json:"arguments"`
	Token     jsonValue          `json:"workDoneToken"`
}

// executeCommand registers turns and stops where messages are read, like the methods that do the same.
func executeCommand(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p executeCommandParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	var args wire.CommandArgs
	if len(p.Arguments) > 0 {
		args = p.Arguments[0]
	}
	parts, err := commandPrompt(args.Prompt)
	if err != nil {
		return nil, err
	}
	switch p.Command {
	case wire.CommandAsk, wire.CommandRedirect:
		want := pending{args: args, redirect: p.Command == wire.CommandRedirect}
		switch {
		case parts == nil && want.redirect:
			return s.redirectLane(want)
		case parts == nil:
			return func(ctx context.Context) (any, error) { return s.openPrompt(ctx, want) }, nil
		}
		q, err := s.register(want, parts)
		if err != nil {
			return nil, err
		}
		q.token = p.Token
		s.stopOnCancel(call, q.turn)
		return s.launch(q), nil
	case wire.CommandStop:
		stopped, err := s.stopTurn(args.Turn)
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
	case wire.CommandRetry:
		a, _, err := s.backend(s.ctx)
		if err != nil {
			return nil, err
		}
		t := a.ReserveRetry(args.Turn)
		s.stopOnCancel(call, t)
		return s.launch(asked{turn: t, retry: true, replaces: args.Turn, session: args.Session, token: p.Token}), nil
	case wire.CommandKeep:
		return func(ctx context.Context) (any, error) { return s.keep(ctx, args.Session, args.Turn) }, nil
	case wire.CommandShowChanges:
		return func(ctx context.Context) (any, error) { return s.showChanges(ctx, args) }, nil
	case wire.CommandRevert:
		return func(ctx context.Context) (any, error) { return s.revertByCommand(ctx, args) }, nil
	case wire.CommandOpenTranscript:
		return func(ctx context.Context) (any, error) { return s.openTranscript(ctx, args.Session) }, nil
	case wire.CommandShowModelInput:
		return func(ctx context.Context) (any, error) { return s.showModelInput(ctx, args) }, nil
	}
	return nil, rpc.BadParam("command", "there is no command %q", p.Command)
}

// commandPrompt is a prompt that is a string or parts; nil when there is none.
func commandPrompt(raw jsonValue) ([]wire.PromptPart, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var text string
		if err := rpc.Decode(raw, &text); err != nil {
			return nil, err
		}
		return textPrompt(text), nil
	}
	var p struct {
		Prompt []wire.PromptPart `json:"prompt"`
	}
	if err := rpc.Decode(slices.Concat([]byte(`{"prompt":`), raw, []byte("}")), &p); err != nil {
		return nil, err
	}
	return p.Prompt, checkPrompt(p.Prompt)
}

func textPrompt(text string) []wire.PromptPart { return []wire.PromptPart{{Type: "text", Text: text}} }

// register registers the turn that a prompt asks for. Call it where messages are read.
func (s *server) register(p pending, parts []wire.PromptPart) (asked, error) {
	a, _, err := s.backend(s.ctx)
	if err != nil {
		return asked{}, err
	}
	args := p.args
	if p.redirect {
		return asked{turn: a.ReserveRedirect(args.Turn), prompt: parts, replaces: args.Turn, redirect: true}, nil
	}
	id := args.Session
	if id == "" {
		if id, err = s.sessionToAsk(a, args); err != nil {
			return asked{}, err
		}
	}
	q := asked{turn: a.Reserve(id), prompt: parts}
	if args.URI != "" && args.Range != nil {
		q.anchor = &wire.Anchor{URI: args.URI, Range: *args.Range}
		if args.Range.Start != args.Range.End {
			q.prompt = append(slices.Clone(parts), wire.PromptPart{Type: "selection", URI: args.URI, Range: args.Range})
		}
	}
	return q, nil
}

// sessionToAsk is the session used last, unless it is busy or of another workspace: then a new one. It is found where
// messages are read, so that a stop right behind finds the turn (S2); a new one costs one commit.
func (s *server) sessionToAsk(a *agent.Agent, args wire.CommandArgs) (transcript.SessionID, error) {
	root := s.folders.first()
	if path, ok := filePath(args.URI); ok {
		root = s.folders.of(path)
	}
	root = realPath(root)
	if id, ok := a.NewestSession(); ok && !args.New {
		busy := slices.ContainsFunc(a.Running(), func(t *agent.Turn) bool { return t.Session() == id && !t.Over() })
		sess, err := a.Open(s.ctx, id) // it is open already
		if err == nil && !busy && sess.Workspace() == root {
			return id, nil
		}
	}
	sess, err := a.NewSession(s.ctx, agent.SessionOptions{Workspace: root})
	if err != nil {
		return "", err
	}
	return sess.ID(), nil
}

// redirectLane stops the turn, and opens a file to write in what it should do instead.
func (s *server) redirectLane(p pending) (then, error) {
	stopped, err := s.stopTurn(p.args.Turn)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		report, err := stopped(ctx)
		if errors.Is(err, agent.ErrNothingRuns) {
			report, err = s.lastTurn(ctx)
		}
		if err != nil {
			return nil, err
		}
		p.args.Turn, p.report = report.Turn, report
		return s.openPrompt(ctx, p)
	}, nil
}

// lastTurn is how the last turn of the session used last has ended, from the log.
func (s *server) lastTurn(ctx context.Context) (agent.Report, error) {
	a, store, err := s.backend(ctx)
	if err != nil {
		return agent.Report{}, err
	}
	id, err := s.session(ctx, "")
	if err != nil {
		return agent.Report{}, err
	}
	entries, err := store.Entries(ctx, id, 0, 0)
	if err != nil {
		return agent.Report{}, rpc.About(id, err)
	}
	for _, e := range slices.Backward(entries) {
		if b, ok := e.Body.(*transcript.TurnStarted); ok {
			return a.Stop(ctx, b.Turn, agent.ErrStopped)
		}
	}
	return agent.Report{}, transcript.ErrNoTurn
}

// launch starts a registered turn that no request waits for. It is answered once the turn has begun.
func (s *server) launch(q asked) then {
	begun := s.views.await(q.turn.ID())
	failed := make(chan error, 1)
	s.work.Go(func() { // ends with the turn
		report, err := s.run(s.ctx, q)
		if err == nil {
			s.answeredTurn(q, report)
		}
		failed <- err
		s.views.forget(q.turn.ID())
	})
	return func(ctx context.Context) (any, error) {
		select {
		case <-begun:
		case err := <-failed:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return wire.CommandResult{Session: q.turn.Session(), Turn: q.turn.ID()}, nil
	}
}

// answeredTurn shows the end of a turn that was asked in a prompt file, or is a retry of one: such a client has no other
// place for it. One who has stopped a turn is about to say what it should do instead, and is not disturbed.
func (s *server) answeredTurn(q asked, r agent.Report) {
	if !q.file && (!q.retry || s.client.fermata) || r.Outcome == transcript.TurnStopped {
		return
	}
	if r.Outcome == transcript.TurnFailed {
		s.showMessage(messageError, fmt.Sprintf("Fermata: the turn failed: %s", r.Error))
	}
	ctx, cancel := context.WithTimeout(s.ctx, showDeadline)
	defer cancel()
	if _, err := s.openTranscript(ctx, r.Session); err != nil && s.ctx.Err() == nil {
		s.log.Warn("show the transcript", "err", err)
	}
}
