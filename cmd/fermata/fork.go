package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/transcript"
)

func newForkCommand(a *app) *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use:   "fork [SESSION]",
		Short: "Begin a session that goes on from a turn of another; by default the newest of this workspace",
		Long: "fork copies a conversation, up to the end of a turn, into a session of its own. The other session stays as it is, and\n" +
			"what the model is sent begins with the very bytes that it was sent there. Files stay as they are.\n\n" +
			"It prints the new session's id.",
		Example: "  fermata fork --after 2 && fermata ask --continue \"try it with a map instead\"",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := a.editStore()
			if err != nil {
				return err
			}
			parent, err := a.chosenSession(cmd.Context(), store, names)
			if err != nil {
				return err
			}
			turn, err := turnOf(cmd.Context(), store, parent, after)
			if err != nil {
				return explainSession(err)
			}
			ag, err := a.newAgent(nobody{}, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer func() {
				closing, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), time.Second) // nothing runs
				defer cancel()
				_ = ag.Close(closing, agent.ErrShutdown)
			}()
			s, err := ag.Fork(cmd.Context(), parent, turn)
			if err != nil {
				return explainSession(err)
			}
			info, err := store.Session(cmd.Context(), s.ID())
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, s.ID())
			fmt.Fprintf(a.err, "a copy of %s up to turn %d; go on with: fermata ask --session %s\n", parent, info.Turns, s.ID())
			return nil
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "last turn to keep: its id, or its number from 1 (default the last that has ended)")
	cmd.ValidArgsFunction = a.completeSessions
	_ = cmd.RegisterFlagCompletionFunc("after", a.completeTurns) // fails only for a flag that is not there
	return cmd
}

// editStore opens the database for writing when there is one; else it is [errNoDatabase].
func (a *app) editStore() (*transcript.Store, error) {
	path, err := a.databasePath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errNoDatabase
	}
	return a.openStore()
}

// turnOf is the turn that a user names by its id or its number in the session; "" stays "".
func turnOf(ctx context.Context, store *transcript.Store, session transcript.SessionID, name string) (transcript.TurnID, error) {
	n, err := strconv.Atoi(name)
	if err != nil {
		return transcript.TurnID(name), nil
	}
	turns, err := turnsOf(ctx, store, session)
	if err != nil {
		return "", err
	}
	if n < 1 || n > len(turns) {
		return "", fmt.Errorf("session %s has %s: there is no turn %d", session, plural(len(turns), "turn"), n)
	}
	return turns[n-1].Turn, nil
}

// turnsOf are the turns of a session, in order.
func turnsOf(ctx context.Context, store *transcript.Store, session transcript.SessionID) (out []*transcript.TurnStarted, err error) {
	entries, err := store.Entries(ctx, session, 0, 0)
	for _, e := range entries {
		if b, ok := e.Body.(*transcript.TurnStarted); ok {
			out = append(out, b)
		}
	}
	return out, err
}

// explainSession adds what to do to the errors of subcommands that name a session.
func explainSession(err error) error {
	switch {
	case errors.Is(err, transcript.ErrNoSession):
		return fmt.Errorf("%w; fermata sessions --all lists them", err)
	case errors.Is(err, transcript.ErrNoTurn):
		return fmt.Errorf("%w; name a turn by its number in the session, from 1", err)
	case errors.Is(err, transcript.ErrLeased):
		return fmt.Errorf("%w: wait until its turn ends, or stop it there", err)
	}
	return err
}
