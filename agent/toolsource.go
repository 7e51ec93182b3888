package agent

import (
	"context"
	"encoding/json"

	"fermata/agent/model"
	"fermata/tools"
)

// ToolSource offers tools besides [Options].Tools that can change from turn to turn, as those of MCP servers do.
type ToolSource interface {
	// Tools are what a session with this root is offered in the turn that begins, in a fixed order (M4), and what the user
	// must be told about them. It may take its time; when ctx ends it comes back at once.
	Tools(ctx context.Context, root string) (offered []tools.Tool, warnings []string)
	// Close ends all that was started for them. Runs of their tools then come back.
	Close()
}

// offer asks what else the model is offered in the turn that begins. Within a turn that stays as it is; when it differs from
// the turn before, the next request opens an epoch (M5).
func (r *run) offer(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the answer
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	more, warnings := r.agent.o.More.Tools(ctx, r.s.Workspace())
	if r.s.offers(more) {
		r.agent.o.Log.Debug("other tools are offered than before", "session", r.s.ID(), "count", len(more))
	}
	for _, w := range warnings {
		r.agent.o.Log.Debug(w)
		r.s.hub.publish(Event{Warning: &Warning{Turn: r.id, Text: w}})
	}
}

// offers takes what else is offered from now on, and reports whether models see a difference.
func (s *Session) offers(more []tools.Tool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = toolsSum(modelTools(more)) != toolsSum(modelTools(s.offered()))
	if s.more.Store(&more); changed {
		clear(s.frames)
	}
	return changed
}

// offered is what the session's source offers.
func (s *Session) offered() []tools.Tool {
	if more := s.more.Load(); more != nil {
		return *more
	}
	return nil
}

// modelTools is what models are told of tools.
func modelTools(all []tools.Tool) []model.Tool {
	var out []model.Tool
	for _, t := range all {
		out = append(out, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return out
}

func toolsSum(all []model.Tool) string {
	b, err := json.Marshal(all)
	if err != nil {
		return err.Error() // the frame's encoding says it
	}
	return digest(b)
}
