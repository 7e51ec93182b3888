package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/rpc/lsp"
	"fermata/rpc/wire"
	"fermata/tools/workspace"
	"fermata/transcript"
)

func newChangesCommand(a *app) *cobra.Command {
	var asJSON, stat bool
	cmd := &cobra.Command{
		Use:   "changes [SESSION|TURN]",
		Short: "Show what a turn changed in files, as a diff; by default the last turn that changed any",
		Long: "changes prints what a turn did to files, each from before its first change to after its last, as a unified diff: of the\n" +
			"turn that is named by its id or by its number in the newest session of this workspace, else of the last turn that\n" +
			"changed a file, in SESSION or in that session. fermata revert takes it back.",
		Example:           "  fermata changes --stat\n  fermata changes 2 | less",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeTurns,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.withAgent(cmd.Context(), func(ctx context.Context, ag *agent.Agent) error {
				session, turn, err := a.chosenTurn(ctx, "", strings.Join(names, ""))
				if err != nil {
					return err
				}
				c, err := ag.Changes(ctx, session, turn)
				if err != nil {
					return explainSession(err)
				}
				s, err := ag.Open(ctx, c.Session)
				if err != nil {
					return err
				}
				r, err := lsp.TurnChanges(ctx, ag, c, s.Workspace())
				switch {
				case err != nil:
					return err
				case asJSON:
					return writeJSON(a.out, r)
				case stat:
					a.changeStat(r)
					return nil
				}
				return a.changeDiff(ctx, ag, c)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the files with their contents before and after as JSON")
	cmd.Flags().BoolVar(&stat, "stat", false, "print only which files, how many lines, and how each stands now")
	return cmd
}

// withAgent runs f with an agent that runs no turn, on a database that is there.
func (a *app) withAgent(ctx context.Context, f func(ctx context.Context, ag *agent.Agent) error) error {
	if _, err := a.editStore(); err != nil {
		return err
	}
	ag, err := a.newAgent(nobody{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	err = f(ctx, ag)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // nothing runs
	defer cancel()
	return errors.Join(err, ag.Close(closing, agent.ErrShutdown))
}

// chosenTurn is the session and the turn that a name means: a session, a turn by its id, or by its number in the session,
// which is "" for the newest of this workspace. "" for a turn means its last one that changed a file.
func (a *app) chosenTurn(ctx context.Context, session transcript.SessionID, name string) (transcript.SessionID, transcript.TurnID, error) {
	store, err := a.openStore()
	if err != nil {
		return "", "", err
	}
	switch {
	case strings.HasPrefix(name, "t_"):
		return "", transcript.TurnID(name), nil
	case strings.HasPrefix(name, "s_"):
		return transcript.SessionID(name), "", nil
	}
	if session == "" {
		if session, err = a.chosenSession(ctx, store, nil); err != nil {
			return "", "", err
		}
	}
	turn, err := turnOf(ctx, store, session, name)
	return session, turn, explainSession(err)
}

// changeStat is one line a file.
func (a *app) changeStat(r wire.TurnChangesResult) {
	st := styleOf(a.out, environment)
	added, removed := 0, 0
	for _, f := range r.Files {
		lines := fmt.Sprintf("%s %s", st.good(fmt.Sprintf("%+5d", f.Added)), st.bad(fmt.Sprintf("%5s", fmt.Sprintf("-%d", f.Removed))))
		if f.Binary {
			lines = fmt.Sprintf("%11s", "binary")
		}
		line := fmt.Sprintf("%-8s%s  %s", f.State, lines, workspace.Show(f.Path))
		var notes []string
		switch {
		case f.From != "":
			notes = append(notes, "moved from "+workspace.Show(f.From))
		case f.To != "":
			notes = append(notes, "moved to "+workspace.Show(f.To))
		}
		if f.By == "command" {
			notes = append(notes, "by a command")
		}
		switch agent.FileNow(f.Now) {
		case agent.NowReverted:
			notes = append(notes, "reverted")
		case agent.NowChanged:
			notes = append(notes, "changed since")
		case agent.NowUnknown:
			notes = append(notes, "cannot be read now")
		}
		if len(notes) > 0 {
			line += st.dim("  (" + strings.Join(notes, ", ") + ")")
		}
		fmt.Fprintln(a.out, line)
		added, removed = added+f.Added, removed+f.Removed
	}
	fmt.Fprintln(a.out, st.dim(fmt.Sprintf("turn %s: %s, +%d -%d lines", r.Turn, plural(len(r.Files), "file"), added, removed)))
}

// changeDiff prints a diff, coloured on a terminal and without what would act on it.
func (a *app) changeDiff(ctx context.Context, ag *agent.Agent, c agent.Changes) error {
	text, err := ag.Unified(ctx, c)
	if err != nil {
		return err
	}
	st := styleOf(a.out, environment)
	if !st.color {
		return a.printText(text)
	}
	var out strings.Builder
	for line := range bytes.Lines(text) {
		out.WriteString(st.diffLine(strings.TrimSuffix(string(line), "\n")) + "\n")
	}
	_, err = fmt.Fprint(a.out, out.String())
	return err
}

// diffLine is a line of a unified diff in its colour.
func (s style) diffLine(line string) string {
	line = printable(line)
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "Binary "),
		strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "rename "):
		return s.bold(line)
	case strings.HasPrefix(line, "@@"):
		return s.sgr("36", line)
	case strings.HasPrefix(line, "+"):
		return s.good(line)
	case strings.HasPrefix(line, "-"):
		return s.bad(line)
	}
	return line
}
