package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"fermata/tools/workspace"
)

// Times and bounds of run.
const (
	runTimeout    = 120 // seconds, when the model names no timeout
	runTimeoutMax = 600
	commandGrace  = 500 * time.Millisecond // from asking processes to end to ending them
	drainTime     = time.Second            // for output that is still in the pipe when all processes are gone
	reapTime      = 2 * time.Second        // for a killed process to be gone
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
		target:   func(a runArgs) (string, string) { return a.Command, "" },
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
}

// ending says why a command is over.
type ending int

const (
	byItself ending = iota
	byStop
	byTimeout
)

// run starts the shell and returns when it and all that it started are gone, or cannot be ended. Invariant: no process
// of the command is alive afterwards (S14). Tested by TestNoProcessIsLeft.
func (c *command) run(ctx context.Context, env Env) Result {
	shell, err := shellCommand(env.Workspace, c.text)
	if err != nil {
		return failf("run: %v", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return failf("run: no pipe for the output: %v", err)
	}
	defer read.Close()
	tag := newTag()
	shell.Dir = env.Workspace.Root()
	shell.Env = commandEnv(os.Environ(), env.Secrets, shell.Dir, tag)
	shell.Stdout, shell.Stderr = write, write // a file: Wait does not wait for whoever else holds it
	ownGroup(shell)
	begun := time.Now()
	err = shell.Start()
	write.Close()
	if err != nil {
		return failf("run: the shell cannot be started: %v", err)
	}
	group := groupOf(shell.Process, tag)
	defer group.close()

	copied := make(chan struct{})
	go func() { // ends when no process holds the pipe any more, or when it is closed below
		defer close(copied)
		c.sink.copy(read)
	}()
	exited := make(chan error, 1)
	go func() { exited <- shell.Wait() }() // ends when the shell does, which group.end sees to

	how, isDead := c.wait(ctx, exited)
	group.end(commandGrace)
	if !isDead {
		select {
		case <-exited:
			isDead = true
		case <-time.After(reapTime):
		}
	}
	took := time.Since(begun)
	select {
	case <-copied:
	case <-time.After(drainTime):
		read.Close() // a process outside the group holds it: what it would say is no part of this
		select {
		case <-copied:
		case <-time.After(drainTime): // only where a pipe cannot be closed under a reader
		}
	}
	c.sink.close()
	return c.result(how, isDead, shell.ProcessState, took)
}

// wait is over when the shell has exited, the turn is stopped, or the time is up.
func (c *command) wait(ctx context.Context, exited <-chan error) (how ending, isDead bool) {
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-exited:
		return byItself, true
	case <-ctx.Done():
		how = byStop
	case <-timer.C:
		how = byTimeout
	}
	select {
	case <-exited: // at the same moment: it had ended by itself
		return byItself, true
	default:
		return how, false
	}
}

// result puts together what the model reads: how it ended, unless it simply succeeded, then the output.
func (c *command) result(how ending, isDead bool, ps *os.ProcessState, took time.Duration) Result {
	out, full := c.sink.output()
	res := Result{State: Done, Full: full}
	status := "the shell could not be ended"
	if isDead {
		code, signal := exitStatus(ps)
		res.Exit = new(code)
		if status = fmt.Sprintf("exit status %d", code); signal != "" {
			status = "ended by signal: " + signal
		}
	}
	took = took.Round(100 * time.Millisecond)
	var head string
	switch {
	case how == byStop:
		res.State = Stopped
		head = fmt.Sprintf("stopped after %v (%s); the output so far:", took, status)
	case how == byTimeout:
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
	return res
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
