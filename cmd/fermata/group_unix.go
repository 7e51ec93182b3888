//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program into a process group of its own, all of which is killed when its context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
