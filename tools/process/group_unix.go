//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Shell is a text run by the system's own shell, whatever PATH says.
func Shell(text string) (*exec.Cmd, error) { return exec.Command("/bin/sh", "-c", text), nil }

// OwnGroup gives cmd a session, and so a process group, of its own: signals reach all of it and no one else, and no
// terminal is left to it to ask for a password.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	diesWithUs(cmd)
}

// end asks the group to end, kills what is left of it after grace, and then kills descendants that left the group. It
// returns at once when there is nothing left to end. The caller must be waiting for the group's first process meanwhile.
func (g *group) end(grace time.Duration) {
	if g.ask() && !g.gone(grace) {
		g.signal(syscall.SIGKILL)
		g.gone(reapTime)
	}
	g.endStrays()
}

// signal reports whether there was a process to get it.
func (g *group) signal(s syscall.Signal) bool { return syscall.Kill(-g.id, s) == nil }

// gone waits until no process of the group runs, at most for d. One that is dead and only not collected yet does not
// count.
func (g *group) gone(d time.Duration) bool {
	end := time.Now().Add(d)
	for pause := time.Millisecond; g.signal(0) && !g.allDead(); pause = min(2*pause, 32*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// exitStatus is the status as a shell gives it, and the name of the signal that ended the process, if one did.
func exitStatus(ps *os.ProcessState) (code int, signal string) {
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal().String()
	}
	return ps.ExitCode(), ""
}
