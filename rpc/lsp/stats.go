package lsp

import (
	"context"

	"fermata/rpc/wire"
	"fermata/transcript"
)

// stats reads and counts; nothing is kept and nothing leaves the machine.
func (s *server) stats(ctx context.Context, p wire.StatsParams) (any, error) {
	root, err := workspaceParam(p.Workspace)
	if err != nil {
		return nil, err
	}
	_, store, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	st, err := store.Stats(ctx, transcript.StatsQuery{Workspace: root})
	if err != nil {
		return nil, err
	}
	return wire.StatsResult{Stats: st}, nil
}
