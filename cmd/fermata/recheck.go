package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/agent/permit"
	"fermata/tools/workspace"
	"fermata/transcript"
)

func newRecheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "recheck [TURN]",
		Short: "Run the checks that a withheld answer lacks",
		Long: "recheck runs, on the very answer that was withheld, the checks that have neither passed nor rejected it: those that\n" +
			"failed, took too long, were cut short, or are defined otherwise since. When all have passed it, and no other turn has\n" +
			"started since, the model will see the answer. Without a turn it is the last one of this workspace.\n\n" +
			"It exits with 0 when the answer is admitted, with 4 when it stays withheld.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, words []string) error {
			turn := transcript.TurnID(strings.Join(words, ""))
			return a.recheck(cmd.Context(), turn)
		},
	}
}

func (a *app) recheck(ctx context.Context, turn transcript.TurnID) (err error) {
	workspace, err := a.workspace()
	if err != nil {
		return err
	}
	s := watchSignals(ctx)
	defer s.close()
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	go func() { // ends with ctx
		select {
		case <-s.interrupts:
			cancel(agent.ErrStopped)
		case <-ctx.Done():
		}
	}()
	lasting := context.WithoutCancel(ctx)
	ag, err := a.newAgent(nobody{}, a.logger(a.err))
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(lasting, 10*time.Second)
		defer cancel()
		if e := ag.Close(closing, agent.ErrShutdown); err == nil {
			err = e
		}
	}()
	if turn == "" {
		store, err := a.openStore()
		if err != nil {
			return err
		}
		session, err := newestSession(lasting, store, workspace)
		if err != nil {
			return err
		}
		if session == "" {
			return fmt.Errorf("there is no session in %s: name the turn", tilde(workspace))
		}
		if _, err := ag.Open(lasting, session); err != nil {
			return err
		}
	}
	r, err := ag.Recheck(ctx, turn)
	if err != nil {
		return err
	}
	return a.tellRecheck(r)
}

func (a *app) tellRecheck(r agent.Rechecked) error {
	st := styleOf(a.out, environment)
	if len(r.Ran) > 0 {
		fmt.Fprintln(a.out, "ran "+strings.Join(r.Ran, ", "))
	}
	for _, w := range r.Withheld {
		fmt.Fprintln(a.out, st.bad(withheldBy(w)))
	}
	switch {
	case r.Admitted:
		fmt.Fprintln(a.out, "the answer is admitted: the model will see it")
		return nil
	case len(r.Withheld) == 0:
		fmt.Fprintln(a.out, "all checks pass, but another turn has started since: what the model sees does not change")
	case len(r.Ran) == 0:
		fmt.Fprintln(a.out, "there was nothing to run: every check has judged this answer")
	}
	return &exit{code: exitFailed}
}

// withheldBy is why an answer is withheld, as far as one check goes.
func withheldBy(w agent.Withholding) string {
	why := w.Reason
	switch {
	case w.Verdict == "" && why == "":
		why = "it gave no verdict"
	case w.Verdict == transcript.VerdictError:
		why = "it failed: " + why
	}
	return "withheld by " + oneLine(w.Check, 60) + ": " + printable(strings.ReplaceAll(why, "\n", "\n    "))
}

// nobody is a client that can be asked nothing and has no open documents.
type nobody struct{}

// Permission implements [agent.Client].
func (nobody) Permission(context.Context, agent.Question) (agent.Reply, error) {
	return agent.Reply{Answer: permit.DenyCall}, nil
}

// Overlay implements [agent.Client].
func (nobody) Overlay(string) workspace.Overlay { return nil }
