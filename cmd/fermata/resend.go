package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fermata/agent"
	"fermata/agent/model"
	"fermata/transcript"
)

func newResendCommand(a *app) *cobra.Command {
	var edit bool
	cmd := &cobra.Command{
		Use:   "resend [REQUEST]",
		Short: "Send a request to its model again, to find out why; by default the newest of this workspace",
		Long: "resend sends the very bytes of a request again, or with --edit a copy that you changed in your editor ($VISUAL, $EDITOR),\n" +
			"and streams what the model says. It is outside of the session: nothing is recorded, no tool is run, nothing is retried.\n\n" +
			"Exit codes: 0 answered, 1 could not begin, 2 wrong usage, 3 stopped, 4 failed.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeRequests,
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx := cmd.Context()
			store, err := a.readStore()
			if err != nil {
				return err
			}
			r := agent.Resend{}
			if r.Request, err = a.chosenRequest(ctx, store, names); err != nil {
				return err
			}
			if edit {
				if r.Body, err = a.editedBody(ctx, store, r.Request); err != nil {
					return explainRequest(err, r.Request)
				}
			}
			ctx, stop := signal.NotifyContext(ctx, append(endSignals, os.Interrupt)...)
			defer stop()
			return a.resend(ctx, store, r)
		},
	}
	cmd.Flags().BoolVarP(&edit, "edit", "e", false, "change the body in your editor first")
	return cmd
}

func explainRequest(err error, id transcript.RequestID) error {
	if errors.Is(err, transcript.ErrNoRequest) {
		return fmt.Errorf("%w: %s; fermata transcript shows the requests of a session", transcript.ErrNoRequest, printable(string(id)))
	}
	return err
}

// resend streams the answer: its text to stdout, everything about it to stderr.
func (a *app) resend(ctx context.Context, store *transcript.Store, r agent.Resend) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	screen := newScreen(a.out, a.err, a.flagVerbose)
	screen.begin("", cancel) // nobody reads any more
	out, err := agent.SendAgain(ctx, store, a.model, r, func(d model.Delta) {
		switch d.Kind {
		case model.Text:
			screen.show(agent.Event{Delta: &agent.Delta{Part: transcript.PartText, Text: d.Text}})
		case model.Reasoning:
			screen.show(agent.Event{Delta: &agent.Delta{Part: transcript.PartReasoning, Text: d.Text}})
		}
	})
	if errors.Is(err, model.ErrNoModel) {
		return fmt.Errorf("the provider of request %s has to be configured to send it again: %w", r.Request, err)
	}
	if err != nil {
		return explainRequest(err, r.Request)
	}
	screen.finish()
	for _, p := range out.Parts {
		if p.Call != nil {
			screen.say(screen.note.style.dot() + " not run: " + oneLine(p.Call.Name+" "+p.Call.Args, 200))
		}
	}
	for _, line := range resentLines(out) {
		screen.say(screen.note.style.dim(oneLine(line, 0)))
	}
	switch out.Outcome {
	case "stopped":
		return &exit{code: exitStopped}
	case "broken":
		return &exit{exitFailed, out.Err}
	}
	return nil
}

// resentLines say what was sent and what it took.
func resentLines(r agent.Resent) []string {
	what := "the same bytes"
	if !r.Same {
		what = "an edited copy"
	}
	sent := fmt.Sprintf("%s of request %s: %d bytes, sha256 %s, to %s", what, r.Original.ID, r.Bytes, r.SHA256, r.Route)
	if r.Route != r.Original.Route {
		sent += "; first sent to " + r.Original.Route
	}
	came := fmt.Sprintf("%s, %s", r.Outcome, r.Took.Round(time.Millisecond))
	if r.Status != 0 {
		came = fmt.Sprintf("%s, HTTP %d, %s", r.Outcome, r.Status, r.Took.Round(time.Millisecond))
	}
	if u := r.Usage; u != nil {
		came += fmt.Sprintf("; tokens in %d (cached %d), out %d", u.Input, u.Cached, u.Output)
	}
	return []string{sent, came + "; not part of the session"}
}

// editedBody has the user edit the body of a request, indented; nil when it stays as it is. What was not touched keeps its
// bytes: the white space that the indenting has added is taken out again.
func (a *app) editedBody(ctx context.Context, store *transcript.Store, id transcript.RequestID) ([]byte, error) {
	in, err := store.Input(ctx, id)
	if err != nil {
		return nil, err
	}
	var before bytes.Buffer
	if err := json.Indent(&before, in.Body, "", "  "); err != nil {
		return nil, fmt.Errorf("the body of request %s is no JSON, so it cannot be edited: %w", id, err)
	}
	before.WriteByte('\n')
	dir, err := os.MkdirTemp("", "fermata-resend-*") // 0700
	if err != nil {
		return nil, fmt.Errorf("make a file to edit: %w", err)
	}
	path := filepath.Join(dir, "request.json")
	if err := os.WriteFile(path, before.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("make a file to edit: %w", err)
	}
	if err := a.edit(ctx, path); err != nil {
		_ = os.RemoveAll(dir) // nothing was written there that is not in the log
		return nil, err
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the edited body: %w", err)
	}
	if bytes.Equal(after, before.Bytes()) {
		return nil, os.RemoveAll(dir)
	}
	var body bytes.Buffer
	if err := json.Compact(&body, after); err != nil {
		return nil, fmt.Errorf("the edited body is no JSON, %w; it is kept in %s", err, tilde(path))
	}
	return body.Bytes(), os.RemoveAll(dir)
}

// edit runs the user's editor on a file and waits for its end. The editor's name comes from the environment, as of git: it
// may hold arguments.
func (a *app) edit(ctx context.Context, path string) error {
	editor := environment("VISUAL")
	if editor == "" {
		editor = environment("EDITOR")
	}
	if editor == "" {
		if !term.IsTerminal(int(a.in.Fd())) {
			return usage("--edit needs an editor: set VISUAL or EDITOR")
		}
		if editor = "vi"; runtime.GOOS == "windows" {
			editor = "notepad"
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		cmd = exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.err, a.err // stdout is for the answer
	if term.IsTerminal(int(a.out.Fd())) {
		cmd.Stdout = a.out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed, so nothing was sent: %w", editor, err)
	}
	return nil
}
