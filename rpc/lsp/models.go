package lsp

import (
	"context"

	"fermata/rpc/wire"
)

// modelList tells the models that turns can use. It needs no database.
func (s *server) modelList(ctx context.Context, _ wire.ModelListParams) (any, error) {
	if s.o.Models == nil {
		return wire.ModelListResult{Models: []wire.Model{}}, nil
	}
	return s.o.Models(ctx)
}
