package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"fermata/agent"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// twice is how soon a second ^C means to leave.
const twice = 2 * time.Second

// signals are the process's signals while it asks. ctx ends, with a cause, when the process is told to end.
type signals struct {
	ctx        context.Context
	interrupts chan os.Signal
	ends       chan os.Signal
	pipes      chan os.Signal // never read
	stop       context.CancelCauseFunc
	done       sync.WaitGroup
}

func watchSignals(ctx context.Context) *signals {
	s := &signals{interrupts: make(chan os.Signal, 2), ends: make(chan os.Signal, 1), pipes: make(chan os.Signal, 1)}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	signal.Notify(s.interrupts, os.Interrupt)
	signal.Notify(s.ends, endSignals...)
	signal.Notify(s.pipes, pipeSignals...)
	s.done.Go(func() { // ends with close
		select {
		case <-s.ends:
			s.stop(agent.ErrShutdown)
		case <-s.ctx.Done():
		}
	})
	return s
}

// unheeded runs f, in which there is nothing yet that a ^C could stop: it ends the process, however long f waits for a database that
// is in use.
func (s *signals) unheeded(f func() error) error {
	signal.Stop(s.interrupts)
	defer signal.Notify(s.interrupts, os.Interrupt)
	return f()
}

func (s *signals) close() {
	signal.Stop(s.interrupts)
	signal.Stop(s.ends)
	signal.Stop(s.pipes)
	s.stop(context.Canceled)
	s.done.Wait()
}

// turn runs one turn to its end, which a signal can hasten but not skip: it always ends in the log. leave says that the
// user wants to be asked nothing more.
func (x *asking) turn(ctx context.Context, next request) (r agent.Report, leave bool, err error) {
	t, start := x.reserve(next)
	x.screen.begin(t.ID(), func() { t.Stop(agent.ErrClientGone) })
	if x.keys != nil {
		defer x.keys.silence()()
	}
	var watching sync.WaitGroup
	watching.Go(func() { leave = x.stopOnSignal(t) })
	r, err = t.Run(context.WithoutCancel(ctx), start)
	watching.Wait()
	_ = x.events.Drain(context.WithoutCancel(ctx)) // what was said is on the screen before how it ended is
	x.screen.finish()
	return r, leave, err
}

func (x *asking) reserve(next request) (*agent.Turn, agent.Start) {
	start := agent.Start{Model: x.app.flagModel}
	if next.retry {
		start.Retries = x.session.LastTurn()
		return x.agent.ReserveRetry(start.Retries), start
	}
	start.Prompt, start.Redirects = []transcript.PromptPart{{Type: "text", Text: next.prompt}}, next.redirects
	return x.agent.Reserve(x.session.ID()), start
}

// stopOnSignal stops the turn on a signal, and returns when it has ended.
func (x *asking) stopOnSignal(t *agent.Turn) (leave bool) {
	ended := x.signals.ctx.Done()
	var first time.Time
	for {
		select {
		case <-x.signals.interrupts:
			leave = leave || !first.IsZero() && time.Since(first) < twice
			first = time.Now()
			t.Stop(agent.ErrStopped)
			if leave { // no check of the stopped answer is waited for
				t.Stop(agent.ErrClientGone)
			}
		case <-ended:
			ended, leave = nil, true
			t.Stop(agent.ErrShutdown)
		case <-t.Done():
			return leave
		}
	}
}

// conclude tells how a turn ended, when it did not just end. What became of its tools the screen has shown.
func (x *asking) conclude(r agent.Report) {
	if r.Outcome == transcript.TurnCompleted {
		return
	}
	st := x.screen.note.style
	for _, w := range r.Withheld {
		x.screen.say(st.bad(withheldBy(w)))
	}
	if r.Outcome == transcript.TurnFailed && len(r.Withheld) > 0 {
		x.screen.say("the model will not see this answer; it is kept in the transcript: fermata transcript " + string(r.Session))
		if r.Cause == transcript.Unverified {
			x.screen.say("to run again what gave no verdict: fermata recheck " + string(r.Turn))
		}
		return
	}
	if r.Outcome == transcript.TurnStopped {
		x.screen.say(st.bold(x.kept(r)))
		return
	}
	text := "the turn failed"
	if r.Error != "" {
		text += ": " + oneLine(r.Error, 0)
	}
	x.screen.say(st.bad(text))
	if text, reasoning := x.screen.shown(); text+reasoning != "" {
		x.screen.say("what was said is kept as an attempt, which the model will not see unless you keep it: fermata keep " + string(r.Session))
	}
}

