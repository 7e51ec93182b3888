package process

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asDaemon has the test binary play a daemon that runs a program: its value is the command.
const asDaemon = "PROCESS_TEST_DAEMON"

func TestMain(m *testing.M) {
	if command := os.Getenv(asDaemon); command != "" {
		cmd, _ := Shell(command)
		p := Program{Cmd: cmd, Timeout: time.Minute, Output: func(r io.Reader) { _, _ = io.Copy(os.Stdout, r) }}
		_, _ = p.Run(context.Background())
		return
	}
	if address := os.Getenv(asDialer); address != "" {
		dial(address)
		return
	}
	os.Exit(m.Run())
}

// shell runs a command in dir and gives how it ended and what it said.
func shell(t *testing.T, ctx context.Context, dir, command string) (End, string) {
	t.Helper()
	cmd, err := Shell(command)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = dir
	var said strings.Builder
	p := Program{Cmd: cmd, Timeout: time.Minute, Output: func(r io.Reader) { _, _ = io.Copy(&said, r) }}
	end, err := p.Run(ctx)
	if err != nil {
		t.Error(err)
	}
	return end, said.String()
}

// await waits for a process that wrote its id to a file, and gives it.
func await(t *testing.T, name string) proc {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		text, err := os.ReadFile(name)
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && strings.HasSuffix(string(text), "\n") {
			p, _ := readProc(pid)
			return p
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s was not written", name)
		}
	}
}

func (p proc) alive() bool {
	now, ok := readProc(p.pid)
	return ok && now.begun == p.begun && !now.dead
}

// gone waits until a process is dead.
func (p proc) gone(t *testing.T) {
	t.Helper()
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if p.alive() {
		if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000); n == 0 {
			t.Errorf("process %d is alive", p.pid)
		}
	}
}

// zombies are the dead children of this process.
func zombies() (n int) {
	all := readProcs()
	for _, p := range all {
		if p.dead && p.parent == os.Getpid() {
			n++
		}
	}
	return n
}

// guards S14
func TestNothingOfAProgramGetsAway(t *testing.T) {
	const daemon = `sh -c 'echo $$ >a; exec sleep 60'`
	for name, command := range map[string]string{
		"a background process":                   daemon + " &",
		"under nohup":                            "nohup " + daemon + " >/dev/null 2>&1 &",
		"forked twice":                           "(" + daemon + " &)",
		"in a session of its own":                "setsid " + daemon + " &",
		"a daemon":                               "(setsid sh -c '" + `(echo $$ >b; sh -c "echo \$\$ >a; exec sleep 60") & ` + "' </dev/null >/dev/null 2>&1 &)",
		"a daemon without our environment":       "(env -i setsid " + daemon + " </dev/null >/dev/null 2>&1 &)",
		"its child in yet another session":       `(env -i setsid sh -c 'setsid sh -c "echo \$\$ >a; exec sleep 60" & sleep 60' >/dev/null 2>&1 &)`,
		"one that ignores all signals":           `(env -i setsid sh -c 'trap "" HUP INT TERM; echo $$ >a; while :; do sleep 60; done' >/dev/null 2>&1 &)`,
		"one that forks as long as it is let to": `(env -i setsid sh -c 'echo $$ >a; while :; do (sleep 60 &); sleep 0.001; done' >/dev/null 2>&1 &)`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			begun := time.Now()
			end, said := shell(t, t.Context(), dir, command+"\nwhile ! test -s a; do sleep 0.01; done; echo done")
			if end.Why != ByItself || end.Exit != 0 || said != "done\n" || time.Since(begun) > 8*time.Second {
				t.Errorf("%+v after %v: %s", end, time.Since(begun), said)
			}
			text, err := os.ReadFile(filepath.Join(dir, "a"))
			if err != nil {
				t.Fatal(err)
			}
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			if p, ok := readProc(pid); ok && !p.dead {
				t.Errorf("process %d is alive", pid)
			}
			all := readProcs()
			for _, p := range all {
				if adopted(p, all[os.Getpid()]) {
					t.Errorf("process %d (%s) is left, dead: %v", p.pid, p.program(), p.dead)
				}
			}
		})
	}
}

// guards S14
func TestAProgramThatEndsTakesNoProcessOfAnother(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan End, 1)
	go func() {
		end, _ := shell(t, ctx, dir, "(env -i setsid sh -c 'echo $$ >a; exec sleep 60' >/dev/null 2>&1 &); sleep 60")
		ended <- end
	}()
	stray := await(t, filepath.Join(dir, "a"))
	if end, said := shell(t, t.Context(), dir, "echo other"); end.Exit != 0 || said != "other\n" {
		t.Errorf("%+v: %s", end, said)
	}
	if !stray.alive() {
		t.Error("a program that ended took the process of one that runs")
	}
	stop()
	if end := <-ended; end.Why != ByStop {
		t.Errorf("%+v", end)
	}
	if stray.alive() {
		t.Error("the process is alive")
	}
}

func TestTheDeadOfAProgramAreCollectedWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan End, 1)
	go func() {
		end, _ := shell(t, ctx, dir, "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done; sleep 0.2; echo $$ >a; sleep 60")
		ended <- end
	}()
	await(t, filepath.Join(dir, "a"))
	if n := zombies(); n < 8 {
		t.Errorf("%d orphans were adopted, want 8", n) // or else there is nothing to see here
	}
	collectOrphans()
	if n := zombies(); n != 0 {
		t.Errorf("%d dead orphans are left", n)
	}
	stop()
	<-ended
	if n := zombies(); n != 0 {
		t.Errorf("%d dead orphans are left at the end", n)
	}
}

// guards S14
func TestAProgramDiesWithADaemonThatIsKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	daemon := exec.Command(exe)
	daemon.Dir = dir
	daemon.Env = append(os.Environ(), asDaemon+"=echo $$ >a; echo begun; exec sleep 60")
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	shell := await(t, filepath.Join(dir, "a"))
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	shell.gone(t)
}

// guards S14
func TestAServiceEndsWithAllThatItStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		command  string
		patience time.Duration
		exit     int
		signal   string
	}{
		"one that ends when its input does": {"(setsid sh -c 'echo $$ >a; exec sleep 60' &); echo ready >&2; cat; exit 3", 20 * time.Second, 3, ""},
		"one that does not":                 {"echo $$ >a; echo ready >&2; exec sleep 60", 10 * time.Millisecond, 128 + 15, "terminated"},
		"one that ignores signals":          {"trap '' TERM; echo $$ >a; echo ready >&2; while :; do sleep 1; done", 10 * time.Millisecond, 128 + 9, "killed"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, err := Shell(tt.command)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Dir = t.TempDir()
			ready := make(chan string, 1)
			s, err := Serve(cmd, nil, nil, func(r io.Reader) {
				lines := bufio.NewScanner(r)
				for lines.Scan() {
					select {
					case ready <- lines.Text():
					default:
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if line := <-ready; line != "ready" {
				t.Errorf("it said %q", line)
			}
			p := await(t, filepath.Join(cmd.Dir, "a"))
			if end := s.Close(tt.patience); end.Exit != tt.exit || end.Signal != tt.signal || end != s.Close(0) {
				t.Errorf("%+v, then %+v", end, s.Close(0))
			}
			if p.alive() {
				t.Errorf("process %d is alive", p.pid)
			}
		})
	}
}
