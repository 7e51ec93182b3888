//go:build unix

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fermata/tools/workspace"
)

// A link is moved and deleted as a link, wherever it leads; what it leads to stays.
func TestALinkIsMovedAndDeletedAsALink(t *testing.T) {
	b := newBench(t, "-- f --\nf\n-- d/g --\ng\n", nil)
	for name, target := range map[string]string{"inside": "f", "outside": "/etc/passwd", "folder": "d", "nowhere": "x"} {
		link, moved := filepath.Join(b.dir, "l_"+name), filepath.Join(b.dir, "moved", name)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		r := b.run(t, t.Context(), "move_path", args{"from": "l_" + name, "to": "moved/" + name})
		if got, err := os.Readlink(moved); r.State != Done || err != nil || got != target {
			t.Errorf("%s: %s: it leads to %q, %v", name, r.Output, got, err)
		}
		r = b.run(t, t.Context(), "delete_path", args{"path": "moved/" + name})
		if _, err := os.Lstat(moved); r.State != Done || !os.IsNotExist(err) {
			t.Errorf("%s: %s: %v", name, r.Output, err)
		}
		last := b.changes[len(b.changes)-1]
		if last.Mode != workspace.ModeLink || string(last.Before) != target || last.After != nil {
			t.Errorf("recorded %+v", last)
		}
	}
	if b.content(t, "f") != "f\n" || b.content(t, "d/g") != "g\n" {
		t.Error("what a link led to was touched")
	}
	patch := "--- a/l\n+++ b/l\n@@ -1 +1 @@\n-f\n+F\n"
	if err := os.Symlink("f", filepath.Join(b.dir, "l")); err != nil {
		t.Fatal(err)
	}
	if r := b.run(t, t.Context(), "apply_patch", args{"patch": patch}); r.State != Done || b.content(t, "f") != "F\n" {
		t.Errorf("a patch through a link: %s", r.Output)
	}
}

func TestAMoveKeepsAllOfAFileAndAPatchCanMakeAProgram(t *testing.T) {
	b := newBench(t, "-- f --\nf\n", nil)
	if err := os.Chmod(filepath.Join(b.dir, "f"), 0o640); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(filepath.Join(b.dir, "f"))
	r := b.run(t, t.Context(), "move_path", args{"from": "f", "to": "g"})
	after, err := os.Stat(filepath.Join(b.dir, "g"))
	if r.State != Done || err != nil || !os.SameFile(before, after) || b.changes[0].Mode != "100640" {
		t.Errorf("%s, %v: recorded %+v", r.Output, err, b.changes)
	}
	r = b.run(t, t.Context(), "apply_patch", args{"patch": "diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n" +
		"diff --git a/g b/h\nrename from g\nrename to h\n--- a/g\n+++ b/h\n@@ -1 +1 @@\n-f\n+F\n"})
	program, err := os.Stat(filepath.Join(b.dir, "run.sh"))
	if r.State != Done || err != nil || program.Mode().Perm()&0o100 == 0 {
		t.Errorf("%s, %v", r.Output, err)
	}
	if fi, err := os.Stat(filepath.Join(b.dir, "h")); err != nil || fi.Mode().Perm() != 0o640 || b.content(t, "h") != "F\n" {
		t.Errorf("the file that was moved and changed: %v, %v", fi, err)
	}
}

func TestAPatchMakesAProgramThatItNamesTwice(t *testing.T) {
	b := newBench(t, "", nil)
	r := b.run(t, t.Context(), "apply_patch", args{"patch": "diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- a/run.sh\n+++ b/run.sh\n@@ -0,0 +1 @@\n+#!/bin/sh\n"})
	if fi, err := os.Stat(filepath.Join(b.dir, "run.sh")); r.State != Done || err != nil || fi.Mode().Perm()&0o100 == 0 {
		t.Errorf("%s, %v: %v", r.Output, err, fi)
	}
}

// What is no file and no link cannot be brought back, so it is not deleted, nor is anything beside it.
func TestAFolderWithAPipeIsNotDeleted(t *testing.T) {
	b := newBench(t, "-- d/f --\nf\n", nil)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "d", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tool, a := range map[string]args{"delete_path": {"path": "d"}, "move_path": {"from": "d", "to": "e"}} {
		if r := b.run(t, t.Context(), tool, a); r.State != Failed || !strings.Contains(r.Output, "a FIFO") || b.content(t, "d/f") != "f\n" || len(b.changes) != 0 {
			t.Errorf("%s: %s: %s", tool, r.State, r.Output)
		}
	}
}
