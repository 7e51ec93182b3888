package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fermata/tools/workspace"
)

// asNobody has the whole process read as a user who owns nothing, until the test ends: root may read all.
func asNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Setresuid(-1, 65534, -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setresuid(-1, 0, -1); err != nil {
			t.Fatal(err)
		}
	})
}

// A model that was told "no line matches" took what it may not read for searched.
func TestWhatMayNotBeReadIsSaidByGrepAndGlob(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a.txt": 0o644, "closed.txt": 0, "sub/b.txt": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "sub"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "sub"), 0o755) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	asNobody(t)
	got := grep(t.Context(), w, grepArgs{Pattern: "needle"}, nil, nil).Output
	for _, want := range []string{"a.txt:1:needle", "(not searched, because this process may not read them: closed.txt)", "(not looked at: sub: it may not be read)"} {
		if !strings.Contains(got, want) {
			t.Errorf("grep gives\n%s\nwithout %s", got, want)
		}
	}
	names, _, err := matchingFiles(t.Context(), w, ".", func(string) bool { return true })
	if cut, ok := errors.AsType[*workspace.CutError](err); !ok || !cut.Denied || len(names) != 2 {
		t.Errorf("glob finds %q, %v", names, err)
	}
}
