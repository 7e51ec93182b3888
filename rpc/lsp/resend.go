package lsp

import (
	"context"
	"encoding/json"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// requestResend answers when the model has. Cancelling it is a stop, as with a turn.
func requestResend(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error) {
	stop, stopNow := context.WithCancelCause(context.Background())
	s.calls.OnCancel(call, func() { stopNow(agent.ErrStopped) })
	return func(ctx context.Context) (any, error) {
		defer stopNow(nil)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(stop, func() { cancel(context.Cause(stop)) })()
		var p wire.RequestResendParams
		if err := rpc.Decode(req.Params(), &p); err != nil {
			return nil, err
		}
		return s.resend(ctx, p)
	}, nil
}

// resend sends a request again and tells what is said. The client's slowness is the model's: no turn waits for it.
func (s *server) resend(ctx context.Context, p wire.RequestResendParams) (any, error) {
	if p.Request == "" {
		return nil, rpc.BadParam("request", "is missing")
	}
	again := agent.Resend{Request: p.Request}
	if p.Body != nil {
		if again.Body = []byte(*p.Body); !json.Valid(again.Body) {
			return nil, rpc.BadParam("body", "expected JSON: providers take nothing else")
		}
	}
	a, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	info, err := store.Request(ctx, p.Request)
	if err != nil {
		return nil, rpc.About(p.Request, err)
	}
	told := map[transcript.PartType]int64{}
	r, err := a.Resend(ctx, again, func(d model.Delta) {
		ev := wire.ResendEvent{Session: info.Session, Kind: wire.EventResend, Request: p.Request, ClientID: p.ClientID, Text: d.Text}
		switch d.Kind {
		case model.Text:
			ev.Part = transcript.PartText
		case model.Reasoning:
			ev.Part = transcript.PartReasoning
		default:
			return
		}
		ev.Offset = told[ev.Part]
		told[ev.Part] += int64(len(d.Text))
		if raw, err := rpc.Encode(ev); err == nil {
			_ = s.stream.Notify(wire.Event, raw) // a client that is gone ends ctx
		}
	})
	if err != nil {
		return nil, rpc.About(p.Request, err)
	}
	out := wire.RequestResendResult{
		Request: p.Request, Route: r.Route, Model: r.Original.Model, Bytes: r.Bytes, SHA256: r.SHA256, Same: r.Same,
		Outcome: r.Outcome, Status: r.Status, Parts: r.Parts, Finish: r.Finish, Usage: r.Usage,
		FirstDeltaMillis: r.FirstDelta.Milliseconds(), Millis: r.Took.Milliseconds(),
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	if out.Parts == nil {
		out.Parts = []transcript.Part{}
	}
	return out, nil
}
