package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"go.lsp.dev/jsonrpc2"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/rpc/wire"
	"fermata/transcript"
)

func TestAWrongTypeIsNamedByItsPath(t *testing.T) {
	for in, want := range map[string]string{
		`{"session":7}`:                               "session: expected string, got number",
		`{"session":{}}`:                              "session: expected string, got object",
		`{"prompt":{}}`:                               "prompt: expected array, got object",
		`{"prompt":["x"]}`:                            "prompt[0]: expected object, got string",
		`{"prompt":[{"text":"a"},{"text":1}]}`:        "prompt[1].text: expected string, got number",
		`{"prompt":[{"text":true}]}`:                  "prompt[0].text: expected string, got boolean",
		`{"anchor":{"range":{"start":{"line":-1}}}}`:  "anchor.range.start.line: expected integer of at least 0, got -1",
		`{"anchor":{"range":{"start":{"line":1.5}}}}`: "anchor.range.start.line: expected integer of at least 0, got 1.5",
		`{"anchor":[]}`:                               "anchor: expected object, got array",
		`[]`:                                          "params: expected object, got array",
		`"x"`:                                         "params: expected object, got string",
	} {
		var p wire.TurnStartParams
		err := Decode([]byte(in), &p)
		e, ok := errors.AsType[*jsonrpc2.Error](err)
		if !ok || e.Code != jsonrpc2.InvalidParams || e.Message != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func TestUnknownMembersNullsAndAbsentParamsAreFine(t *testing.T) {
	for _, in := range []string{``, `{}`, `null`, `{"turn":null}`, `{"x":1,"turn":"","turn":""}`} {
		p := wire.TurnStopParams{}
		if err := Decode([]byte(in), &p); err != nil || p.Turn != "" {
			t.Errorf("%q: %v, %+v", in, err, p)
		}
	}
}

func TestErrorsHaveACodeAKindAndTheId(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code wire.Code
		kind wire.ErrorKind
		id   string
	}{
		{About(transcript.SessionID("s_1"), fmt.Errorf("open: %w", transcript.ErrNoSession)), wire.CodeNotFound, wire.KindUnknownSession, "s_1"},
		{About(transcript.TurnID("t_1"), transcript.ErrNoTurn), wire.CodeNotFound, wire.KindUnknownTurn, "t_1"},
		{About(transcript.SessionID("s_1"), &agent.BusyError{Turn: "t_2"}), wire.CodeBusy, wire.KindBusy, "t_2"},
		{&transcript.LeaseError{Session: "s_3"}, wire.CodeInUse, wire.KindInUse, "s_3"},
		{fmt.Errorf("%w: no such thing", model.ErrNoModel), wire.CodeNotFound, wire.KindUnknownModel, ""},
		{agent.ErrNothingRuns, wire.CodeNothingRuns, wire.KindNothingRuns, ""},
		{transcript.ErrFull, wire.CodeStorage, wire.KindDiskFull, ""},
		{context.Canceled, wire.CodeCancelled, wire.KindCancelled, ""},
		{errors.New("x"), wire.CodeInternal, wire.KindInternal, ""},
	} {
		e := Error(tt.err)
		var data wire.ErrorData
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if wire.Code(e.Code) != tt.code || data.Kind != tt.kind || data.ID != tt.id || e.Message != tt.err.Error() {
			t.Errorf("%v: %d %s %+v", tt.err, e.Code, e.Message, data)
		}
	}
}
