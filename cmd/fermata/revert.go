package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fermata/agent"
	"fermata/tools/workspace"
	"fermata/transcript"
)

func newRevertCommand(a *app) *cobra.Command {
	var r agent.Revert
	var session string
	var yes bool
	cmd := &cobra.Command{
		Use:   "revert [TURN] [PATH...]",
		Short: "Take back what a turn changed in files; by default the last turn that changed any",
		Long: "revert writes files as they were before a turn: of the turn that is named by its id or by its number in the newest session\n" +
			"of this workspace, else of the last turn that changed a file. With paths it keeps to those files and folders. A file\n" +
			"that was changed since, by you or by anything else, is kept and said. What a revert did is recorded, told to the model\n" +
			"once, and can be undone with --undo.\n\n" +
			"It exits with 1 when a file was kept that is not as it was before already.",
		Example:           "  fermata revert                  what the last turn changed\n  fermata revert 2 --since        back to before turn 2\n  fermata revert --undo",
		ValidArgsFunction: a.completeTurns,
		RunE: func(cmd *cobra.Command, words []string) error {
			turn, paths, err := revertWords(&r, words)
			if err != nil {
				return err
			}
			return a.withAgent(cmd.Context(), func(ctx context.Context, ag *agent.Agent) error {
				if r.Revert == "" {
					if r.Session, r.Turn, err = a.chosenTurn(ctx, transcript.SessionID(session), turn); err != nil {
						return err
					}
				}
				if r.Paths, err = a.pathsFromHere(paths); err != nil {
					return err
				}
				return a.revert(ctx, ag, r, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&r.Since, "since", false, "take back the changes of all later turns too: back to before that turn")
	cmd.Flags().BoolVar(&r.Undo, "undo", false, "undo the last revert instead, or the one that is named: put the changes back")
	cmd.Flags().StringVarP(&session, "session", "s", "", "session to look in (default the newest of this workspace)")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// revertWords tells the turn, or with --undo the revert, from the paths: the first word when it looks like one.
func revertWords(r *agent.Revert, words []string) (turn string, paths []string, err error) {
	if r.Undo && r.Since {
		return "", nil, usage("--since says what to take back, and --undo puts it back: give one of them")
	}
	if len(words) == 0 {
		return "", nil, nil
	}
	first := words[0]
	_, _, isRevert := transcript.RevertID(first).Entry()
	_, notNumber := strconv.Atoi(first)
	switch {
	case r.Undo && strings.HasPrefix(first, "s_") && isRevert:
		r.Revert = transcript.RevertID(first)
		return "", words[1:], nil
	case r.Undo && (strings.HasPrefix(first, "t_") || notNumber == nil):
		return "", nil, usage("--undo is about a revert, not about turn %s: name a revert, or none for the last one", first)
	case strings.HasPrefix(first, "t_") || notNumber == nil && !r.Undo:
		return first, words[1:], nil
	}
	return "", words, nil
}

// pathsFromHere are paths as absolute ones when they lie in the workspace as seen from the current folder; others are meant
// from its root.
func (a *app) pathsFromHere(paths []string) ([]string, error) {
	root, err := a.workspace()
	if err != nil || len(paths) == 0 {
		return paths, err
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return nil, err
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if abs := filepath.Join(here, p); !filepath.IsAbs(p) {
			if rel, err := filepath.Rel(root, abs); err == nil && filepath.IsLocal(rel) {
				out[i] = abs
			}
		}
	}
	return out, nil
}

// revert asks on a terminal, reverts, and says what came of it.
func (a *app) revert(ctx context.Context, ag *agent.Agent, r agent.Revert, yes bool) error {
	r.Preview = true
	would, err := ag.Revert(ctx, r)
	if err != nil {
		return explainSession(err)
	}
	r.Preview, r.Turn = false, would.Turn // that one, also when another turn ends meanwhile
	n := 0
	for _, f := range would.Files {
		if f.State == transcript.RevertDone {
			n++
		}
	}
	if n == 0 {
		return a.tellReverted(would, r.Undo)
	}
	if !yes {
		if sure, err := a.confirmRevert(would, r.Undo, n); err != nil || !sure {
			return err
		}
	}
	done, err := ag.Revert(ctx, r)
	if err != nil {
		return explainSession(err)
	}
	return a.tellReverted(done, r.Undo)
}

// confirmRevert lists on a terminal what a revert would do, and asks.
func (a *app) confirmRevert(r agent.Reverted, undo bool, n int) (bool, error) {
	if !term.IsTerminal(int(a.in.Fd())) || !term.IsTerminal(int(a.err.Fd())) {
		return false, usage("nobody is there to confirm it: add --yes to change %s", plural(n, "file"))
	}
	st := styleOf(a.err, environment)
	verb := "Revert"
	if undo {
		verb = "Put back the changes of"
	}
	for _, f := range r.Files {
		if f.State == transcript.RevertDone {
			fmt.Fprintln(a.err, "  "+workspace.Show(f.Path))
		} else {
			fmt.Fprintln(a.err, st.dim("  "+workspace.Show(f.Path)+" stays: "+printable(f.Why)))
		}
	}
	fmt.Fprintf(a.err, "%s %s? [y/N] ", verb, plural(n, "file"))
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	if answer == "" && err != nil {
		return false, errors.New("nothing was changed: the question got no answer")
	}
	fmt.Fprintln(a.err, "nothing was changed")
	return false, nil
}

func (a *app) tellReverted(r agent.Reverted, undo bool) error {
	st := styleOf(a.out, environment)
	verb := "reverted"
	if undo {
		verb = "put back"
	}
	kept := 0
	for _, f := range r.Files {
		switch {
		case f.State == transcript.RevertDone:
			fmt.Fprintln(a.out, verb+" "+workspace.Show(f.Path))
		case f.Already:
			fmt.Fprintln(a.out, st.dim("kept     "+workspace.Show(f.Path)+": "+printable(f.Why)))
		default:
			kept++
			fmt.Fprintln(a.out, st.warn("kept     "+workspace.Show(f.Path)+": "+printable(f.Why)))
		}
	}
	if r.Revert != "" {
		fmt.Fprintln(a.err, st.dim("undo it with: fermata revert --undo "+string(r.Revert)))
	}
	if kept > 0 {
		return fmt.Errorf("%s kept as it is", plural(kept, "file"))
	}
	return nil
}
