package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// An answer that the disk had no room for was lost with exit code 0.
func TestAnAnswerThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := child(t, dir, nil, "ask", "hello there")
	var notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &notes
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitOther || !strings.Contains(notes.String(), "fermata: show the answer: write /dev/stdout: no space left on device; it is kept: fermata transcript s_") {
		t.Errorf("exit code %d and %q", code, notes.String())
	}
	cmd = child(t, dir, nil, "ask", "read notes.txt")
	cmd.Stderr = full // what a tool did is told there; the answer does not need it
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "notes.txt") {
		t.Errorf("%v, and stdout is %q", err, out)
	}
}

// guards P2: what is no text would be sent as another one.
func TestAPromptThatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	cmd := child(t, t.TempDir(), nil, "ask", "caf\xe9")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || string(out) != "fermata: the prompt is no UTF-8 text\n" {
		t.Errorf("exit code %d and %q", code, out)
	}
}

// Its name was replaced in the log, and the session's next turn found no folder.
func TestAFolderWhoseNameIsNoTextIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "caf\xe9")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, dir, nil, "ask", "--workspace", folder, "hello there")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitOther || !strings.HasSuffix(string(out), `caf\xe9": its name is no UTF-8 text: give the folder another name`+"\n") {
		t.Errorf("exit code %d and %q", code, out)
	}
}

// A ^C was kept for the turn to come, and nothing was heard of it as long as the database was waited for.
func TestAnInterruptEndsTheWaitForADatabaseInUse(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	output(t, child(t, dir, nil, "ask", "--data", data, "hello there"))
	db := connect(t, filepath.Join(data, "fermata.db"))
	execute(t, db, "BEGIN EXCLUSIVE")
	x := openTerminal(t, child(t, dir, nil, "ask", "--data", data, "hello there"))
	open := func(name string) bool {
		fds := fmt.Sprintf("/proc/%d/fd", x.cmd.Process.Pid)
		list, _ := os.ReadDir(fds)
		return slices.ContainsFunc(list, func(e os.DirEntry) bool {
			to, _ := os.Readlink(filepath.Join(fds, e.Name()))
			return filepath.Base(to) == name
		})
	}
	for !open("fermata.db") {
		if t.Context().Err() != nil {
			t.Fatal("the database is not opened")
		}
	}
	x.typed(ctrlC)
	x.end(-1)
	execute(t, db, "ROLLBACK")
}

// A disk that had no room for the file beside the database was said to be broken.
func TestADiskThatIsFullFromTheStartIsSaidToBeFull(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	if !mountSmall(t, data, 1<<20) {
		return // badinput_disk_test.go has a full disk everywhere
	}
	output(t, child(t, dir, nil, "ask", "--data", data, "hello there"))
	ballast := filepath.Join(data, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ask", "--continue", "and you?"}, {"transcript"}} {
		cmd := child(t, dir, nil, append(args, "--data", data)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitOther || !strings.Contains(string(out), "disk is full") || !strings.Contains(string(out), "free some space") {
			t.Errorf("%v: exit code %d and %q", args, code, out)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	output(t, child(t, dir, nil, "ask", "--continue", "--data", data, "and you?"))
}
