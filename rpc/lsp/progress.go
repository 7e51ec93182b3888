package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"fermata/agent"
	"fermata/rpc"
	"fermata/transcript"
)

// progressEvery bounds how often progress is reported.
const progressEvery = 300 * time.Millisecond

// tokens are the progress tokens of running turns, as JSON.
type tokens struct {
	mu      sync.Mutex
	byToken map[string]*agent.Turn
}

func (t *tokens) set(token string, turn *agent.Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byToken == nil {
		t.byToken = map[string]*agent.Turn{}
	}
	t.byToken[token] = turn
}

func (t *tokens) get(token string) *agent.Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byToken[token]
}

func (t *tokens) remove(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byToken, token)
}

// tokenKey is the same for equal tokens; "" for what is no token.
func tokenKey(raw jsonValue) string {
	var v any
	if json.Unmarshal(raw, &v) != nil || v == nil {
		return ""
	}
	return fmt.Sprintf("%T %v", v, v)
}

// cancelProgress is window/workDoneProgress/cancel: a stop.
func (s *server) cancelProgress(params []byte) error {
	var p struct {
		Token jsonValue `json:"token"`
	}
	if err := rpc.Decode(params, &p); err != nil {
		return err
	}
	if t := s.tokens.get(tokenKey(p.Token)); t != nil {
		t.Stop(agent.ErrStopped)
	}
	return nil
}

// progress reports a turn as LSP's work done progress, on the client's token or on one of ours. The function that it
// returns ends it, and returns when its end was written.
func (s *server) progress(turn *agent.Turn, token jsonValue) (finished func(agent.Report)) {
	given := tokenKey(token) != ""
	if !given && !s.client.progress {
		return func(agent.Report) {}
	}
	if !given {
		token = jsonValue(`"fermata/` + string(turn.ID()) + `"`)
	}
	s.tokens.set(tokenKey(token), turn)
	ended, done := make(chan agent.Report, 1), make(chan struct{})
	s.work.Go(func() { // ends when finished is called
		defer close(done)
		defer s.tokens.remove(tokenKey(token))
		if !given && !s.createProgress(token, ended) {
			return
		}
		s.reportProgress(turn, token, ended)
	})
	return func(r agent.Report) {
		ended <- r
		<-done
	}
}

// createProgress has the client accept a token of ours. It gives up when the turn ends first.
func (s *server) createProgress(token jsonValue, ended <-chan agent.Report) bool {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	created := make(chan error, 1)
	s.work.Go(func() { // ends with the reply, or with ctx
		created <- s.call(ctx, protocol.MethodWindowWorkDoneProgressCreate, map[string]jsonValue{"token": token}, nil)
	})
	select {
	case err := <-created:
		return err == nil
	case <-ended:
		return false
	}
}

// reportProgress tells how many words there are, until the turn ends.
func (s *server) reportProgress(turn *agent.Turn, token jsonValue, ended <-chan agent.Report) {
	s.tellProgress(token, map[string]any{
		"kind": "begin", "title": "Fermata", "message": "thinking", "cancellable": true,
	})
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	told := 0
	for {
		select {
		case r := <-ended:
			s.tellProgress(token, map[string]any{"kind": "end", "message": endMessage(r)})
			return
		case <-tick.C:
			if v, ok := s.views.get(turn.ID()); ok && v.words != told {
				told = v.words
				s.tellProgress(token, map[string]any{"kind": "report", "message": words(told), "cancellable": true})
			}
		}
	}
}

func endMessage(r agent.Report) string {
	switch {
	case r.Outcome == transcript.TurnStopped && r.Kept != nil:
		return "stopped, " + words(r.Kept.Words) + " kept"
	case r.Outcome == "":
		return "not started"
	}
	return string(r.Outcome)
}

func (s *server) tellProgress(token jsonValue, value map[string]any) {
	if err := s.notify(protocol.MethodProgress, map[string]any{"token": token, "value": value}); err != nil {
		s.log.Debug("report progress", "err", err)
	}
}
