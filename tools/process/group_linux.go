package process

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a program with its descendants.
type group struct {
	id     int // of its first process, of that one's group and of its session
	tag    string
	begun  int64  // as in proc
	box    string // the program that confines the others, "" for none
	serves bool   // it goes on beside others: what it leaves behind is known by name only
}

// diesWithUs has the program killed when this process dies by no will of its own. What it started then lives on, but in a
// sandbox.
func diesWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// ask asks all processes of the group to end, and reports whether there was one. The one that confines the others is not
// asked: it would take them with it at once.
func (g *group) ask() bool {
	if g.box == "" {
		return g.signal(syscall.SIGTERM)
	}
	asked := false
	strays, _ := g.strays()
	for _, p := range strays {
		if p.program() != g.box {
			p.signal(unix.SIGTERM, nil)
			asked = true
		}
	}
	return asked || g.signal(0)
}

// allDead reports whether all processes of the group are dead and only wait to be collected.
func (g *group) allDead() bool {
	all := readProcs()
	for _, p := range all {
		if p.group == g.id && !p.dead {
			return false
		}
	}
	return true
}
