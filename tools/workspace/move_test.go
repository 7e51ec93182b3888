package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Whatever appears under the new name up to the last moment is not replaced.
func TestARenameReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, text := range map[string]string{"f": "f\n", "g": "g\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"d", "e", filepath.Join("e", "full")} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, rename := range []func(*os.Root, string, string) error{renameNew, renameChecked} {
		for _, names := range [][2]string{{"f", "g"}, {"f", "d"}, {"d", "e"}, {"d", "g"}} {
			if err := rename(w.root, names[0], names[1]); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s to %s: %v", names[0], names[1], err)
			}
		}
	}
	if f, err := w.Read("g"); err != nil || string(f.Content) != "g\n" {
		t.Errorf("g holds %q, %v", f.Content, err)
	}
	if err := w.Move(t.Context(), "f", "x", []File{{Path: "f", Content: []byte("other\n")}}); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that has changed was moved: %v", err)
	}
	if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "h")); err != nil {
		t.Fatal(err)
	}
	if err := w.Move(t.Context(), "f", "h", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a hard link was taken for another spelling of the name: %v", err)
	}
}

// A mode that is no plain file's makes no file of special powers.
func TestAFileComesBackWithItsMode(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for mode, want := range map[Mode]fs.FileMode{"": 0o666, "100600": 0o600, "100755": 0o755, "120000": 0o666, "nonsense": 0o666, "104755": 0o666, "040755": 0o666} {
		if got := mode.perm(); got != want {
			t.Errorf("%q is made with %o, want %o", mode, got, want)
		}
	}
	f := File{Path: "a/b", Mode: "100600"}
	if err := w.Write(t.Context(), f, []byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || fi.Mode().Perm()&^0o600 != fi.Mode().Perm()&^0o666 {
		t.Errorf("%v, %v", fi, err)
	}
	f, err = w.ReadItself("a/b")
	if err != nil || f.Mode == "" || f.Path != "a/b" || string(f.Content) != "x\n" {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := w.ReadItself("a/c"); err != nil || f.Exists() {
		t.Errorf("%+v, %v", f, err)
	}
}
