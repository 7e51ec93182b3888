//go:build unix

package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunTellsHowACommandEnded(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	for name, tt := range map[string]struct {
		args  args
		state State
		want  string
		exit  int
	}{
		"success":         {args{"command": "cat f"}, Done, "x", 0},
		"both streams":    {args{"command": "echo a; echo b >&2; echo c"}, Done, "a\nb\nc", 0},
		"nothing to say":  {args{"command": "true"}, Done, "(no output)", 0},
		"exit status":     {args{"command": "echo no; exit 3"}, Done, "exit status 3\nno", 3},
		"no such command": {args{"command": "exec /nonexistent/x 2>/dev/null"}, Done, "exit status 127\n(no output)", 127},
		"a signal":        {args{"command": "kill -9 $$"}, Done, "ended by signal: killed\n(no output)", 137},
		"no input":        {args{"command": "cat; echo end"}, Done, "end", 0},
		"no terminal":     {args{"command": "(: </dev/tty) 2>/dev/null || echo none"}, Done, "none", 0},
		"in the root":     {args{"command": `test "$PWD" -ef . && test -f f && echo yes`}, Done, "yes", 0},
		"escapes":         {args{"command": `printf '\033[31mred\033[0m\000\377'`}, Done, "red\uFFFD\uFFFD", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run(t, t.Context(), "run", tt.args)
			if r.State != tt.state || r.Output != tt.want || r.Exit == nil || *r.Exit != tt.exit {
				t.Errorf("%s: %q, exit %v", r.State, r.Output, r.Exit)
			}
		})
	}
}

func TestRunIsBounded(t *testing.T) {
	b := newBench(t, "", nil)
	r := b.run(t, t.Context(), "run", args{"command": "echo first; yes | head -c 8000000; echo last"})
	if r.State != Done || len(r.Output) > sinkHead+sinkTail+100 || !strings.HasPrefix(r.Output, "first\ny\n") || !strings.HasSuffix(r.Output, "\nlast") {
		t.Errorf("%s: %d bytes", r.State, len(r.Output))
	}
	if len(r.Full) < sinkFull-10 || len(r.Full) > sinkFull+100 {
		t.Errorf("full has %d bytes", len(r.Full))
	}
}

func TestRunTimesOut(t *testing.T) {
	b := newBench(t, "", nil)
	r := b.run(t, t.Context(), "run", args{"command": "echo begun; sleep 60", "timeout": 1})
	if r.State != Failed || !strings.HasPrefix(r.Output, "timed out after ") || !strings.HasSuffix(r.Output, "begun") || *r.Exit != 143 {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

// guards S14
func TestOutputThatNeverEndsIsCutAndEnded(t *testing.T) {
	b := newBench(t, "", nil)
	r := b.run(t, t.Context(), "run", args{"command": "echo first; yes", "timeout": 1})
	if r.State != Failed || !strings.HasPrefix(r.Output, "timed out after ") || !strings.Contains(r.Output, "\nfirst\ny\n") || !strings.Contains(r.Output, " bytes left out …)\n") {
		t.Errorf("%s: %.200s", r.State, r.Output)
	}
	if len(r.Output) > sinkHead+sinkTail+200 || len(r.Full) < sinkHead+sinkTail || len(r.Full) > sinkFull+100 {
		t.Errorf("%d bytes, in full %d", len(r.Output), len(r.Full))
	}
}

// processes starts a command whose processes write their ids to files, and stops it when the last of them has.
type processes struct {
	command string
	ids     []string // files
	says    string   // in the output
}

var left = map[string]processes{
	"the shell":                        {"echo begun; echo $$ >a; sleep 60", []string{"a"}, "begun"},
	"a child":                          {"sh -c 'echo begun; echo $$ >a; sleep 60'; true", []string{"a"}, "begun"},
	"one that ignores the signal":      {"trap '' TERM; echo begun; echo $$ >a; while :; do sleep 60; done", []string{"a"}, "signal: killed"},
	"a double fork":                    {"echo begun; (sh -c 'echo $$ >a; exec sleep 60' &) ; echo $$ >b; sleep 60", []string{"a", "b"}, "begun"},
	"one that is stopped by a signal":  {"echo begun; echo $$ >a; kill -STOP $$; sleep 60", []string{"a"}, "begun"},
	"one that ends itself in an order": {"trap 'echo goodbye; exit 7' TERM; echo $$ >a; while :; do sleep 0.05; done", []string{"a"}, "goodbye"},
}

func (p processes) start(t *testing.T, b *bench) (results <-chan Result, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := make(chan Result, 1)
	go func() { c <- b.run(t, ctx, "run", args{"command": p.command}) }()
	return c, cancel
}

// alive reads an id that a process wrote and reports whether that process runs: a zombie does not.
func alive(t *testing.T, b *bench, file string) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(b.content(t, file)))
	if err != nil {
		t.Fatalf("no process id in %s: %v", file, err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

// await waits until a file has a whole line, which is what a process under test does when it is ready.
func await(t *testing.T, name string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		if text, err := os.ReadFile(name); err == nil && strings.HasSuffix(string(text), "\n") {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s was not written", name)
		}
	}
}

// guards S7, S14
func TestNoProcessIsLeft(t *testing.T) {
	for name, p := range left {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			results, stop := p.start(t, b)
			for _, f := range p.ids {
				await(t, filepath.Join(b.dir, f))
			}
			begun := time.Now()
			stop()
			r := <-results
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("the stop took %v", took)
			}
			if r.State != Stopped || !strings.HasPrefix(r.Output, "stopped after ") || !strings.Contains(r.Output, p.says) || r.Exit == nil {
				t.Errorf("%s: %s", r.State, r.Output)
			}
			for _, f := range p.ids {
				if alive(t, b, f) {
					t.Errorf("the process in %s is alive", f)
				}
			}
		})
	}
}

