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
	mu     sync.Mutex
	cancel func(ctx context.Context, reason string) error
}

type sentKey struct{}

// with makes ctx that of a call.
func (s *sent) with(ctx context.Context) context.Context { return context.WithValue(ctx, sentKey{}, s) }

func sentOf(ctx context.Context) *sent {
	s, _ := ctx.Value(sentKey{}).(*sent)
	return s
}

func (s *sent) as(cancel func(ctx context.Context, reason string) error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
}

// tell tells the server that nobody waits any more. A call that has not left is not cancelled.
func (s *sent) tell(ctx context.Context, reason string) error {
	s.mu.Lock()
	cancel := s.cancel
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
