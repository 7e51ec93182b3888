package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Output runs a program to its end and gives what it says on stdout. Its environment is cmd's, and what ends it is cmd's
// context: it is no program that leaves something behind.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	g := &group{tag: newTag()}
	c, err := launch(cmd, g)
	if err != nil {
		return nil, err
	}
	<-c.exited
	g.close()
	return out.Bytes(), c.err
}

// Service is a program that goes on until it is closed or ends by itself. Stdin and Stdout are its pipes: whoever reads must
// read on, or it waits. One goroutine may read while another one writes.
type Service struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Exited <-chan struct{} // closed when its first process has ended

	cmd    *exec.Cmd
	group  *group
	read   *os.File
	logged chan struct{} // closed when log has returned
	errs   *os.File
	begun  time.Time
	once   sync.Once
	end    End
}

// Serve starts a service. Its environment is this process's without secrets, as a [Program]'s, and what extra adds
// ("NAME=value"). log reads what it says on stderr until the reader ends or is closed.
func Serve(cmd *exec.Cmd, secrets, extra []string, log func(io.Reader)) (*Service, error) {
	var pipes []*os.File
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err == nil {
			pipes = append(pipes, r, w)
		}
		return r, w
	}
	in, feed := pipe()
	read, out := pipe()
	errs, said := pipe()
	if len(pipes) < 6 {
		for _, p := range pipes {
			p.Close()
		}
		return nil, fmt.Errorf("no pipes for the program: too many open files")
	}
	g := newGroup(cmd, secrets)
	g.serves = true
	cmd.Env = append(cmd.Env, extra...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	c, err := launch(cmd, g)
	in.Close()
	out.Close()
	said.Close()
	if err != nil {
		feed.Close()
		read.Close()
		errs.Close()
		return nil, err
	}
	s := &Service{Stdin: feed, Stdout: read, Exited: c.exited, cmd: cmd, group: g, read: read, errs: errs, logged: make(chan struct{}), begun: time.Now()}
	go func() { // ends when no process holds the pipe any more, or when Close closes it
		defer close(s.logged)
		log(errs)
	}()
	return s, nil
}

// Close closes the service's input, which asks it to end, and after patience ends what is left, its descendants too. Later
// calls wait for the first and say the same.
func (s *Service) Close(patience time.Duration) End {
	s.once.Do(func() {
		s.Stdin.Close()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-s.Exited:
		case <-timer.C:
		}
		s.group.end(Grace)
		select {
		case <-s.Exited:
			s.end.Gone = true
			s.end.Exit, s.end.Signal = exitStatus(s.cmd.ProcessState)
		case <-time.After(reapTime):
		}
		s.end.Took = time.Since(s.begun)
		over(s.logged, s.errs)
		s.read.Close()
		s.group.close()
	})
	return s.end
}
