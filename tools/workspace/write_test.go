package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// write is Read and Write in one.
func write(t *testing.T, w *Workspace, name, after string) error {
	t.Helper()
	f, err := w.ReadOrNew(name)
	if err != nil {
		return err
	}
	return w.Write(t.Context(), f, []byte(after))
}

func content(t *testing.T, w *Workspace, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.Root(), filepath.FromSlash(name)))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// onlyFiles fails when a temporary file was left.
func onlyFiles(t *testing.T, w *Workspace) {
	t.Helper()
	for _, name := range walk(t, w, ".") {
		if strings.Contains(name, ".fermata-") {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestAWriteReplacesOrCreates(t *testing.T) {
	w := tree(t, "-- a --\nold\n", nil)
	for _, name := range []string{"a", "new", "deep/er/new", "./b", filepath.Join(w.Root(), "c")} {
		if err := write(t, w, name, "new of "+name); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rel, _ := w.Clean(name)
		if got := content(t, w, rel); got != "new of "+name {
			t.Errorf("%s holds %q", name, got)
		}
	}
	onlyFiles(t, w)
}

func TestAWriteGoesThroughALinkInside(t *testing.T) {
	w := tree(t, "-- d/real --\nold\n", nil)
	link(t, "d/real", filepath.Join(w.Root(), "l"))
	link(t, "d/fresh", filepath.Join(w.Root(), "dangling"))
	for name, real := range map[string]string{"l": "d/real", "dangling": "d/fresh"} {
		if err := write(t, w, name, "new"); err != nil {
			t.Fatal(err)
		}
		if got := content(t, w, real); got != "new" {
			t.Errorf("%s holds %q", real, got)
		}
		if _, err := os.Readlink(filepath.Join(w.Root(), name)); err != nil {
			t.Errorf("%s is no link any more", name)
		}
	}
}

func TestAWriteKeepsPermissions(t *testing.T) {
	w := tree(t, "-- script --\nold\n", nil)
	name := filepath.Join(w.Root(), "script")
	if err := os.Chmod(name, 0o750); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(name)
	if err := write(t, w, "script", "new"); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(name); after.Mode() != before.Mode() {
		t.Errorf("mode %v, was %v", after.Mode(), before.Mode())
	}
}

func TestAWriteIsRefusedWhenTheFileIsNotAsItWas(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *Workspace, file string) error
		old    func(f File) File
		want   string // on disk afterwards
	}{
		"other content, same length": {change: func(_ *Workspace, f string) error { return os.WriteFile(f, []byte("two"), 0o666) }, want: "two"},
		"other length":               {change: func(_ *Workspace, f string) error { return os.WriteFile(f, []byte("three"), 0o666) }, want: "three"},
		"made since":                 {old: func(f File) File { f.Content = nil; return f }, want: "one"},
		"opened since":               {change: func(w *Workspace, _ string) error { w.overlay = editor{"f": "one"}; return nil }, want: "one"},
		"closed since":               {old: func(f File) File { f.Buffer = true; return f }, want: "one"},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, "", nil)
			file := filepath.Join(w.Root(), "f")
			put(t, file, "one")
			f, err := w.Read("f")
			if err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				if err := tt.change(w, file); err != nil {
					t.Fatal(err)
				}
			}
			if tt.old != nil {
				f = tt.old(f)
			}
			if err := w.Write(t.Context(), f, []byte("mine")); !errors.Is(err, ErrChanged) {
				t.Errorf("Write: %v", err)
			}
			if got := content(t, w, "f"); got != tt.want {
				t.Errorf("the file holds %q", got)
			}
			onlyFiles(t, w)
		})
	}
}

func TestADeletedFileIsNotMadeAnew(t *testing.T) {
	w := tree(t, "-- f --\nx\n", nil)
	f, err := w.Read("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.Root(), "f")); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), f, []byte("y")); !errors.Is(err, ErrChanged) {
		t.Errorf("Write: %v", err)
	}
}

