package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// brood is what this process runs. It is the package's one state, since it mirrors one of the kernel's that a process has
// once: who its children are. From the first program on, the kernel makes this process the parent of each process of a
// program whose own parent has died (PR_SET_CHILD_SUBREAPER). So none gets away by forking twice, and each is to be
// collected here when it is dead.
var brood struct {
	adopt sync.Once

	mu   sync.Mutex
	runs []*group // programs that were started and not yet collected
}

// start starts a program as one of the brood. It holds the lock meanwhile: nobody takes the child for an orphan.
func (g *group) start(cmd *exec.Cmd) error {
	brood.adopt.Do(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
	brood.mu.Lock()
	defer brood.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	g.id = cmd.Process.Pid
	if p, ok := readProc(g.id); ok {
		g.begun = p.begun
	}
	brood.runs = append(brood.runs, g)
	return nil
}

// close takes a program that was collected out of the brood.
func (g *group) close() {
	brood.mu.Lock()
	defer brood.mu.Unlock()
	for i, r := range brood.runs {
		if r == g {
			brood.runs = append(brood.runs[:i], brood.runs[i+1:]...)
			return
		}
	}
}

// endStrays kills what is left of a program outside its group, until there is nothing.
func (g *group) endStrays() {
	for limit := time.Now().Add(reapTime); ; {
		strays, settled := g.strays()
		if settled || time.Now().After(limit) {
			return
		}
		for _, p := range strays {
			p.kill(limit)
		}
	}
}

// strays are the living processes that a program has left behind: those of its group and its session, those that carry
// its tag in their environment, adopted ones that can be nobody else's, and the descendants of all of these. An adopted
// one without a tag, because it has cleared its environment, can be that of any program that ran when it began: the last
// of these to end takes it. What is dead is collected on the way. settled reports that there is none: since the process
// table is not read in one moment, one that has just died can have left another one that was not there yet.
func (g *group) strays() (strays []proc, settled bool) {
	brood.mu.Lock()
	defer brood.mu.Unlock()
	syscall.ForkLock.RLock() // no child of ours is between its fork and its exec, where it looks like us
	defer syscall.ForkLock.RUnlock()
	all := readProcs()
	self := all[os.Getpid()]
	ours := map[int]bool{}
	for pid, p := range all {
		switch {
		case p.begun < g.begun:
			collect(p, self) // whoever left it
		case pid == self.pid || pid == g.id && p.dead:
		case p.group == g.id || p.session == g.id || !p.dead && p.tagged(g.tag):
			ours[pid] = true
		case adopted(p, self):
			ours[pid] = p.dead || g.alone(p)
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if !ours[pid] && ours[p.parent] {
				ours[pid], grown = true, true
			}
		}
	}
	settled = true
	for pid, is := range ours {
		if !is {
			continue
		}
		settled = false
		if p := all[pid]; !p.dead {
			strays = append(strays, p)
		} else {
			collect(p, self)
		}
	}
	return strays, settled
}

// alone reports whether an adopted process can be of no running program but g. That of a service, which goes on for long, is
// known by its tag.
func (g *group) alone(p proc) bool {
	for _, r := range brood.runs {
		if r != g && (p.tagged(r.tag) || p.session == r.id || r.begun <= p.begun && (g.serves || !r.serves)) {
			return false
		}
	}
	return true
}

// adopted reports whether a child of this process was started by another one. What this process starts otherwise than by
// start stays in its own session.
func adopted(p, self proc) bool {
	if p.parent != self.pid || p.session == self.session {
		return false
	}
	for _, r := range brood.runs {
		if r.id == p.pid {
			return false
		}
	}
	return true
}

// collect takes a dead orphan out of the process table.
func collect(p, self proc) {
	if p.dead && adopted(p, self) {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
	}
}

// collectOrphans takes the orphans that have died out of the process table.
func collectOrphans() {
	brood.mu.Lock()
	defer brood.mu.Unlock()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	all := readProcs()
	for _, p := range all {
		collect(p, all[os.Getpid()])
	}
}

// proc is a line of the process table.
type proc struct {
	pid, parent, group, session int
	dead                        bool  // waits to be collected
	begun                       int64 // when it was forked, in the kernel's ticks: with pid it names a process for good
}

func readProcs() map[int]proc {
	all := map[int]proc{}
	dir, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			if p, ok := readProc(pid); ok {
				all[pid] = p
			}
		}
	}
	return all
}

func readProc(pid int) (proc, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, false // collected by now
	}
	// Behind the name, which can hold anything: state, parent, group, session, and as the 20th the time of its beginning.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return proc{}, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(string(f[i])); return v }
	return proc{pid: pid, dead: bytes.ContainsAny(f[0], "ZX"), parent: n(1), group: n(2), session: n(3), begun: int64(n(19))}, true
}

// tagged reports whether a tag is in the environment that a process was started with. That of other users is not readable.
func (p proc) tagged(tag string) bool {
	name := fmt.Sprintf("/proc/%d/environ", p.pid)
	env, err := os.ReadFile(name)
	if err == nil && len(env) == 0 {
		time.Sleep(2 * time.Millisecond) // it is empty too in the middle of an exec
		env, err = os.ReadFile(name)
	}
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == tag {
			return true
		}
	}
	return false
}

// program is the path of the program that a process runs, "" when that cannot be told.
func (p proc) program() string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid))
	return path
}

// signal sends a signal to this very process, and not to another one that got its number.
func (p proc) signal(s unix.Signal, then func(fd int)) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readProc(p.pid); !ok || now.begun != p.begun {
		return
	}
	if unix.PidfdSendSignal(fd, s, nil, 0) == nil && then != nil {
		then(fd)
	}
}

// kill waits until the process is dead, not longer than limit.
func (p proc) kill(limit time.Time) {
	p.signal(unix.SIGKILL, func(fd int) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(1, int(time.Until(limit).Milliseconds())))
	})
}
