package lsp

import (
	"bytes"
	"context"
	"unicode/utf8"

	"fermata/agent/model"
	"fermata/rpc"
	"fermata/rpc/wire"
	"fermata/transcript"
)

func (s *server) transcriptRender(ctx context.Context, p wire.TranscriptRenderParams) (any, error) {
	if p.Format == "" {
		p.Format = "markdown"
	}
	if p.Format != "markdown" && p.Format != "json" {
		return nil, rpc.BadParam("format", `expected "markdown" or "json", got %q`, p.Format)
	}
	if p.Until < 0 {
		return nil, rpc.BadParam("until", "expected the number of an entry, got %d", p.Until)
	}
	id, err := s.session(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	r := wire.TranscriptRenderResult{Session: id, Format: p.Format}
	info, err := store.Session(ctx, id)
	if err != nil {
		return nil, rpc.About(id, err)
	}
	if p.Until > info.Seq {
		p.Until = 0
	}
	if r.Since = max(0, p.Since); p.Since < 0 {
		last := info.Seq
		if p.Until > 0 {
			last = p.Until - 1
		}
		r.Since = max(0, last+p.Since)
	}
	text, lines, turns, err := render(ctx, store, info, p.Format, r.Since, p.Until)
	if err != nil {
		return nil, rpc.About(id, err)
	}
	r.Text, r.Lines = string(text), make([]wire.LineRef, 0, len(lines))
	var last transcript.TurnID
	for _, l := range lines {
		ref := wire.LineRef{Line: l.Line, Seq: l.Seq}
		if turn := turns[l.Seq]; turn != last {
			ref.Turn, last = turn, turn
		}
		r.Lines = append(r.Lines, ref)
	}
	return r, nil
}

// render is what is shown of a session above the entry since and below the entry until, 0 being its end: as markdown, or as
// JSON, an entry a line. turns are the turns in which the entries were written, those behind a turn's end being its too.
func render(ctx context.Context, store *transcript.Store, info transcript.SessionInfo, format string, since, until int64) (
	text []byte, lines []transcript.LineRef, turns map[int64]transcript.TurnID, err error,
) {
	entries, err := store.Page(ctx, info.ID, since, until)
	if err != nil {
		return nil, nil, nil, err
	}
	turns = make(map[int64]transcript.TurnID, len(entries))
	var turn transcript.TurnID
	for _, e := range entries {
		if b, ok := e.Body.(*transcript.TurnStarted); ok {
			turn = b.Turn
		}
		turns[e.Seq] = turn
	}
	var b bytes.Buffer
	if format == "json" {
		for _, e := range entries {
			if e.Seq > since && (until == 0 || e.Seq < until) {
				lines = append(lines, transcript.LineRef{Line: len(lines) + 1, Seq: e.Seq})
				b.WriteByte('{')
				b.Write(appendEntry(nil, e))
				b.WriteString("}\n")
			}
		}
		return b.Bytes(), lines, turns, nil
	}
	lines, err = transcript.MarkdownPage(&b, info, entries, since, until)
	return b.Bytes(), lines, turns, err
}

func (s *server) requestList(ctx context.Context, p wire.RequestListParams) (any, error) {
	id, err := s.session(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	infos, err := store.Requests(ctx, id)
	if err != nil {
		return nil, rpc.About(id, err)
	}
	r := wire.RequestListResult{Session: id, Requests: make([]wire.Request, 0, len(infos))}
	for _, i := range infos {
		r.Requests = append(r.Requests, requestInfo(i))
	}
	return r, nil
}

func (s *server) requestInput(ctx context.Context, p wire.RequestInputParams) (any, error) {
	in, err := s.input(ctx, p)
	if err != nil {
		return nil, err
	}
	r := wire.RequestInputResult{
		Request: requestInfo(in.Info), Bytes: int64(len(in.Body)), SHA256: in.SHA256, Verified: in.Verified,
		Parts: make([]wire.InputPart, 0, len(in.Parts)), Previous: in.Previous, SharedPrefix: in.SharedPrefix,
	}
	if utf8.Valid(in.Body) {
		body := string(in.Body)
		r.Body = &body
	} else {
		r.BodyBase64 = in.Body
	}
	unsendable, err := s.unsendable(ctx, in)
	if err != nil {
		return nil, rpc.About(in.Info.ID, err)
	}
	for _, p := range in.Parts {
		r.Parts = append(r.Parts, wire.InputPart{
			Kind: p.Kind, Offset: p.Offset, Length: p.Length, Role: p.Role, Source: p.Source, Turn: p.Turn,
			Unsendable: unsendable[p.Source],
		})
	}
	return r, nil
}

// unsendable says what is not in a model input, by the entry that it is of (T2); of a dialect that is not known, nothing.
func (s *server) unsendable(ctx context.Context, in *transcript.Input) (map[int64][]string, error) {
	if s.o.Dialect == nil {
		return nil, nil
	}
	dialect, err := s.o.Dialect(in.Info.Dialect)
	if err != nil {
		return nil, nil // it was checked by its hash alone, as by Verify
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	messages, err := store.Messages(ctx, in.Info.ID)
	return model.Unsendable(dialect, messages), err
}

// input is the model input of the request that was named, else of the newest: of the session named, else of the session
// used last.
func (s *server) input(ctx context.Context, p wire.RequestInputParams) (*transcript.Input, error) {
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	id := p.Request
	if id == "" {
		session, err := s.session(ctx, p.Session)
		if err != nil {
			return nil, err
		}
		if _, err := store.Session(ctx, session); err != nil {
			return nil, rpc.About(session, err)
		}
		if id, err = store.NewestRequest(ctx, session, ""); err != nil {
			return nil, rpc.About(session, err)
		}
	}
	in, err := store.Input(ctx, id)
	return in, rpc.About(id, err)
}

func requestInfo(i transcript.RequestInfo) wire.Request {
	return wire.Request{
		Request: i.ID, Session: i.Session, Seq: i.Seq, Turn: i.Turn, Step: i.Step, Try: i.Try, Epoch: i.Epoch,
		Messages: i.N, Bytes: i.Bytes, SHA256: i.SHA256, Route: i.Route, Model: i.Model, Dialect: i.Dialect, At: i.At,
		Outcome: i.Outcome, Status: i.Status, Error: i.Error, Usage: i.Usage, FirstDeltaMillis: i.FirstDelta, Millis: i.Millis,
	}
}