func TestGitsOwnFilesAreNotWritten(t *testing.T) {
	w := tree(t, "-- .git/config --\n-- sub/.git --\ngitdir: x\n", nil)
	link(t, ".git", filepath.Join(w.Root(), "harmless"))
	link(t, "missing/../harmless/config", filepath.Join(w.Root(), "twisted"))
	if err := write(t, w, "twisted", "evil"); !errors.Is(err, ErrPath) {
		t.Errorf("by way of a folder that is not there: %v", err)
	}
	for _, name := range []string{".git/config", ".git/hooks/pre-commit", "sub/.git", ".GIT/config", ".git /x", ".git./x",
		"GIT~1/x", ".g\u200cit/x", "harmless/config", "harmless/hooks/post-checkout", "a/../.git/config"} {
		if err := write(t, w, name, "evil"); !errors.Is(err, ErrProtected) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{".gitignore", ".github/x", "git/x", ".gitx"} {
		if err := write(t, w, name, "fine"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAReadOnlyFileIsNotWritten(t *testing.T) {
	w := tree(t, "-- f --\nx\n", nil)
	if err := os.Chmod(filepath.Join(w.Root(), "f"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := write(t, w, "f", "y"); !errors.Is(err, ErrProtected) {
		t.Errorf("Write: %v", err)
	}
	onlyFiles(t, w)
}

// TestAWriteIsWholeOrNothing reads while a file is replaced again and again.
func TestAWriteIsWholeOrNothing(t *testing.T) {
	w := tree(t, "", nil)
	texts := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	put(t, filepath.Join(w.Root(), "f"), texts[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ends with the writes
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := content(t, w, "f"); got != texts[0] && got != texts[1] {
				t.Errorf("read %d bytes of a mixture", len(got))
				return
			}
		}
	})
	for i := range 50 {
		if err := write(t, w, "f", texts[(i+1)%2]); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	onlyFiles(t, w)
}

func TestAStoppedWriteChangesNothing(t *testing.T) {
	w := tree(t, "-- f --\nx\n", nil)
	f, err := w.Read("f")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Write(ctx, f, []byte("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if got := content(t, w, "f"); got != "x\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestAnOpenDocumentIsChangedInTheEditor(t *testing.T) {
	ed := editor{"f": "buffer"}
	w := tree(t, "-- f --\ndisk\n", ed)
	if err := write(t, w, "f", "new"); err != nil {
		t.Fatal(err)
	}
	if ed["f"] != "new" || content(t, w, "f") != "disk\n" {
		t.Errorf("editor %q, disk %q", ed["f"], content(t, w, "f"))
	}
	f, _ := w.Read("f")
	ed["f"] = "typed meanwhile"
	if err := w.Write(t.Context(), f, []byte("newer")); !errors.Is(err, ErrChanged) || ed["f"] != "typed meanwhile" {
		t.Errorf("Write: %v, editor %q", err, ed["f"])
	}
}

// A write gives the name a content of its own: what else has the old one may lie outside of the root.
func TestAWriteReachesNoOtherHardLink(t *testing.T) {
	w := tree(t, "-- f --\nold\n", nil)
	outside := filepath.Join(t.TempDir(), "other")
	if err := os.Link(filepath.Join(w.Root(), "f"), outside); err != nil {
		t.Fatal(err)
	}
	if f, err := w.Read("f"); err != nil || f.Links != 2 {
		t.Errorf("%d links, %v", f.Links, err)
	}
	if err := write(t, w, "f", "new"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(outside); string(b) != "old\n" || content(t, w, "f") != "new" {
		t.Errorf("the other is %q, the file %q", b, content(t, w, "f"))
	}
	if f, err := w.Read("f"); err != nil || f.Links != 1 {
		t.Errorf("then %d links, %v", f.Links, err)
	}
}

// A file that somebody else creates in the last moment is not replaced by a new one.
func TestANewFileReplacesNoneThatCameInTheLastMoment(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.stage = func(name string) {
		if name == "checked" {
			_ = os.WriteFile(filepath.Join(dir, "f"), []byte("theirs\n"), 0o666)
		}
	}
	if err := w.Write(t.Context(), File{Path: "f"}, []byte("ours\n")); !errors.Is(err, ErrChanged) {
		t.Errorf("the write gives %v", err)
	}
	names, _ := os.ReadDir(dir)
	if b, err := os.ReadFile(filepath.Join(dir, "f")); string(b) != "theirs\n" || len(names) != 1 {
		t.Errorf("the file holds %q, %v; the folder %v", b, err, names)
	}
}
