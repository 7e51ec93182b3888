package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// Sandbox confines programs: they see the file system as it is but can write only below the folder that they are started in,
// to a cache of that folder's own and to a private /tmp; they have no network, reach no other process, and find places where
// keys are kept empty. It exists on Linux, where bubblewrap is installed and may make namespaces. It may be used from any
// goroutine; nil confines nothing.
type Sandbox struct {
	Required bool     // what cannot be confined must not be run; false: it is run as it is
	Hide     []string // absolute paths that are found empty besides the usual places of keys
	Caches   string   // absolute path of the folder that caches are made in; "" for none: programs then have to make do without

	found   sync.Once
	program string // bubblewrap's absolute path, links resolved
	err     error  // why there is none
}

// What the sandbox does and why something may have failed by it, for people and models.
const (
	Confinement = "only the workspace can be written, no network, no keys"
	Effect      = "it ran in a sandbox: only the workspace and /tmp can be written, there is no network, and folders with keys are empty"
)

// Ready reports why a program cannot be confined to a folder, and what to do about it; nil: it can.
func (s *Sandbox) Ready(root string) error {
	s.found.Do(func() { s.program, s.err = findBubblewrap() })
	if s.err != nil {
		return s.err
	}
	return fits(s.program, root)
}

// For is the sandbox that a program in a folder is run in: nil where there is none and none is required. The error says why
// the program must not be run.
func (s *Sandbox) For(root string) (*Sandbox, error) {
	if s == nil {
		return nil, nil
	}
	err := s.Ready(root)
	switch {
	case err == nil:
		return s, nil
	case s.Required:
		return nil, err
	}
	return nil, nil
}

// Says is one line for people about what confines a program in a folder, "" where nothing was meant to.
func (s *Sandbox) Says(root string) string {
	if s == nil {
		return ""
	}
	err := s.Ready(root)
	switch {
	case err == nil:
		return Confinement
	case s.Required:
		return "refused: " + err.Error()
	}
	return "none: " + err.Error()
}

// confine has cmd run in the sandbox, if there is one. When all its processes are gone, made is the path of something that it must
// not leave, if it is there; "" where there is nothing to look for.
func (s *Sandbox) confine(cmd *exec.Cmd, g *group) (made string, err error) {
	if s == nil {
		return "", nil
	}
	if err := s.Ready(cmd.Dir); err != nil {
		return "", err
	}
	arguments, err := s.arguments(cmd.Dir)
	if err != nil {
		return "", err
	}
	made = redirection(cmd.Dir)
	cmd.Args = append(append([]string{s.program}, arguments...), append([]string{"--", cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path, g.box = s.program, s.program
	return made, nil
}

// undo removes what a command must not leave, and says so; "" when it is not there.
func undo(made string) string {
	if _, err := os.Lstat(made); made == "" || err != nil {
		return ""
	}
	if err := os.RemoveAll(made); err != nil {
		return fmt.Sprintf("it made %s, from which git would run programs, and that could not be removed: %v", made, err)
	}
	return fmt.Sprintf("it made %s, from which git would run programs: that was removed", made)
}
