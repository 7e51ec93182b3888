package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"fermata/tools/process"
	"fermata/tools/workspace"
)

// Times of run, in seconds.
const (
	runTimeout    = 120 // when the model names none
	runTimeoutMax = 600
)

//go:embed run.md
var runDescription string

type runArgs struct {
	Command string `json:"command"`
	Timeout *int   `json:"timeout"`
}

func runCommand() Tool {
	return definition[runArgs]{
		name: "run", description: runDescription,
		schema:   `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"maximum":600,"description":"seconds; 120 if left out"}},"required":["command"]}`,
		required: []string{"command"},
		example:  `{"command": "go test ./...", "timeout": 300}`,
		summary:  func(a runArgs) string { return a.Command },
		command:  func(a runArgs) string { return a.Command },
		run: func(ctx context.Context, env Env, a runArgs) Result {
			seconds := given(a.Timeout, runTimeout)
			switch {
			case strings.TrimSpace(a.Command) == "":
				return failf("run: the command is empty")
			case strings.ContainsRune(a.Command, 0):
				return failf("run: the command contains a NUL character; leave it out")
			case seconds < 1 || seconds > runTimeoutMax:
				return failf("run: timeout is %d; it must be from 1 to %d seconds", seconds, runTimeoutMax)
			}
			c := command{text: a.Command, timeout: time.Duration(seconds) * time.Second, sink: newSink(env.Progress)}
			return c.run(ctx, env)
		},
	}.tool()
}

// command is one run of the shell.
type command struct {
	text    string
	timeout time.Duration
	sink    *sink
	boxed   bool // it runs in a sandbox
}

// run starts the shell and returns when it and all that it started are gone, or cannot be ended (S14).
func (c *command) run(ctx context.Context, env Env) Result {
	shell, err := process.Shell(c.text)
	if err == nil {
		err = trusted(env.Workspace, shell.Path)
	}
	if err != nil {
		return failf("run: %v", err)
	}
	shell.Dir = env.Workspace.Root()
	box, err := env.Sandbox.For(shell.Dir)
	if err != nil {
		return failf("run: %v", err)
	}
	c.boxed = box != nil
	p := process.Program{Cmd: shell, Secrets: env.Secrets, Timeout: c.timeout, Sandbox: box, Output: c.sink.copy}
	end, err := p.Run(ctx)
	c.sink.close()
	if err != nil {
		return failf("run: the shell cannot be started: %v", err)
	}
	return c.result(end)
}

// result puts together what the model reads: how it ended, unless it simply succeeded, then the output.
func (c *command) result(end process.End) Result {
	out, full := c.sink.output()
	res := Result{State: Done, Full: full}
	status := "the shell could not be ended"
	if end.Gone {
		res.Exit = new(end.Exit)
		if status = fmt.Sprintf("exit status %d", end.Exit); end.Signal != "" {
			status = "ended by signal: " + end.Signal
		}
	}
	took := end.Took.Round(100 * time.Millisecond)
	var head string
	switch {
	case end.Why == process.ByStop:
		res.State = Stopped
		head = fmt.Sprintf("stopped after %v (%s); the output so far:", took, status)
	case end.Why == process.ByTimeout:
		res.State = Failed
		head = fmt.Sprintf("timed out after %v (%s); the output so far:", took, status)
	case *res.Exit != 0:
		head = status
	}
	if out == "" {
		out = "(no output)"
	}
	res.Output = out
	if head != "" {
		res.Output = head + "\n" + out
	}
	if c.boxed && head != "" && looksConfined(out) {
		res.Output += "\n(" + process.Effect + ")"
	}
	if end.Undone != "" {
		res.Output += "\n(" + end.Undone + ")"
	}
	return res
}

// looksConfined reports whether a command that failed says what a sandbox makes programs say.
func looksConfined(out string) bool {
	out = strings.ToLower(out)
	return slices.ContainsFunc([]string{
		"read-only file system", "operation not permitted", "permission denied", "network is unreachable", "could not resolve", "name resolution",
		"name or service not known", "no such host", "getaddrinfo", "connection refused", "dial tcp", "unable to connect",
	}, func(sign string) bool { return strings.Contains(out, sign) })
}

// trusted refuses a program that a repository could have put there.
func trusted(w *workspace.Workspace, path string) error {
	if w.Contains(path) {
		return errors.New("the shell " + workspace.Show(path) + " lies in the workspace and is not run")
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("there is no shell: %w", err)
	}
	return nil
}
