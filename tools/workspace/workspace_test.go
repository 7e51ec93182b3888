package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// tree writes the files of a txtar archive into a new folder and opens it.
func tree(t *testing.T, archive string, ov Overlay) *Workspace {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		put(t, filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data))
	}
	w, err := Open(dir, ov)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// editor is a set of open documents.
type editor map[string]string

func (e editor) Text(p string) (string, bool) { t, ok := e[p]; return t, ok }
func (e editor) Paths() []string              { return slices.Collect(maps.Keys(e)) }
func (e editor) Apply(_ context.Context, p, before, after string) error {
	if e[p] != before {
		return errors.New("the document changed")
	}
	e[p] = after
	return nil
}

func TestOpenWantsADirectory(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "x")
	for _, name := range []string{"file", "missing"} {
		if w, err := Open(filepath.Join(dir, name), nil); err == nil {
			w.Close()
			t.Errorf("%s was opened as a workspace", name)
		}
	}
}

func TestAPathIsCleanedOrRefused(t *testing.T) {
	w := tree(t, "-- a/b --\nx\n", nil)
	for name, tt := range map[string]struct {
		in, want string
		err      error
		says     string
	}{
		"relative":              {in: "a/b", want: "a/b"},
		"with dot":              {in: "./a/./b", want: "a/b"},
		"trailing slash":        {in: "a/", want: "a"},
		"dots inside":           {in: "a/../a/b", want: "a/b"},
		"the root":              {in: ".", want: "."},
		"absolute inside":       {in: filepath.Join(w.Root(), "a", "b"), want: "a/b"},
		"absolute root":         {in: w.Root(), want: "."},
		"absolute, with dots":   {in: w.Root() + "/a/../a/b", want: "a/b"},
		"absolute outside":      {in: filepath.Dir(w.Root()), err: ErrOutside, says: "relative"},
		"absolute, root prefix": {in: w.Root() + "x/y", err: ErrOutside, says: "relative"},
		"absolute, dots out":    {in: w.Root() + "/../y", err: ErrOutside},
		"dots out":              {in: "../x", err: ErrOutside, says: "inside"},
		"dots out later":        {in: "a/../../x", err: ErrOutside},
		"only dots":             {in: "..", err: ErrOutside},
		"a name of dots":        {in: "..a", want: "..a"},
		"empty":                 {in: "", err: ErrPath, says: "empty"},
		"NUL":                   {in: "a\x00b", err: ErrPath, says: "NUL"},
		"not UTF-8":             {in: "a\xff", err: ErrPath, says: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Clean(tt.in)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Fatalf("Clean(%q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error does not say %q: %v", tt.says, err)
			}
		})
	}
}

func TestARootThatIsALinkIsKnownByBothNames(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(real, "f"), "x")
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, real, alias)
	w, err := Open(alias, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range []string{filepath.Join(real, "f"), filepath.Join(alias, "f"), "f"} {
		if f, err := w.Read(name); err != nil || f.Path != "f" {
			t.Errorf("Read(%q) = %q, %v", name, f.Path, err)
		}
		if filepath.IsAbs(name) && !w.Contains(name) {
			t.Errorf("%s is not seen to lie inside", name)
		}
	}
}

