package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fermata/agent"
	"fermata/transcript"
)

func newRetryCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry [SESSION]",
		Short: "Try the last turn again, after it failed or was stopped",
		Long: "retry asks the model to go on with the request of the last turn, which failed or was stopped: of the newest session of\n" +
			"this workspace, or of SESSION. Nothing is asked twice: what its tools have done stays, and so does what you kept of\n" +
			"its answer.\n\n" +
			"Exit codes are those of ask.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, names []string) error {
			x := a.askingIn(names)
			return x.run(cmd.Context(), request{retry: true})
		},
	}
	a.addTurnFlags(cmd)
	return cmd
}

func newKeepCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keep [SESSION]",
		Short: "Keep an answer that broke off: the model will see it as it was shown",
		Long: "keep puts the answer with which the last turn broke off into what the model reads next, word for word as it was shown: of\n" +
			"the newest session of this workspace, or of SESSION. Only the last turn's can be kept, so that no earlier input changes.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx := cmd.Context()
			x := a.askingIn(names)
			if err := x.open(ctx); err != nil {
				return x.explain(err)
			}
			defer func() { _ = x.agent.Close(ctx, agent.ErrShutdown) }() // nothing runs
			kept, err := x.keep(ctx)
			if err == nil {
				_, err = fmt.Fprintln(a.out, kept)
			}
			return err
		},
	}
}

// askingIn is for the session that the arguments name, else for the newest of the workspace.
func (a *app) askingIn(names []string) *asking {
	x := &asking{app: a, again: len(names) == 0, last: true}
	if len(names) > 0 {
		x.id = transcript.SessionID(names[0])
	}
	return x
}

// keep keeps the answer that broke off in the session's last turn, and says so.
func (x *asking) keep(ctx context.Context) (string, error) {
	k, err := x.agent.Keep(ctx, x.session.LastTurn())
	if err != nil {
		return "", x.explain(err)
	}
	what := plural(k.Kept.Words, "word")
	if k.Kept.Words == 0 {
		what = fmt.Sprintf("%d bytes of reasoning", k.Kept.Bytes)
	}
	return "Kept " + what + ": the model will see that answer as it was shown. Go on with: fermata ask --session " + string(k.Session), nil
}

// failedLane is what a terminal offers after a turn that failed (F3). It returns true when the user wants to try again.
func (x *asking) failedLane(ctx context.Context, r agent.Report) bool {
	st := x.screen.note.style
	text, reasoning := x.screen.shown()
	canKeep := strings.TrimSpace(text+reasoning) != "" && len(r.Withheld) == 0
	x.keys.discard()
	for {
		offer, choices := "[r]etry, Enter leaves", "r\r"
		if canKeep {
			offer, choices = "[r]etry, [k]eep, Enter leaves", "rk\r"
		}
		key, err := x.keys.choose(x.signals.ctx, "  "+offer, choices)
		switch {
		case err == nil && key == 'r':
			return true
		case err == nil && key == 'k':
			kept, err := x.keep(ctx)
			if err != nil {
				kept = err.Error()
			}
			x.screen.say("  " + printable(kept))
			canKeep = false
		default:
			x.screen.say(st.dim("Left as it is. Go on later with: fermata retry " + string(r.Session)))
			return false
		}
	}
}

// message shows what becomes of a message that another client has queued.
func (s *screen) message(b transcript.Body) {
	switch b := b.(type) {
	case *transcript.MessageQueued:
		s.line(s.note.style.dim("queued: " + oneLine((&transcript.TurnStarted{Prompt: b.Prompt}).PromptText(), 160)))
	case *transcript.MessageDelivered:
		s.line(s.note.style.dim("delivered: " + oneLine((&transcript.TurnStarted{Prompt: b.Prompt}).PromptText(), 160)))
	case *transcript.MessageReturned:
		s.line(s.note.style.warn("returned: a queued message was not sent (" + strings.ReplaceAll(b.Cause, "_", " ") + ")"))
	}
}
