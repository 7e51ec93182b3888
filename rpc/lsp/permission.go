package lsp

import (
	"context"
	"fmt"
	"strings"

	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/agent/permit"
	"fermata/rpc"
	"fermata/rpc/wire"
)

// The answers that are offered to a client without fermata/permission.
const (
	titleOnce    = "Allow once"
	titleSession = "Allow for session"
	titleDeny    = "Deny"
)

// messageBound is about how many bytes of a command or a name a message shows.
const messageBound = 600

// Permission asks the user about a call, of which the client has been told before. A stop answers it: then ctx ends, and the
// client is told to drop the question.
func (s *server) Permission(ctx context.Context, q agent.Question) (agent.Reply, error) {
	s.drain(ctx, q.Session)
	if s.client.fermata {
		var r wire.PermissionResult
		err := s.call(ctx, wire.Permission, permissionParams(q), &r)
		return agent.Reply{Answer: permit.Answer(r.Answer), Why: r.Why}, unanswered(ctx, err)
	}
	var r *protocol.MessageActionItem
	err := s.call(ctx, protocol.MethodWindowShowMessageRequest, &protocol.ShowMessageRequestParams{
		Type: messageInfo, Message: permissionMessage(q),
		Actions: []protocol.MessageActionItem{{Title: titleOnce}, {Title: titleSession}, {Title: titleDeny}},
	}, &r)
	switch {
	case err != nil:
		return agent.Reply{}, unanswered(ctx, err)
	case r == nil:
		return agent.Reply{Answer: permit.DenyCall, Why: "the question was closed without an answer"}, nil
	case r.Title == titleOnce:
		return agent.Reply{Answer: permit.AllowOnce}, nil
	case r.Title == titleSession:
		return agent.Reply{Answer: permit.AllowSession}, nil
	}
	return agent.Reply{Answer: permit.DenyCall}, nil
}

// unanswered says of a question that the client did not put, or answered with what is no answer, that the user has not denied
// it: the model is told.
func unanswered(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil { // a stop has answered it
		return err
	}
	return fmt.Errorf("the editor gave no answer: %w", err)
}

func permissionParams(q agent.Question) wire.PermissionParams {
	p := wire.PermissionParams{
		Session: q.Session, Turn: q.Turn, Step: q.Step, Call: q.CallID,
		Tool: q.Call.Tool, Summary: q.Call.Summary, Command: q.Call.Command,
		Paths: q.Call.Paths, ReadOnly: q.Call.ReadOnly, Diff: q.Diff, Why: q.Why, Sandbox: q.Sandbox, Scope: "tool",
	}
	if len(p.Paths) == 1 {
		p.Path = p.Paths[0]
	}
	switch {
	case p.Command != "":
		p.Scope = "command"
	case q.Narrow:
		p.Scope = "files"
	}
	return p
}

// permissionMessage is the question as one short text.
func permissionMessage(q agent.Question) string {
	what := q.Call.Summary
	switch {
	case q.Call.Command != "":
		what = "run: " + q.Call.Command
	case q.Call.ReadOnly && len(q.Call.Paths) > 0:
		what = q.Call.Tool + " " + strings.Join(q.Call.Paths, ", ")
	case what == "":
		what = q.Call.Tool
	}
	if added, removed := changedLines(q.Diff); added+removed > 0 {
		what += fmt.Sprintf(" (+%d -%d lines)", added, removed)
	}
	text := "Fermata asks to " + shortened(permit.Visible(what))
	if q.Sandbox != "" {
		text += "\nSandbox: " + shortened(permit.Visible(q.Sandbox))
	}
	if q.Narrow { // else the mode asks about all such calls
		text += "\n" + shortened(permit.Visible(q.Why))
	}
	return text
}

// changedLines counts the lines that a unified diff adds and removes.
func changedLines(diff string) (added, removed int) {
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return added, removed
}

// shortened keeps the beginning and the end of a long text and says what is missing.
func shortened(text string) string {
	r := []rune(text)
	if len(r) <= messageBound {
		return text
	}
	half := messageBound / 2
	return fmt.Sprintf("%s … (%d more characters) … %s", string(r[:half]), len(r)-2*half, string(r[len(r)-half:]))
}

// sessionMode tells the permission mode of a session, and sets it.
func (s *server) sessionMode(ctx context.Context, p wire.SessionModeParams) (any, error) {
	mode := permit.Mode("")
	if p.Mode != "" && p.Mode != "default" {
		m, err := permit.ParseMode(p.Mode)
		if err != nil {
			return nil, rpc.BadParam("mode", "%v, or \"default\"", err)
		}
		mode = m
	}
	id, err := s.session(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	a, _, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	sess, err := a.Open(ctx, id)
	if err != nil {
		return nil, rpc.About(id, err)
	}
	if p.Mode != "" {
		sess.SetMode(mode)
	}
	return wire.SessionModeResult{Session: id, Mode: string(sess.Mode())}, nil
}