func TestLinksAreFollowedInsideOnly(t *testing.T) {
	w := tree(t, "-- in/real --\nreal\n", nil)
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret"), "secret")
	at := func(name string) string { return filepath.Join(w.Root(), name) }
	link(t, "in/real", at("file"))
	link(t, "in", at("folder"))
	link(t, at("in/real"), at("absolute"))
	link(t, "../folder/real", at("in/roundabout"))
	link(t, filepath.Join(outside, "secret"), at("out"))
	link(t, outside, at("outdir"))
	link(t, "../"+filepath.Base(w.Root())+"/in/real", at("outandin"))
	link(t, "loop", at("loop"))
	link(t, "missing", at("dangling"))
	link(t, "missing/../folder/real", at("nowhere"))
	link(t, "/dev/zero", at("zero"))
	link(t, "/proc/self/root", at("proc"))
	for name, tt := range map[string]struct {
		want string
		err  error
	}{
		"file":           {want: "in/real"},
		"folder/real":    {want: "in/real"},
		"absolute":       {want: "in/real"},
		"in/roundabout":  {want: "in/real"},
		"out":            {err: ErrOutside},
		"outdir/secret":  {err: ErrOutside},
		"outdir/new":     {err: ErrOutside},
		"outandin":       {err: ErrOutside},
		"loop":           {err: ErrPath},
		"dangling":       {err: fs.ErrNotExist},
		"nowhere":        {err: ErrPath},
		"zero":           {err: ErrOutside},
		"proc/etc/hosts": {err: ErrOutside},
		"in":             {err: ErrNotRegular},
	} {
		f, err := w.Read(name)
		if !errors.Is(err, tt.err) || f.Path != tt.want {
			t.Errorf("Read(%q) = %q, %v; want %q, %v", name, f.Path, err, tt.want, tt.err)
		}
		if errors.Is(tt.err, ErrOutside) {
			if _, err := w.ReadOrNew(name); !errors.Is(err, ErrOutside) {
				t.Errorf("ReadOrNew(%q): %v", name, err)
			}
			if err := w.Write(t.Context(), File{Path: name}, []byte("x")); err == nil {
				t.Errorf("%q could be written", name)
			}
			if err := w.WalkFiles(t.Context(), name, func(string) error { return nil }); err == nil {
				t.Errorf("%q could be walked", name)
			}
		}
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "secret" {
		t.Errorf("the file outside was changed: %q", b)
	}
	if des, _ := os.ReadDir(outside); len(des) != 1 {
		t.Errorf("a file was made outside: %v", des)
	}
}

func TestALargeFileIsStreamedButNotRead(t *testing.T) {
	w := tree(t, "", nil)
	f, err := os.Create(filepath.Join(w.Root(), "large"))
	if err == nil {
		err = errors.Join(f.Truncate(200<<20), f.Close()) // sparse
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read("large"); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "209715200 bytes") {
		t.Errorf("Read: %v", err)
	}
	s, err := w.Stream("large")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Size != 200<<20 {
		t.Errorf("size %d", s.Size)
	}
}

func TestAnOpenDocumentIsTheFile(t *testing.T) {
	w := tree(t, "-- a --\ndisk\n", editor{"a": "buffer\n", "dir/new": "unsaved\n"})
	for name, want := range map[string]string{"a": "buffer\n", "dir/new": "unsaved\n"} {
		if f, err := w.Read(name); string(f.Content) != want || !f.Buffer || err != nil {
			t.Errorf("Read(%s) = %+v, %v", name, f, err)
		}
	}
	if got := walk(t, w, "."); !slices.Equal(got, []string{"a", "dir/new"}) {
		t.Errorf("walk: %v", got)
	}
}

func TestANameIsShownSafely(t *testing.T) {
	for in, want := range map[string]string{
		"src/main.go":       "src/main.go",
		"with space é 漢":    "with space é 漢",
		"a\nb":              `"a\nb"`,
		"\x1b[31mred":       `"\x1b[31mred"`,
		"bad\xff":           `"bad\xff"`,
		"\u202Egnp.exe":     `"\u202egnp.exe"`,
		"zero\u200bwidth":   `"zero\u200bwidth"`,
		"say \"hi\"":        `say "hi"`,
		"replacement\uFFFD": `"replacement�"`,
	} {
		if got := Show(in); got != want {
			t.Errorf("Show(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestAStreamEndsWhereTheFileEndedWhenItWasOpened(t *testing.T) {
	w := tree(t, "-- log --\nfirst\n", nil)
	s, err := w.Stream("log")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, filepath.Join(w.Root(), "log"), "first\nsecond\n")
	if b, err := io.ReadAll(s); err != nil || string(b) != "first\n" {
		t.Errorf("%q %v", b, err)
	}
}
