package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fermata/agent"
	"fermata/transcript"
)

// maxPrompt bounds a prompt that is piped in, in bytes.
const maxPrompt = 16 << 20

func newAskCommand(a *app) *cobra.Command {
	var (
		again    bool
		session  string
		redirect bool
	)
	cmd := &cobra.Command{
		Use:   "ask [PROMPT...]",
		Short: "Ask a question and stream the answer; Ctrl-C stops it and keeps what was said",
		Long: "ask runs one turn in the workspace and streams the answer. Without a prompt it reads one from stdin, or asks for one.\n\n" +
			"Ctrl-C stops the answer at once. What was shown stays, and you can say what it should do instead; Escape leaves\n" +
			"everything as it is. Ctrl-C twice leaves without asking.\n\n" +
			"Exit codes: 0 answered, 1 could not begin, 2 wrong usage, 3 stopped, 4 failed.",
		Example: "  fermata ask \"what does this package do?\"\n" +
			"  git diff | fermata ask\n" +
			"  fermata ask --continue \"and now its tests\"",
		RunE: func(cmd *cobra.Command, words []string) error {
			if again && session != "" {
				return usage("--continue and --session exclude each other: keep one")
			}
			if redirect && !again && session == "" {
				return usage("--redirect needs the session whose stopped turn it replaces: add --continue or --session")
			}
			x := &asking{app: a, again: again, id: transcript.SessionID(session), redirect: redirect}
			prompt := strings.Join(words, " ")
			if !utf8.ValidString(prompt) {
				return usage("the prompt is no UTF-8 text")
			}
			return x.run(cmd.Context(), request{prompt: prompt})
		},
	}
	a.addTurnFlags(cmd)
	cmd.Flags().BoolVarP(&again, "continue", "c", false, "go on in the newest session of this workspace")
	cmd.Flags().StringVarP(&session, "session", "s", "", "go on in this session")
	cmd.Flags().BoolVarP(&redirect, "redirect", "r", false, "replace the course of the session's last turn, which was stopped")
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeSessions) // fails only for a flag that is not there
	return cmd
}

// asking is one run of `fermata ask`: a turn, and the redirects that follow its stops.
type asking struct {
	app      *app
	again    bool
	id       transcript.SessionID
	redirect bool
	last     bool // it is about the last turn: retry, keep

	screen  *screen
	keys    *keyboard // nil when nobody can be asked
	signals *signals
	agent   *agent.Agent
	session *agent.Session
	events  *agent.Subscription
}

// request is what a turn is to do: a prompt, or the last turn's once more.
type request struct {
	prompt    string
	redirects transcript.TurnID
	retry     bool
}

