//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// group is a program with its descendants, as far as they stay in its process group: nothing here tells of the others.
type group struct {
	id     int
	tag    string
	box    string
	serves bool
}

func (g *group) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err == nil {
		g.id = cmd.Process.Pid
	}
	return err
}

func (g *group) close() {}

func diesWithUs(*exec.Cmd) {}

func (g *group) ask() bool { return g.signal(syscall.SIGTERM) }

// allDead is not asked where a signal to a group of dead processes fails.
func (g *group) allDead() bool { return false }

func (g *group) endStrays() {}

func collectOrphans() {}
