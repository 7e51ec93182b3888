package lsp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.lsp.dev/jsonrpc2"

	"fermata/rpc"
	"fermata/rpc/wire"
)

// method is how a request is served, in two halves. begin runs where messages are read, in wire order: it registers what
// later messages may refer to (S2), and must neither block nor write. What it returns runs concurrently.
type method func(s *server, call *rpc.Call, req *jsonrpc2.Request) (then, error)

// then is the second half of a request; its result is sent as JSON.
type then func(ctx context.Context) (any, error)

// plain is a method with nothing to register.
func plain[P any](f func(s *server, ctx context.Context, p P) (any, error)) method {
	return func(s *server, _ *rpc.Call, req *jsonrpc2.Request) (then, error) {
		return func(ctx context.Context) (any, error) {
			var p P
			if err := rpc.Decode(req.Params(), &p); err != nil {
				return nil, err
			}
			return f(s, ctx, p)
		}, nil
	}
}

// requests are the methods that are answered. Every other one gets -32601.
var requests = map[string]method{
	"initialize":               initialize,
	"shutdown":                 shutdown,
	"workspace/executeCommand": executeCommand,
	"textDocument/codeLens":    plain((*server).codeLens),
	"textDocument/codeAction":  plain((*server).codeAction),

	wire.SessionNew:       sessionNew,
	wire.SessionList:      plain((*server).sessionList),
	wire.SessionOpen:      sessionOpen,
	wire.SessionFork:      sessionFork,
	wire.SessionRename:    plain((*server).sessionRename),
	wire.SessionDelete:    plain((*server).sessionDelete),
	wire.SessionMode:      plain((*server).sessionMode),
	wire.TurnStart:        turnStart,
	wire.TurnStop:         turnStop,
	wire.TurnRedirect:     turnRedirect,
	wire.TurnQueue:        turnQueue,
	wire.TurnRetry:        turnRetry,
	wire.TurnAdopt:        plain((*server).turnAdopt),
	wire.TurnRecheck:      plain((*server).turnRecheck),
	wire.TurnChanges:      plain((*server).turnChanges),
	wire.TurnRevert:       plain((*server).turnRevert),
	wire.TranscriptRender: plain((*server).transcriptRender),
	wire.RequestList:      plain((*server).requestList),
	wire.RequestInput:     plain((*server).requestInput),
	wire.RequestResend:    requestResend,
	wire.ModelList:        plain((*server).modelList),
	wire.Stats:            plain((*server).stats),
}

// notifications are what is done about each, where messages are read, in wire order. Every other one is ignored.
var notifications = map[string]func(s *server, params []byte) error{
	"exit":                                (*server).exit,
	"$/cancelRequest":                     (*server).cancelRequest,
	"window/workDoneProgress/cancel":      (*server).cancelProgress,
	"textDocument/didOpen":                (*server).didOpen,
	"textDocument/didChange":              (*server).didChange,
	"textDocument/didClose":               (*server).didClose,
	"textDocument/didSave":                (*server).didSave,
	"workspace/didChangeWorkspaceFolders": (*server).didChangeFolders,
}

// handle serves one message. It is called where messages are read.
func (s *server) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if !req.IsCall() {
		s.handleNotification(req.Method(), req.Params())
		return nil, nil // an error would end the connection
	}
	call := s.calls.Begin(s.ctx, req.ID())
	defer call.Done()
	s.stream.After(req.ID(), func() { s.calls.End(call) })
	next, err := s.begin(call, req)
	jsonrpc2.Async(ctx) // from here on the next message is read; req owns its bytes now
	var result any
	if err == nil {
		result, err = s.proceed(call.Context(), next)
	}
	if err == nil {
		var raw jsonrpc2.RawMessage
		if raw, err = result2raw(result); err == nil {
			return raw, nil
		}
	}
	if errors.Is(context.Cause(call.Context()), rpc.ErrCanceled) {
		err = rpc.ErrCanceled
	}
	return nil, rpc.Error(err)
}

// begin runs the first half of a request.
func (s *server) begin(call *rpc.Call, req *jsonrpc2.Request) (next then, err error) {
	defer s.recovered(req.Method(), &err)
	if err := s.phase.admits(req.Method()); err != nil {
		return nil, err
	}
	m := requests[req.Method()]
	if m == nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "there is no method %q", req.Method())
	}
	return m(s, call, req)
}

// proceed runs the second half.
func (s *server) proceed(ctx context.Context, next then) (result any, err error) {
	defer s.recovered("a request", &err)
	return next(ctx)
}

// recovered makes a panic the error of its request: one broken request must not end the turns of the others.
func (s *server) recovered(what string, err *error) {
	if r := recover(); r != nil {
		s.log.Error("panic", "in", what, "value", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("fermata failed: %v", r)
	}
}

func (s *server) handleNotification(name string, params []byte) {
	if name != "exit" && s.phase.admits(name) != nil {
		return // LSP: dropped before initialize
	}
	f := notifications[name]
	if f == nil {
		return
	}
	err := func() (err error) {
		defer s.recovered(name, &err)
		return f(s, params)
	}()
	if err != nil {
		s.log.Warn("a notification could not be used", "method", name, "err", err)
	}
}

// result2raw is the JSON of a result; one that is JSON already stays as it is.
func result2raw(v any) (jsonrpc2.RawMessage, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return rpc.Encode(v)
}

// cancelRequest is $/cancelRequest: of a start it is a stop (S1).
func (s *server) cancelRequest(params []byte) error {
	var p struct {
		ID jsonValue `json:"id"`
	}
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	id, err := rpc.ParseID(p.ID)
	if err != nil {
		return err
	}
	s.calls.Cancel(id)
	return nil
}
