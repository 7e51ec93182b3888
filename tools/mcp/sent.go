package mcp

import (
	"context"
	"encoding/json"
	"sync"
)

// sent is a call on its way. The SDK cancels a call by forgetting it, and its answer with it; an answer that comes all the
// same is kept here (S7), so the call is left to the SDK and the server is told by ourselves. The wire that sends the call
// says how. nil does nothing.
type sent struct {
	drop context.CancelFunc // ends the call's context; for a call that has not left only

	mu     sync.Mutex
	cancel func(ctx context.Context, reason string) error // nil: it has not left
	never  bool                                           // it must not leave any more
}

type sentKey struct{}

// with makes ctx that of a call.
func (s *sent) with(ctx context.Context) context.Context { return context.WithValue(ctx, sentKey{}, s) }

func sentOf(ctx context.Context) *sent {
	s, _ := ctx.Value(sentKey{}).(*sent)
	return s
}

// leaves is called when the call is about to be sent, at last. It reports whether it may be; where it may not, its context has
// ended.
func (s *sent) leaves(cancel func(ctx context.Context, reason string) error) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.never {
		s.cancel = cancel
	}
	return !s.never
}

// unsent takes back that the call has left: the server has not taken it.
func (s *sent) unsent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = nil
}

// left reports whether the server may have got the call.
func (s *sent) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil
}

// tell tells the server that nobody waits any more. A call that has not left never does.
func (s *sent) tell(ctx context.Context, reason string) error {
	s.mu.Lock()
	cancel := s.cancel
	if cancel == nil {
		s.never = true
		s.drop()
	}
	s.mu.Unlock()
	if cancel == nil {
		return nil
	}
	return cancel(ctx, reason)
}

// cancelled is the notification that a request is cancelled; id is a JSON-RPC id.
func cancelled(id any, reason string) []byte {
	b, _ := json.Marshal(map[string]any{ // an id and a text can be encoded
		"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": id, "reason": reason},
	})
	return b
}
