package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// endTagged kills the processes that carry tag in their environment: those that a command put in a session of their own.
// A process that also cleared its environment is not found. A descriptor of the process is taken before its environment
// is read, so that the signal cannot reach another one that got its number.
func endTagged(tag string) {
	for range 10 { // a killed one may have forked just before
		if !endTaggedOnce(tag) {
			return
		}
	}
}

func endTaggedOnce(tag string) (found bool) {
	for _, pid := range pids() {
		if pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // fails for other users' processes
		if err == nil && hasVariable(env, tag) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			found = true
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(reapTime.Milliseconds())) // until it is dead
		}
		unix.Close(fd)
	}
	return found
}

// allDead reports whether all processes of a group are dead and only wait to be collected by their parents.
func allDead(group int) bool {
	for _, pid := range pids() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // collected by now
		}
		// after the name, which can hold anything: state, parent, group
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && !bytes.ContainsAny(fields[0], "ZX") {
			return false
		}
	}
	return true
}

func pids() (ids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

func hasVariable(environ []byte, kv string) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if string(v) == kv {
			return true
		}
	}
	return false
}