func (x *asking) run(ctx context.Context, next request) error {
	settings, err := x.app.settings()
	if err != nil {
		return err
	}
	x.signals = watchSignals(ctx)
	defer x.signals.close()
	x.screen = newScreen(x.app.out, x.app.err, x.app.flagVerbose)
	interactive := term.IsTerminal(int(x.app.in.Fd())) && x.screen.text.tty
	if interactive {
		x.screen.note = x.screen.text
		x.keys = newKeyboard(x.app.in, x.app.out, x.signals.interrupts)
	}
	if !next.retry {
		if next.prompt, err = x.prompt(next.prompt); err != nil || next.prompt == "" {
			return err
		}
	}
	if err := x.signals.unheeded(func() error { return x.open(ctx) }); err != nil {
		return x.explain(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // every turn has ended; see turn
		defer cancel()
		_ = x.agent.Close(closing, agent.ErrShutdown)
	}()
	if next.redirects, err = x.stoppedTurn(ctx); err != nil {
		return err
	}
	if strings.HasPrefix(settings.from, "built in") && (x.screen.note.tty || x.app.flagVerbose) {
		x.screen.say(x.screen.note.style.dim("no provider is configured: the built-in rehearsal model answers; see fermata doctor"))
	}
	return x.converse(ctx, next)
}

// converse runs the turn, and as many redirects and retries as the user wants.
func (x *asking) converse(ctx context.Context, next request) error {
	var watching = make(chan struct{})
	go func() { // ends when x.events is closed
		defer close(watching)
		for {
			ev, err := x.events.Next(context.WithoutCancel(ctx))
			if err != nil {
				return
			}
			x.screen.show(ev)
		}
	}()
	defer func() {
		x.events.Close()
		<-watching
	}()
	for {
		report, leave, err := x.turn(ctx, next)
		if err != nil {
			return x.explain(err)
		}
		x.conclude(report)
		if report.Outcome == transcript.TurnStopped && report.Cause == "user" && !leave && x.keys != nil {
			if prompt, ok := x.lane(report); ok {
				next = request{prompt: prompt, redirects: report.Turn}
				continue
			}
		}
		if report.Outcome == transcript.TurnFailed && !leave && x.keys != nil && x.failedLane(ctx, report) {
			next = request{retry: true}
			continue
		}
		if err := x.screen.unshown(); err != nil {
			return fmt.Errorf("show the answer: %w; it is kept: fermata transcript %s", err, report.Session)
		}
		switch report.Outcome {
		case transcript.TurnCompleted:
			return nil
		case transcript.TurnStopped:
			return &exit{code: exitStopped}
		default:
			return &exit{code: exitFailed}
		}
	}
}

// prompt finds what is asked: the arguments, a pipe, or an input line. "" means that the user left.
func (x *asking) prompt(words string) (string, error) {
	switch {
	case strings.TrimSpace(words) != "":
		return words, nil
	case x.keys != nil:
		line, err := x.keys.line(x.signals.ctx, "ask> ", "")
		if errors.Is(err, errLeft) || errors.Is(err, errInterrupt) || err == nil && strings.TrimSpace(line) == "" {
			return "", nil
		}
		return line, err
	case term.IsTerminal(int(x.app.in.Fd())):
		return "", usage("there is no prompt: write one, like fermata ask \"what does this do?\"")
	}
	piped, err := io.ReadAll(io.LimitReader(x.app.in, maxPrompt+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the prompt from stdin: %w", err)
	case len(piped) > maxPrompt:
		return "", usage("the prompt on stdin is longer than %d MiB", maxPrompt>>20)
	case !utf8.Valid(piped):
		return "", usage("the prompt on stdin is no UTF-8 text")
	case strings.TrimSpace(string(piped)) == "":
		return "", usage("there is no prompt: write one, like fermata ask \"what does this do?\", or pipe one in")
	}
	return strings.TrimRight(string(piped), "\r\n"), nil
}

// open opens the agent and the session. Whoever gets no error closes the agent.
func (x *asking) open(ctx context.Context) (err error) {
	log := slog.New(slog.DiscardHandler)
	if x.app.flagVerbose {
		log = x.app.logger(x.app.err)
	}
	workspace, err := x.app.workspace()
	if err != nil {
		return err
	}
	if x.agent, err = x.app.newAgent(x, log); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = x.agent.Close(ctx, agent.ErrShutdown) // nothing runs
		}
	}()
	if x.again {
		store, err := x.app.openStore()
		if err != nil {
			return err
		}
		if x.id, err = newestSession(ctx, store, workspace); err != nil {
			return err
		}
		if x.id == "" && x.last {
			return fmt.Errorf("there is no session in %s yet: name one of fermata sessions --all", tilde(workspace))
		}
		if x.id == "" {
			return fmt.Errorf("there is no session in %s to continue: leave out --continue", tilde(workspace))
		}
	}
	if x.id != "" {
		x.session, err = x.agent.Open(ctx, x.id)
	} else {
		x.session, err = x.agent.NewSession(ctx, agent.SessionOptions{Workspace: workspace})
	}
	if err != nil {
		return err
	}
	x.events, err = x.session.Subscribe(ctx, -1)
	return err
}

// stoppedTurn is the turn that --redirect means; "" without the flag.
func (x *asking) stoppedTurn(ctx context.Context) (transcript.TurnID, error) {
	if !x.redirect {
		return "", nil
	}
	store, err := x.app.openStore()
	if err != nil {
		return "", err
	}
	entries, err := store.Entries(ctx, x.session.ID(), 0, 0)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if ended, ok := e.Body.(*transcript.TurnEnded); ok {
			if ended.Outcome == transcript.TurnStopped {
				return ended.Turn, nil
			}
			break
		}
	}
	return "", fmt.Errorf("the last turn of session %s was not stopped: leave out --redirect", x.session.ID())
}

// explain adds what to do to the errors that keep a session from opening and a turn from beginning.
func (x *asking) explain(err error) error {
	switch {
	case errors.Is(err, transcript.ErrLeased) && x.last:
		return fmt.Errorf("%w: wait until its turn ends, or stop it there", err)
	case errors.Is(err, agent.ErrBusy), errors.Is(err, transcript.ErrLeased):
		return fmt.Errorf("%w: wait until it ends, or leave out --continue to begin a new session", err)
	case errors.Is(err, transcript.ErrNoSession):
		return fmt.Errorf("%w: fermata sessions --all lists them", err)
	case errors.Is(err, transcript.ErrNoTurn):
		return fmt.Errorf("%w: nothing was asked in session %s yet", err, x.session.ID())
	}
	return err
}
