package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"fermata/agent/model"
	"fermata/transcript"
)

// Resend is a request to be sent once more.
type Resend struct {
	Request transcript.RequestID
	Body    []byte // nil: the very bytes that were sent; else an edited copy
}

// Resent is what came of it. Outcome is "complete", "stopped" (ctx ended) or "broken" (Err).
type Resent struct {
	Original   transcript.RequestInfo
	Route      string // where it was sent to now; not always that of Original
	Bytes      int64  // of the body that was sent
	SHA256     string
	Same       bool // the body is that of Original
	Outcome    string
	Err        error
	Status     int
	Parts      []transcript.Part // what was said; the calls of a complete answer were not run
	Finish     string
	Usage      *transcript.Usage
	FirstDelta time.Duration // 0: none came
	Took       time.Duration
}

// Resend sends a request again, outside of any session (M8): nothing of it is recorded, no call is run and nothing is tried
// again. It is for finding out why. tell is called with the deltas as they come. The error says that nothing was sent:
// [transcript.ErrNoRequest], [transcript.ErrDamaged], or [model.ErrNoModel] when the provider of the request is not
// configured any more.
func (a *Agent) Resend(ctx context.Context, r Resend, tell func(model.Delta)) (Resent, error) {
	return SendAgain(ctx, a.o.Store, a.o.Models, r, tell)
}

// SendAgain is [Agent.Resend] for who has no agent. The store is only read; models is as in [Options].
func SendAgain(ctx context.Context, store *transcript.Store, models func(string) (Model, error), r Resend, tell func(model.Delta)) (Resent, error) {
	info, err := store.Request(ctx, r.Request)
	if err != nil {
		return Resent{}, err
	}
	if info.Provider == "" {
		return Resent{}, fmt.Errorf("resend: %w: which model request %s was for", transcript.ErrDamaged, r.Request)
	}
	m, err := models(info.Provider + "/" + info.Model)
	if err != nil {
		return Resent{}, fmt.Errorf("resend: %w", err)
	}
	out := Resent{Original: info, Route: m.Provider.Route(), Bytes: info.Bytes, SHA256: info.SHA256, Same: true}
	req := model.Request{ID: info.ID, Bytes: info.Bytes, Body: func() (io.ReadCloser, error) {
		b, _, err := store.Body(ctx, r.Request)
		return b, err
	}}
	if r.Body != nil {
		sum := sha256.Sum256(r.Body)
		out.Bytes, out.SHA256 = int64(len(r.Body)), hex.EncodeToString(sum[:])
		out.Same = out.SHA256 == info.SHA256
		req.Bytes = out.Bytes
		req.Body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	}
	out.follow(ctx, m.Provider, req, tell)
	return out, nil
}

// follow sends the request and takes what comes.
func (r *Resent) follow(ctx context.Context, p model.Provider, req model.Request, tell func(model.Delta)) {
	begin := time.Now()
	var said transcript.Spoken
	r.Err = &model.Error{Class: model.Truncated, Message: "the provider's stream ended without saying so"}
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			r.Err = err
			break
		}
		if d.Kind == model.End {
			r.Parts, r.Finish, r.Usage, r.Err = d.Parts, d.Finish, d.Usage, nil
			break
		}
		switch d.Kind {
		case model.Headers:
			r.Status = d.Status
		case model.Text, model.Reasoning:
			if r.FirstDelta == 0 {
				r.FirstDelta = max(1, time.Since(begin))
			}
			said.Say(partOf[d.Kind], d.Text)
		case model.PartExtra:
			said.Carry(d.Part, d.Type, d.Extra)
		}
		tell(d)
	}
	r.Took = time.Since(begin)
	switch {
	case r.Err == nil:
		r.Outcome = "complete"
		return
	case ctx.Err() != nil:
		r.Outcome, r.Err = "stopped", nil
	default:
		r.Outcome = "broken"
		if e, ok := errors.AsType[*model.Error](r.Err); ok && e.Status != 0 {
			r.Status = e.Status
		}
	}
	r.Parts = said.Parts()
}

// partOf is the type of part that a delta of text belongs to.
var partOf = map[model.DeltaKind]transcript.PartType{model.Text: transcript.PartText, model.Reasoning: transcript.PartReasoning}
