// Package process runs programs for tools and checks. It promises that when a run is over, no process of it is alive (S14):
// neither its children nor those that put themselves in the background, in another group or, where the system tells, in
// another session. It decides nothing about what is run, and knows no workspace.
//
// A [Program] is run by one goroutine; several programs may run at once. Cancelling the context of a run ends its processes:
// they are asked first, and after [Grace] they are killed. A [Service] goes on until it is closed. A [Sandbox] confines what
// is run.
//
// How much is found differs. On Linux this process adopts what loses its parent, so that nothing gets away, however often it
// forks; when this process itself is killed, the first process of each program is too, and all of a sandbox. On Windows the
// programs are jobs that end with this process. On macOS and other systems a program's process group is ended: what has put
// itself in another one, as daemons do, is not found.
package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Grace is the time from asking processes to end to ending them.
const Grace = 500 * time.Millisecond

const (
	drainTime = time.Second     // for output that is still in the pipe when all processes are gone
	reapTime  = 2 * time.Second // for a killed process to be gone
)

// Program is what is run. Cmd has its path, arguments and folder (absolute); all else about it is set by Run.
type Program struct {
	Cmd     *exec.Cmd
	Secrets []string // names of environment variables that it is not given, besides those whose name tells
	Input   []byte   // nil: none
	Timeout time.Duration
	Sandbox *Sandbox // nil: none
	// Output reads what the program says, on stdout and stderr as one, until the reader ends or is closed. It is called
	// in a goroutine that ends before Run returns, except where a pipe cannot be closed under its reader.
	Output func(io.Reader)
}

// Why says why a program is over.
type Why int

// The reasons.
const (
	ByItself  Why = iota
	ByStop        // the context ended
	ByTimeout     // Timeout was over
)

// End is how a program ended.
type End struct {
	Why    Why
	Gone   bool   // false: it could not be ended, and Exit and Signal say nothing
	Exit   int    // as a shell gives it: 128 + n when signal n ended it
	Signal string // the name of the signal that ended it, if one did
	Took   time.Duration
	Undone string // what the sandbox had to take back of what it did, in a few words
}

// Run starts the program and returns when it and all that it started are gone, or cannot be ended. The error says why it
// could not be started. Invariant: no process of it is alive afterwards (S14). Tested by TestNoProcessIsLeft in tools.
func (p *Program) Run(ctx context.Context) (End, error) {
	g := newGroup(p.Cmd, p.Secrets)
	made, err := p.Sandbox.confine(p.Cmd, g)
	if err != nil {
		return End{}, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return End{}, fmt.Errorf("no pipe for the output: %w", err)
	}
	defer read.Close()
	var in, feed *os.File // nil: the null device
	if p.Input != nil {
		if in, feed, err = os.Pipe(); err != nil {
			write.Close()
			return End{}, fmt.Errorf("no pipe for the input: %w", err)
		}
		p.Cmd.Stdin = in
	}
	p.Cmd.Stdout, p.Cmd.Stderr = write, write // a file: Wait does not wait for whoever else holds it
	begun := time.Now()
	child, err := launch(p.Cmd, g)
	write.Close()
	if in != nil {
		in.Close()
	}
	if err != nil {
		if feed != nil {
			feed.Close()
		}
		return End{}, err
	}
	defer g.close()

	copied := make(chan struct{})
	go func() { // ends when no process holds the pipe any more, or when it is closed below
		defer close(copied)
		p.Output(read)
	}()
	fed := make(chan struct{})
	go func() { // ends when the program has read it all, or reads no more; it is closed below
		defer close(fed)
		if feed != nil {
			_, _ = feed.Write(p.Input) // a program need not read its input
			feed.Close()
		}
	}()

	var end End
	end.Why, end.Gone = p.wait(ctx, child.exited)
	g.end(Grace)
	if !end.Gone {
		select {
		case <-child.exited:
			end.Gone = true
		case <-time.After(reapTime):
		}
	}
	end.Took, end.Undone = time.Since(begun), undo(made)
	// A process outside the group may hold a pipe: what it would say or read is no part of this.
	over(copied, read)
	over(fed, feed)
	if end.Gone {
		end.Exit, end.Signal = exitStatus(p.Cmd.ProcessState)
	}
	return end, nil
}

// over waits for a pipe's goroutine to end, and closes the pipe under it when it does not.
func over(done <-chan struct{}, pipe *os.File) {
	select {
	case <-done:
		return
	case <-time.After(drainTime):
	}
	pipe.Close()
	select {
	case <-done:
	case <-time.After(drainTime): // only where a pipe cannot be closed under a reader
	}
}

// wait is over when the program has exited, the context has ended, or the time is up.
func (p *Program) wait(ctx context.Context, exited <-chan struct{}) (why Why, gone bool) {
	timer := time.NewTimer(p.Timeout)
	defer timer.Stop()
	tick := time.NewTicker(2 * time.Second) // a program may leave dead orphans without end
	defer tick.Stop()
	for waits := true; waits; {
		select {
		case <-exited:
			return ByItself, true
		case <-ctx.Done():
			why, waits = ByStop, false
		case <-timer.C:
			why, waits = ByTimeout, false
		case <-tick.C:
			collectOrphans()
		}
	}
	select {
	case <-exited: // at the same moment: it had ended by itself
		return ByItself, true
	default:
		return why, false
	}
}

// newGroup makes the group of a program that is to be started, and gives the program its environment.
func newGroup(cmd *exec.Cmd, secrets []string) *group {
	g := &group{tag: newTag()}
	cmd.Env = environ(os.Environ(), secrets, cmd.Dir, g.tag)
	return g
}

// child is a program that was launched. When exited is closed, it has ended and was collected, and err is what Wait gave.
type child struct {
	exited chan struct{}
	err    error
}

// launch starts a program in a session of its own. It is collected in a goroutine that keeps its thread: when that ended, the
// kernel would take it for the death of this process and kill the program.
func launch(cmd *exec.Cmd, g *group) (*child, error) {
	OwnGroup(cmd)
	started, c := make(chan error, 1), &child{exited: make(chan struct{})}
	go func() { // ends with the program
		defer close(c.exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.start(cmd)
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
	}()
	return c, <-started
}
