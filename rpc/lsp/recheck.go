package lsp

import (
	"context"
	"slices"

	"fermata/agent"
	"fermata/rpc"
	"fermata/rpc/wire"
)

// turnRecheck answers when the checks are over and their verdicts were written as events (K5).
func (s *server) turnRecheck(ctx context.Context, p wire.TurnRecheckParams) (any, error) {
	a, _, err := s.backend(ctx)
	if err != nil {
		return nil, err
	}
	r, err := a.Recheck(ctx, p.Turn)
	if err != nil {
		return nil, rpc.About(p.Turn, err)
	}
	s.drain(s.life, r.Session)
	return wire.TurnRecheckResult{
		Session: r.Session, Turn: r.Turn, Ran: slices.Concat([]string{}, r.Ran), Admitted: r.Admitted, Late: r.Late,
		Withheld: withholdings(r.Withheld),
	}, nil
}

func withholdings(ws []agent.Withholding) []wire.Withholding {
	out := make([]wire.Withholding, 0, len(ws))
	for _, w := range ws {
		out = append(out, wire.Withholding{Check: w.Check, Verdict: w.Verdict, Reason: w.Reason})
	}
	return out
}
