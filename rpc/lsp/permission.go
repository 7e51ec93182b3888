package lsp

import (
	"context"

	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/agent/permit"
	"fermata/rpc/wire"
)

// The answers that are offered to a client without fermata/permission.
const (
	titleOnce    = "Allow once"
	titleSession = "Allow for session"
	titleDeny    = "Deny"
)

// Permission asks the user about a call. A stop answers it: then ctx ends, and the client is told to drop the question.
func (s *server) Permission(ctx context.Context, q agent.Question) (agent.Reply, error) {
	if s.client.fermata {
		var r wire.PermissionResult
		err := s.call(ctx, wire.Permission, wire.PermissionParams{
			Session: q.Session, Turn: q.Turn, Step: q.Step, Call: q.CallID,
			Tool: q.Call.Tool, Summary: q.Call.Summary, Command: q.Call.Command, Path: q.Call.Path,
		}, &r)
		return agent.Reply{Answer: permit.Answer(r.Answer), Why: r.Why}, err
	}
	what := q.Call.Summary
	if what == "" {
		what = q.Call.Tool
	}
	if q.Call.Command != "" {
		what = "run: " + q.Call.Command
	}
	var r *protocol.MessageActionItem
	err := s.call(ctx, protocol.MethodWindowShowMessageRequest, &protocol.ShowMessageRequestParams{
		Type: messageInfo, Message: "Fermata asks to " + what,
		Actions: []protocol.MessageActionItem{{Title: titleOnce}, {Title: titleSession}, {Title: titleDeny}},
	}, &r)
	switch {
	case err != nil:
		return agent.Reply{}, err
	case r == nil:
		return agent.Reply{Answer: permit.DenyCall, Why: "the question was closed without an answer"}, nil
	case r.Title == titleOnce:
		return agent.Reply{Answer: permit.AllowOnce}, nil
	case r.Title == titleSession:
		return agent.Reply{Answer: permit.AllowSession}, nil
	}
	return agent.Reply{Answer: permit.DenyCall}, nil
}
