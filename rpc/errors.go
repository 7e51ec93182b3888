package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// ErrCanceled is the cause of a request's context when the client has cancelled it.
var ErrCanceled = errors.New("the client cancelled the request")

// about is an error with the id of what it is about.
type about struct {
	id  string
	err error
}

func (a *about) Error() string { return a.err.Error() }
func (a *about) Unwrap() error { return a.err }

// About adds to an error the id of the session, turn or request that it is about; nil stays nil, and what was added first
// stays: it is closer to the cause.
func About[ID ~string](id ID, err error) error {
	if err == nil || id == "" {
		return err
	}
	if _, ok := errors.AsType[*about](err); ok {
		return err
	}
	return &about{string(id), err}
}

// named are the conditions that have a code of their own.
var named = []struct {
	is   error
	code wire.Code
	kind wire.ErrorKind
	hint string
}{
	{transcript.ErrNoSession, wire.CodeNotFound, wire.KindUnknownSession, "fermata/session/list names those there are"},
	{transcript.ErrNoTurn, wire.CodeNotFound, wire.KindUnknownTurn, "the events turn.started name them"},
	{transcript.ErrNoRequest, wire.CodeNotFound, wire.KindUnknownRequest, "fermata/request/list names those there are"},
	{transcript.ErrNoBlob, wire.CodeNotFound, wire.KindUnknownBlob, ""},
	{agent.ErrBusy, wire.CodeBusy, wire.KindBusy, "stop the running turn, or wait for its end"},
	{transcript.ErrTurnOpen, wire.CodeBusy, wire.KindBusy, "stop the running turn, or wait for its end"},
	{agent.ErrNotLast, wire.CodeNotPossible, wire.KindNotLast, "only the session's last turn can be retried or kept"},
	{agent.ErrNothingToRetry, wire.CodeNotPossible, wire.KindNothingToRetry, "start a turn instead"},
	{agent.ErrNothingToKeep, wire.CodeNotPossible, wire.KindNothingToKeep, ""},
	{transcript.ErrNoAnswer, wire.CodeNotPossible, wire.KindNothingToCheck, ""},
	{agent.ErrNoCheck, wire.CodeNotPossible, wire.KindNoCheck, "add a [[check]] to the config file"},
	{agent.ErrNoChanges, wire.CodeNotPossible, wire.KindNoChanges, ""},
	{agent.ErrNoRevert, wire.CodeNotFound, wire.KindUnknownRevert, "the replies to fermata/turn/revert name them"},
	{agent.ErrNothingRuns, wire.CodeNothingRuns, wire.KindNothingRuns, ""},
	{model.ErrNoModel, wire.CodeNotFound, wire.KindUnknownModel, "name a model of the config file"},
	{transcript.ErrLeased, wire.CodeInUse, wire.KindInUse, "another fermata runs a turn in this session; wait for its end"},
	{transcript.ErrLeaseLost, wire.CodeInUse, wire.KindInUse, "open the session again"},
	{transcript.ErrNewer, wire.CodeStorage, wire.KindNewerDatabase, "update fermata, or name another data folder"},
	{transcript.ErrNotDatabase, wire.CodeStorage, wire.KindNotDatabase, "move the file away, or name another data folder"},
	{transcript.ErrReadOnly, wire.CodeStorage, wire.KindReadOnly, "allow writing to the database and its folder"},
	{transcript.ErrLocked, wire.CodeStorage, wire.KindLocked, "end the program that holds the database, then try again"},
	{transcript.ErrFull, wire.CodeStorage, wire.KindDiskFull, "free some space and try again"},
	{transcript.ErrIO, wire.CodeStorage, wire.KindDiskFailed, "check the disk"},
	{transcript.ErrDamaged, wire.CodeStorage, wire.KindDamaged, "run: fermata repair"},
	{agent.ErrClosed, wire.CodeClosed, wire.KindClosed, "start fermata again"},
	{agent.ErrShutdown, wire.CodeClosed, wire.KindClosed, "start fermata again"},
	{agent.ErrClientGone, wire.CodeClosed, wire.KindClosed, ""},
	{ErrCanceled, wire.CodeCancelled, wire.KindCancelled, ""},
	{context.Canceled, wire.CodeCancelled, wire.KindCancelled, ""},
}

// badParams are the conditions that one field of the params is to blame for.
var badParams = []struct {
	is    error
	field string
}{
	{agent.ErrBadPrompt, "prompt"},
	{transcript.ErrBadCursor, "cursor"},
	{agent.ErrBadPath, "paths"},
}

// Error is the error of a response: the only place where errors become wire codes. An error that is a [jsonrpc2.Error]
// already is sent as it is, one that has no name is an internal error.
func Error(err error) *jsonrpc2.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return e
	}
	for _, b := range badParams {
		if errors.Is(err, b.is) {
			return &jsonrpc2.Error{Code: jsonrpc2.InvalidParams, Message: b.field + ": " + err.Error()}
		}
	}
	data := wire.ErrorData{Kind: wire.KindInternal}
	code := wire.CodeInternal
	for _, n := range named {
		if errors.Is(err, n.is) {
			code, data.Kind, data.Hint = n.code, n.kind, n.hint
			break
		}
	}
	if a, ok := errors.AsType[*about](err); ok {
		data.ID = a.id
	}
	if e, ok := errors.AsType[*agent.BusyError](err); ok {
		data.ID = string(e.Turn)
	}
	if e, ok := errors.AsType[*transcript.LeaseError](err); ok {
		data.ID = string(e.Session)
	}
	raw, _ := json.Marshal(data) // three strings
	return &jsonrpc2.Error{Code: jsonrpc2.Code(code), Message: err.Error(), Data: raw}
}