// guards S14: a command that ends leaves nothing behind either, and nothing that holds its output keeps it from ending.
func TestABackgroundProcessEndsWithItsCommand(t *testing.T) {
	for name, command := range map[string]string{
		"that holds the pipe":       "sh -c 'echo $$ >a; exec sleep 60' & while ! test -s a; do sleep 0.01; done; echo done",
		"double-forked":             "(sh -c 'echo $$ >a; exec sleep 60' &); while ! test -s a; do sleep 0.01; done; echo done",
		"under nohup":               "nohup sh -c 'echo $$ >a; exec sleep 60' >/dev/null 2>&1 & while ! test -s a; do sleep 0.01; done; echo done",
		"that ignores every signal": "sh -c 'trap \"\" HUP INT TERM; echo $$ >a; while :; do sleep 60; done' & while ! test -s a; do sleep 0.01; done; echo done",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			begun := time.Now()
			r := b.run(t, t.Context(), "run", args{"command": command})
			if r.State != Done || r.Output != "done" || time.Since(begun) > 5*time.Second {
				t.Errorf("%s after %v: %s", r.State, time.Since(begun), r.Output)
			}
			if alive(t, b, "a") {
				t.Error("the background process is alive")
			}
		})
	}
}

func TestProgressComesWhileACommandRuns(t *testing.T) {
	b := newBench(t, "", nil)
	tool, _ := Lookup("run")
	raw := []byte(`{"command":"echo first; while ! test -e go; do sleep 0.01; done; echo second"}`)
	var got []string
	r := tool.Run(t.Context(), Env{Workspace: b.w, Permit: allow(b.w, tool, raw), Progress: func(text string) {
		got = append(got, text)
		if text == "first\n" {
			b.put(t, "go", "")
		}
	}}, raw)
	if r.Output != "first\nsecond" || strings.Join(got, "|") != "first\n|second\n" {
		t.Errorf("%q, progress %q", r.Output, got)
	}
}

func TestACommandSeesNoSecret(t *testing.T) {
	t.Setenv("SOME_API_KEY", "hush")
	b := newBench(t, "", nil)
	if r := b.run(t, t.Context(), "run", args{"command": "env"}); strings.Contains(r.Output, "hush") || !strings.Contains(r.Output, "PATH=") {
		t.Errorf("%s", r.Output)
	}
}

func TestAShellInTheWorkspaceIsNotRun(t *testing.T) {
	b := newBench(t, "-- sh --\n#!/bin/sh\necho evil\n", nil)
	b.chmod(t, "sh")
	t.Setenv("PATH", b.dir+":"+os.Getenv("PATH"))
	t.Chdir(b.dir)
	if r := b.run(t, t.Context(), "run", args{"command": "echo fine"}); r.Output != "fine" {
		t.Errorf("%s %s", r.State, r.Output)
	}
}
