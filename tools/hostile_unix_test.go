//go:build unix

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// meanwhile does something over and over until the test function that it returns is called.
func meanwhile(f func()) (end func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				f()
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// swap puts two names in turn where name is, each by one rename.
func swap(t *testing.T, name string, turns ...func(tmp string) error) func() {
	i := 0
	return func() {
		tmp := name + ".next"
		_ = os.RemoveAll(tmp) // where it could not go last time
		if err := turns[i%len(turns)](tmp); err != nil {
			t.Error(err)
		}
		if os.Rename(tmp, name) != nil { // a folder is where it is to go
			_ = os.Rename(name, name+".old")
			_ = os.Rename(tmp, name)
			_ = os.RemoveAll(name + ".old")
		}
		i++
	}
}

// Nobody reads or writes outside of the root, however often a name is made to mean something else in the middle of a call.
func TestANameThatIsSwappedDuringACallLeadsNowhere(t *testing.T) {
	for what, outside := range map[string]func(secret, tmp string) error{
		"a file and a link": func(secret, tmp string) error { return os.Symlink(secret, tmp) },
		"a file and a FIFO": func(_, tmp string) error { return syscall.Mkfifo(tmp, 0o666) },
	} {
		t.Run(what, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(out, []byte("Secret.\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, "-- d/f --\ninside\n", nil)
			end := meanwhile(swap(t, filepath.Join(b.dir, "d", "f"),
				func(tmp string) error { return os.WriteFile(tmp, []byte("inside\n"), 0o666) },
				func(tmp string) error { return outside(out, tmp) }))
			tryAll(t, b, "d/f", "d", 60)
			end()
			if text, err := os.ReadFile(out); err != nil || string(text) != "Secret.\n" {
				t.Errorf("outside is %q now (%v)", text, err)
			}
		})
	}
	t.Run("a folder and a link", func(t *testing.T) {
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, "f"), []byte("Secret.\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		b := newBench(t, "-- d/f --\ninside\n", nil)
		end := meanwhile(swap(t, filepath.Join(b.dir, "d"),
			func(tmp string) error {
				if err := os.Mkdir(tmp, 0o777); err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(tmp, "f"), []byte("inside\n"), 0o666)
			},
			func(tmp string) error { return os.Symlink(out, tmp) }))
		tryAll(t, b, "d/f", "d", 60)
		end()
		left, err := os.ReadDir(out)
		if text, readErr := os.ReadFile(filepath.Join(out, "f")); err != nil || readErr != nil || string(text) != "Secret.\n" || len(left) != 1 {
			t.Errorf("outside is %q now, with %v (%v)", text, left, err)
		}
	})
}

// tryAll has every tool reach for a file and its folder, again and again.
func tryAll(t *testing.T, b *bench, file, dir string, times int) {
	t.Helper()
	for range times {
		for _, c := range []struct {
			tool string
			args args
		}{
			{"read_file", args{"path": file}}, {"list_dir", args{"path": dir}}, {"glob", args{"pattern": "**/*"}},
			{"grep", args{"pattern": "Secret|inside"}}, {"grep", args{"pattern": "Secret", "path": file}}, {"write_file", args{"path": dir + "/new", "content": "x\n"}},
			{"edit_file", args{"path": file, "old": "inside", "new": "edited"}}, {"edit_file", args{"path": file, "old": "Secret", "new": "edited"}},
			{"write_file", args{"path": file, "content": "written\n"}}, {"move_path", args{"from": file, "to": "moved"}}, {"delete_path", args{"path": file}}, {"delete_path", args{"path": "moved"}},
		} {
			if r := b.run(t, t.Context(), c.tool, c.args); strings.Contains(r.Output, "Secret.") {
				t.Fatalf("%s %v: %s", c.tool, c.args, r.Output)
			}
		}
	}
}

// What a system has besides files on a disk is not read through a link, and not taken for a file where it is mounted.
func TestWhatIsNoFileOnADiskIsNotRead(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	links := map[string]string{
		"environ": "/proc/self/environ", "fd": "/proc/self/fd/0", "root": "/proc/self/root/etc/passwd", "proc": "/proc", "zero": "/dev/zero", "stdin": "/dev/stdin",
		"cwd": "/proc/self/cwd", "up": "..", "etc": "/etc", "chain": "environ",
	}
	for name, target := range links {
		b.link(t, target, filepath.Join(b.dir, name))
	}
	for name := range links {
		for tool, a := range map[string]args{
			"read_file": {"path": name}, "list_dir": {"path": name}, "grep": {"pattern": "a", "path": name}, "glob": {"pattern": "*", "path": name},
			"edit_file": {"path": name, "old": "a", "new": "b"}, "write_file": {"path": name + "/x", "content": "x"},
		} {
			if r := b.run(t, t.Context(), tool, a); r.State != Failed {
				t.Errorf("%s %s: %s: %.200s", tool, name, r.State, r.Output)
			}
		}
	}
	if r := b.run(t, t.Context(), "grep", args{"pattern": "."}); r.Output != "f:1:x" {
		t.Errorf("grep: %.300s", r.Output)
	}
	if r := b.run(t, t.Context(), "glob", args{"pattern": "**"}); r.Output != "f" {
		t.Errorf("glob: %.300s", r.Output)
	}
}

// A root that is itself such a file system, where files have no length and some never end, is listed and read in bounds.
func TestARootInProcIsReadInBounds(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return // another system
	}
	w := openBench(t, "/proc/self")
	if r := w.run(t, t.Context(), "read_file", args{"path": "status"}); r.State != Done || !strings.Contains(r.Output, "Pid:") {
		t.Errorf("read_file: %s: %.300s", r.State, r.Output)
	}
	if r := w.run(t, t.Context(), "read_file", args{"path": "root/etc/passwd"}); r.State != Failed {
		t.Errorf("a link of the kernel led out: %.300s", r.Output)
	}
	for tool, a := range map[string]args{"list_dir": {}, "edit_file": {"path": "status", "old": "Pid:", "new": "x"}, "write_file": {"path": "new", "content": "x"}} {
		r := w.run(t, t.Context(), tool, a)
		if (r.State == Done) != (tool == "list_dir") {
			t.Errorf("%s: %s: %.300s", tool, r.State, r.Output)
		}
	}
}
