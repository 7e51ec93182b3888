package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tools/process"
)

// guards S14
func TestAProcessThatLeavesTheGroupEndsToo(t *testing.T) {
	for name, command := range map[string]string{
		"in a session of its own": "setsid sh -c 'echo $$ >a; exec sleep 60' & while ! test -s a; do sleep 0.01; done; echo done",
		"and forked away":         "(setsid sh -c 'echo $$ >a; sleep 60; true' >/dev/null 2>&1 &) ; while ! test -s a; do sleep 0.01; done; echo done",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			if r := b.run(t, t.Context(), "run", args{"command": command}); r.State != Done || r.Output != "done" {
				t.Errorf("%s: %s", r.State, r.Output)
			}
			if alive(t, b, "a") {
				t.Error("the process is alive")
			}
		})
	}
}

func TestACommandThatCannotBeConfinedIsNotRun(t *testing.T) {
	programs := t.TempDir()
	t.Setenv("PATH", programs)
	b := newBench(t, "", nil)
	b.sandbox = &process.Sandbox{Required: true}
	if r := b.run(t, t.Context(), "run", args{"command": "echo x >f"}); r.State != Failed || !strings.Contains(r.Output, `install the package "bubblewrap"`) {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	b.sandbox = &process.Sandbox{}
	if r := b.run(t, t.Context(), "run", args{"command": "echo x >f"}); r.State != Done || b.content(t, "f") != "x\n" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

func TestAFailureThatLooksLikeTheSandboxsDoingSaysSo(t *testing.T) {
	programs := t.TempDir()
	script := "#!/bin/sh\nwhile test \"$1\" != --; do shift; done; shift; exec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, "bwrap"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	b := newBench(t, "", nil)
	b.sandbox = &process.Sandbox{Required: true}
	for command, says := range map[string]bool{
		"echo 'sh: f: Read-only file system' >&2; exit 2":    true,
		"echo 'curl: (6) Could not resolve host: a'; exit 6": true,
		"echo 'FAIL: TestX'; exit 1":                         false,
		"echo 'Read-only file system'":                       false, // it succeeded
	} {
		r := b.run(t, t.Context(), "run", args{"command": command})
		if strings.HasSuffix(r.Output, "\n("+process.Effect+")") != says || r.State != Done {
			t.Errorf("%s: %s", r.State, r.Output)
		}
	}
}
