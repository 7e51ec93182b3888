package main

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/rpc/lsp"
	"fermata/transcript"
)

func newLSPCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor over stdio (LSP)",
		Long: "lsp speaks the Language Server Protocol on stdin and stdout; editors start it. It ends when the editor asks for it\n" +
			"or is gone: running turns are then stopped, and all of them are kept.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveLSP(cmd.Context(), a) },
	}
	a.addTurnFlags(cmd)
	cmd.Flags().Bool("stdio", false, "changes nothing; for clients that name the way they talk")
	return cmd
}

// serveLSP serves until the editor leaves. Only lsp.Serve writes to stdout (invariant 6).
func serveLSP(ctx context.Context, a *app) error {
	dir, err := stateDir()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, append(endSignals, os.Interrupt)...)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), pipeSignals...)
	log := a.logger(a.err)
	err = lsp.Serve(ctx, a.in, a.out, lsp.Options{
		Version: versionString(),
		Open: func(_ context.Context, c agent.Client) (*agent.Agent, *transcript.Store, error) {
			store, err := a.openStore()
			if err != nil {
				return nil, nil, err
			}
			ag, err := a.newAgent(c, log)
			return ag, store, err
		},
		Dialect:  dialectByName,
		Models:   a.models,
		StateDir: dir,
		Log:      log,
	})
	if errors.Is(err, lsp.ErrNoShutdown) {
		return &exit{code: exitOther} // as LSP asks for; there is nobody to tell
	}
	return err
}
