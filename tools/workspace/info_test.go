package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// shown is an editor with one open document.
type shown struct {
	Overlay
	path, text string
}

func (s shown) Text(path string) (string, bool) { return s.text, path == s.path }
func (s shown) Paths() []string                 { return []string{s.path} }

func TestTheDiskIsReadAsIfThereWereNoEditor(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"f": "on disk", "empty": "", "sub/f": "in sub"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := Open(dir, shown{path: "f", text: "unsaved"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !w.IsOpen("f") || w.IsOpen("empty") {
		t.Error("what is open is not known")
	}
	type want struct {
		text string
		err  error
	}
	cases := map[string]want{"f": {text: "on disk"}, "empty": {}, "sub/f": {text: "in sub"}, "none": {err: fs.ErrNotExist}, "sub": {err: ErrNotRegular}}
	if os.Symlink("sub/f", filepath.Join(dir, "link")) == nil { // not every user of Windows may make links
		if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "away")); err != nil {
			t.Fatal(err)
		}
		cases["link"], cases["out"], cases["away/f"] = want{text: "in sub"}, want{err: ErrOutside}, want{err: ErrOutside}
	}
	for name, want := range cases {
		f, err := w.ReadDisk(name, 7)
		if !errors.Is(err, want.err) || err == nil && (f.Content == nil || string(f.Content) != want.text) {
			t.Errorf("%s: %q, %v", name, f.Content, err)
		}
	}
	if _, err := w.ReadDisk("f", 6); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a longer file: %v", err)
	}
	if fi, err := w.Info("f"); err != nil || fi.Size() != 7 {
		t.Errorf("info: %v, %v", fi, err)
	}
}
