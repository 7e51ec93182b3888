package tools

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

// Each file of testdata/patch is a patch for a folder. Its sections:
//
//	state      of the result, "done" if left out
//	patch      what apply_patch is given
//	before/X   the file X at first
//	after/X    the file X in the end; there are no others
//	says       lines, each of which is in the result
//
// In all of them ␍ is a CR, ␀ a NUL, ⌂ a byte order mark, ␦ the byte of ü in Latin-1 (in a patch it is ü), and ␄ before the
// newline at the end says that there is none.
func TestAPatchIsAppliedWhollyOrNotAtAll(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "patch", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b := newRemembering(t, "", nil)
			state, patch, says := Done, "", ""
			before, want := map[string]string{}, map[string]string{}
			for _, f := range archive.Files {
				text := plainBytes(string(f.Data))
				switch section, name, _ := strings.Cut(f.Name, "/"); section {
				case "state":
					state = State(strings.TrimSpace(text))
				case "patch":
					patch = strings.ReplaceAll(text, "\xfc", "ü")
				case "says":
					says = text
				case "before":
					before[name] = text
					b.put(t, name, text)
				case "after":
					want[name] = text
				default:
					t.Fatalf("section %s", f.Name)
				}
			}
			r := b.run(t, "apply_patch", args{"patch": patch})
			if r.State != state {
				t.Errorf("the result is %s, want %s", r.State, state)
			}
			for line := range strings.Lines(says) {
				if !strings.Contains(r.Output, strings.TrimSuffix(line, "\n")) {
					t.Errorf("the result does not say %q:\n%s", line, r.Output)
				}
			}
			if got := b.all(t); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("the folder holds\n%q, want\n%q\n%s", got, want, r.Output)
			}
			b.recordedRight(t, before, state == Done)
		})
	}
}

func plainBytes(text string) string {
	text = strings.ReplaceAll(text, "␄\n", "")
	return strings.NewReplacer("␍", "\r", "␀", "\x00", "⌂", "\uFEFF", "␦", "\xfc").Replace(text)
}

// all are the files of the workspace.
func (b *bench) all(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(b.dir, p)
		out[filepath.ToSlash(rel)] = b.content(t, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// recordedRight checks that what was recorded as changed is what has changed.
func (b *bench) recordedRight(t *testing.T, before map[string]string, done bool) {
	t.Helper()
	if !done {
		if len(b.changes) != 0 {
			t.Errorf("nothing was changed, and it is recorded: %+v", b.changes)
		}
		return
	}
	is := maps.Clone(before)
	for _, c := range b.changes {
		from := c.Path
		if c.From != "" {
			from = c.From
		}
		if was, ok := is[from]; ok != (c.Before != nil) || was != string(c.Before) {
			t.Errorf("%s was %q, recorded as %q", from, was, c.Before)
		}
		delete(is, from)
		if c.After != nil {
			is[c.Path] = string(c.After)
		}
	}
	if got := b.all(t); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", is) {
		t.Errorf("the folder holds %q, recorded as %q", got, is)
	}
}

// What a diff of two texts says, the patch does: random texts of few different lines, with each line ending and with and without
// a newline at the end, and with the counts of the hunks left out.
func TestTheDiffOfTwoTextsMakesOneOfTheOther(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	random := func() []string {
		lines := make([]string, 1+r.IntN(12))
		for i := range lines {
			lines[i] = strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(3)) + fmt.Sprint(r.IntN(3))
		}
		return lines
	}
	for n := range 3000 {
		old := random()
		new := append([]string{}, old...)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(new) + 1)
			new = append(new[:at:at], append(random()[:r.IntN(2)], new[min(len(new), at+r.IntN(2)):]...)...)
		}
		ends := [2]string{"\n", "\n"}
		for i := range ends {
			if r.IntN(4) == 0 {
				ends[i] = ""
			}
		}
		a, b := strings.Join(old, "\n")+ends[0], strings.Join(new, "\n")+ends[1]
		if len(new) == 0 {
			b = ""
		}
		if a == b {
			continue
		}
		d := string(bytes.ReplaceAll(diff.Diff("f", []byte(a), "f", []byte(b)), []byte("diff f f\n"), nil))
		if d == "" {
			continue
		}
		files, err := parsePatch(d)
		if err != nil {
			t.Fatalf("%d: %v\n%s", n, err, d)
		}
		for _, end := range []string{"\n", "\r\n"} {
			text, want := strings.ReplaceAll(a, "\n", end), strings.ReplaceAll(b, "\n", end)
			if end == "\r\n" && !strings.Contains(a, "\n") {
				continue // it has no line ending to keep
			}
			got, problems := applyHunks(text, files[0].hunks)
			if len(problems) > 0 || got.text != want {
				t.Fatalf("%d: %q became %q, want %q: %v\n%s", n, text, got.text, want, problems, d)
			}
		}
	}
}

// A hunk is where it says, however many places are like it.
func TestAHunkIsFoundWhereItSaysAmongVeryManyLikeIt(t *testing.T) {
	const lines, at = placesCounted + 100, placesCounted + 50
	files, err := parsePatch(fmt.Sprintf("--- a/f\n+++ b/f\n@@ -%d +%[1]d @@\n-x\n+y\n", at))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("x\n", at-1) + "y\n" + strings.Repeat("x\n", lines-at)
	if got, problems := applyHunks(strings.Repeat("x\n", lines), files[0].hunks); len(problems) > 0 || got.text != want {
		t.Errorf("%d lines, %v", strings.Count(got.text, "\n"), problems)
	}
}

// A line between two that change is not touched: neither is the CR before its line ending.
func TestAPatchKeepsACRBeforeALineEnding(t *testing.T) {
	files, err := parsePatch("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-one\n+1\n two\r\r\n-three\n+3\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, problems := applyHunks("one\r\ntwo\r\r\nthree\r\n", files[0].hunks); got.text != "1\r\ntwo\r\r\n3\r\n" {
		t.Errorf("%q, %v", got.text, problems)
	}
}

// Whatever a model writes, a patch is read or refused, and what was read is kept within its lines.
func FuzzAPatchIsReadOrRefused(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "patch", "*.txtar"))
	for _, file := range files {
		if a, err := txtar.ParseFile(file); err == nil {
			for _, s := range a.Files {
				if s.Name == "patch" {
					f.Add(plainBytes(string(s.Data)), "one\ntwo\nthree\n")
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, patch, text string) {
		files, err := parsePatch(patch)
		if (err == nil) != (len(files) > 0) {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, p := range files {
			if p.name() == "" {
				t.Fatalf("a file without a name: %+v", p)
			}
			applyHunks(text, p.hunks)
		}
	})
}
