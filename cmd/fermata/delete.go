package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fermata/rpc/lsp"
	"fermata/transcript"
)

func newDeleteCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session for good, with all that is recorded of it",
		Long: "delete removes all that is recorded of a session: what was said, its model inputs, and the contents of files that were\n" +
			"kept for it alone. Other sessions stay as they are, also forks of it. It cannot be undone.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := a.editStore()
			if err != nil {
				return err
			}
			info, err := store.Session(cmd.Context(), transcript.SessionID(names[0]))
			if err != nil {
				return explainSession(err)
			}
			if !yes {
				if sure, err := a.confirmDelete(info); err != nil || !sure {
					return err
				}
			}
			d, err := store.Delete(cmd.Context(), info.ID)
			if err != nil {
				return explainSession(err)
			}
			dir, err := stateDir()
			if err == nil {
				err = lsp.RemoveStateFiles(dir, d)
			}
			line := fmt.Sprintf("deleted %s: %s, %s, %s, %s, %s", d.Session,
				plural(d.Turns, "turn"), plural(d.Entries, "entry"), plural(len(d.Requests), "request"), plural(d.Blobs, "blob"), plural(int(d.Bytes), "byte"))
			if d.Reclaimed > 0 {
				line += fmt.Sprintf("; the database is %d bytes smaller", d.Reclaimed)
			}
			fmt.Fprintln(a.out, line)
			if err != nil {
				return fmt.Errorf("the session is deleted, but a copy that was made for an editor is left: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirmDelete asks on a terminal whether a session is to go.
func (a *app) confirmDelete(info transcript.SessionInfo) (bool, error) {
	if !term.IsTerminal(int(a.in.Fd())) || !term.IsTerminal(int(a.err.Fd())) {
		return false, usage("nobody is there to confirm it: add --yes to delete %s", info.ID)
	}
	fmt.Fprintf(a.err, "Delete %q, %s, for good? [y/N] ", oneLine(info.Title, 72), plural(info.Turns, "turn"))
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	if answer == "" && err != nil {
		return false, errors.New("nothing was deleted: the question got no answer")
	}
	fmt.Fprintln(a.err, "nothing was deleted")
	return false, nil
}
