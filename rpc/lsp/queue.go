package lsp

import (
	"context"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// turnQueue gives the message its place at once (S2), and answers when it is in the log.
func turnQueue(s *server, _ *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p wire.TurnQueueParams
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
	m := a.ReserveMessage(p.Session)
	return func(ctx context.Context) (any, error) {
		start, err := s.prepareMessage(a, p)
		if err != nil {
			m.Release()
			return nil, rpc.About(p.Session, err)
		}
		r, err := m.Send(ctx, start)
		if err != nil {
			return nil, rpc.About(p.Session, err)
		}
		s.drain(s.life, p.Session)
		return wire.TurnQueueResult{Message: r.Message, State: r.State, Turn: r.Turn, Cause: r.Cause}, nil
	}, nil
}

// prepareMessage follows the session and reads what the prompt names, like prepare.
func (s *server) prepareMessage(a *agent.Agent, p wire.TurnQueueParams) (agent.Start, error) {
	sess, err := a.Open(s.life, p.Session)
	if err != nil {
		return agent.Start{}, err
	}
	if err := s.follow(s.life, sess, -1, nil); err != nil {
		return agent.Start{}, err
	}
	start := agent.Start{ClientID: p.ClientID, Model: s.models.get(p.Session)}
	start.Prompt, err = s.readPrompt(sess.Workspace(), p.Prompt)
	return start, err
}

// progressOfNext reports the progress of a turn that starts with queued messages: no request waits for it.
func (s *server) progressOfNext(ev agent.Event) {
	if ev.Entry == nil || !s.client.progress {
		return
	}
	b, ok := ev.Entry.Body.(*transcript.TurnStarted)
	if !ok || len(b.Queued) == 0 {
		return
	}
	a, _, err := s.backend(s.life)
	if err != nil {
		return
	}
	t, runs := a.Turn(b.Turn)
	if !runs {
		return
	}
	s.work.Go(func() { // ends with the turn
		finished := s.progress(t, nil)
		<-t.Done()
		report, _ := t.Report() // of one that did not begin it is empty, and said to be so
		finished(report)
	})
}
