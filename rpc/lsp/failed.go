package lsp

import (
	"context"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// turnRetry registers the new turn at once, and answers at its end like a start.
func turnRetry(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	var p wire.TurnRetryParams
	if err := rpc.Decode(req.Params(), &p); err != nil {
		return nil, err
	}
	a, _, err := s.backend(s.ctx)
	if err != nil {
		return nil, err
	}
	return s.answerTurn(call, asked{
		turn: a.ReserveRetry(p.Turn), retry: true, replaces: p.Turn, clientID: p.ClientID, model: p.Model, token: p.WorkDoneToken,
	}), nil
}

// prepareRetry finds the turn to try again.
func (s *server) prepareRetry(ctx context.Context, q asked) (agent.Start, *agent.Session, error) {
	sess, turn, err := s.lastOf(ctx, q.session, q.replaces)
	if err != nil {
		return agent.Start{}, nil, err
	}
	start := agent.Start{Retries: turn, ClientID: q.clientID, Model: q.model}
	if start.Model == "" {
		start.Model = s.models.get(sess.ID())
	}
	return start, sess, nil
}

// lastOf is the turn that was named with its session, else the last one of the session that was named or used last.
func (s *server) lastOf(ctx context.Context, id transcript.SessionID, turn transcript.TurnID) (*agent.Session, transcript.TurnID, error) {
	a, store, err := s.backend(ctx)
	if err != nil {
		return nil, "", err
	}
	if turn != "" {
		info, err := store.Turn(ctx, turn)
		if err != nil {
			return nil, "", err
		}
		id = info.Session
	} else if id, err = s.session(ctx, id); err != nil {
		return nil, "", err
	}
	sess, err := a.Open(ctx, id)
	if err != nil {
		return nil, "", rpc.About(id, err)
	}
	if turn == "" {
		turn = sess.LastTurn()
	}
	if turn == "" {
		return nil, "", rpc.About(id, transcript.ErrNoTurn)
	}
	return sess, turn, nil
}

func (s *server) turnAdopt(ctx context.Context, p wire.TurnAdoptParams) (any, error) {
	return s.keep(ctx, "", p.Turn)
}

// keep admits the answer that broke off in a session's last turn (F4).
func (s *server) keep(ctx context.Context, id transcript.SessionID, turn transcript.TurnID) (any, error) {
	sess, turn, err := s.lastOf(ctx, id, turn)
	if err != nil {
		return nil, rpc.About(turn, err)
	}
	if err := s.follow(s.life, sess, -1, nil); err != nil {
		return nil, err
	}
	a, _, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	k, err := a.Keep(ctx, turn)
	if err != nil {
		return nil, rpc.About(turn, err)
	}
	s.drain(s.life, k.Session)
	return wire.TurnAdoptResult{Session: k.Session, Turn: k.Turn, Step: k.Step, Answer: k.Answer, Kept: k.Kept}, nil
}