// because puts the cause of a receipt (S8) into words.
func because(cause string) string {
	switch cause {
	case transcript.CausePermissionDenied:
		return " (permission denied)"
	case transcript.CauseTurnFailed:
		return " (the turn failed)"
	case transcript.CauseDaemonDied:
		return " (fermata ended)"
	}
	return "" // that the user stopped it is said above
}

// kept says what a stop kept.
func (x *asking) kept(r agent.Report) string {
	switch {
	case r.Silent:
		return "Stopped before anything was said"
	case r.Kept == nil:
		return "Stopped here"
	}
	what := plural(r.Kept.Words, "word")
	if r.Kept.Words == 0 {
		what = fmt.Sprintf("%d bytes of reasoning", r.Kept.Bytes)
	}
	return "Stopped here" + x.screen.note.style.between() + what + " kept"
}

// laneLines is how much of the partial answer the lane repeats.
const laneLines = 8

// lane is the redirect lane (D1): under its label, Stopped here, the partial answer, dimmed, over an input. It returns
// false when the user leaves it all as it was. After a silent stop the input holds the original prompt (S6).
func (x *asking) lane(r agent.Report) (string, bool) {
	st := x.screen.note.style
	prompt, prefill := "", ""
	for _, p := range r.Prompt {
		if p.Type == "text" {
			prompt = p.Text
		}
	}
	question := "What should it do instead?"
	if r.Silent {
		question, prefill = "Edit the question, or leave it:", prompt
	} else {
		partial, reasoning := x.screen.shown()
		if strings.TrimSpace(partial) == "" {
			partial = reasoning
		}
		width, _, err := term.GetSize(int(x.app.out.Fd()))
		if err != nil {
			width = 80
		}
		x.screen.say(st.dim(quoted(partial, width-2, st)))
	}
	x.screen.say(st.bold(question) + st.dim("  Enter sends"+st.between()+"Escape leaves it as it is"))
	line, err := x.keys.line(x.signals.ctx, "> ", prefill, prompt)
	if err != nil || strings.TrimSpace(line) == "" {
		x.screen.say(st.dim("Left as it is. Go on later with: fermata ask --session " + string(r.Session)))
		return "", false
	}
	return line, true
}

// quoted is the end of a text as a block of lines of at most width columns, with a bar before each.
func quoted(text string, width int, st style) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(printable(text)), "\n") {
		lines = append(lines, wrapped(strings.ReplaceAll(line, "\t", "    "), max(width, 20))...)
	}
	if len(lines) > laneLines {
		lines = append([]string{st.ellipsis()}, lines[len(lines)-laneLines:]...)
	}
	for i, l := range lines {
		lines[i] = st.bar() + l
	}
	return strings.Join(lines, "\n")
}

// wrapped cuts a line at blanks, or where there is none at the width in columns.
func wrapped(line string, width int) []string {
	var lines []string
	rest := []rune(line)
	for {
		cut, blank := fitting(rest, width)
		if cut == len(rest) {
			return append(lines, string(rest))
		}
		if blank > 0 {
			cut = blank
		}
		lines = append(lines, string(rest[:cut]))
		rest = rest[cut:]
		if rest[0] == ' ' {
			rest = rest[1:]
		}
	}
}

// fitting is how many characters of a text fit in a width, at least one, and where the last blank is that can end them; 0 for none.
func fitting(text []rune, width int) (n, blank int) {
	columns := 0
	for i, r := range text {
		if r == ' ' {
			blank = i
		}
		if columns += runewidth.RuneWidth(r); columns > width && i > 0 {
			return i, blank
		}
	}
	return len(text), blank
}

// Overlay implements [agent.Client]: a terminal has no open documents.
func (x *asking) Overlay(string) workspace.Overlay { return nil }

func indented(text string) string {
	return "    " + strings.ReplaceAll(printable(strings.TrimRight(text, "\n")), "\n", "\n    ")
}
