package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/agent/permit"
	"fermata/tools/workspace"
)

const twoFiles = `--- a/f
+++ b/f
@@ -1 +1 @@
-x
+y
--- a/open
+++ b/open
@@ -1 +1 @@
-x
+y
`

// guards C3
func TestIntentsOfAllFilesComeBeforeTheFirstChange(t *testing.T) {
	for name, tt := range map[string]struct {
		tool string
		args args
		want []string // what is recorded, and what the folder holds meanwhile
	}{
		"patch":       {"apply_patch", args{"patch": strings.ReplaceAll(twoFiles, "open", "d/g")}, []string{`f "x\n" "y\n"`, `d/g "x\n" "y\n"`}},
		"move":        {"move_path", args{"from": "d", "to": "e"}, []string{`d/g > e/g "x\n" "x\n"`, `d/h > e/h "h\n" "h\n"`}},
		"delete":      {"delete_path", args{"path": "d"}, []string{`d/g "x\n" ""`, `d/h "h\n" ""`}},
		"delete file": {"delete_path", args{"path": "f"}, []string{`f "x\n" ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "-- f --\nx\n-- d/g --\nx\n-- d/h --\nh\n", nil)
			before := fmt.Sprint(b.all(t))
			tool, _ := Lookup(tt.tool)
			raw, _ := json.Marshal(tt.args)
			var got []string
			r := tool.Run(t.Context(), Env{Workspace: b.w, Permit: allow(b.w, tool, raw), Intent: func(_ context.Context, c Change) error {
				path := c.Path
				if c.From != "" {
					path = c.From + " > " + path
				}
				got = append(got, fmt.Sprintf("%s %q %q", path, c.Before, c.After))
				if now := fmt.Sprint(b.all(t)); now != before {
					t.Errorf("at the intent of %s the folder holds %s", path, now)
				}
				return nil
			}}, raw)
			if r.State != Done || !slices.Equal(got, tt.want) {
				t.Errorf("%s: %s\nrecorded %q, want %q", r.State, r.Output, got, tt.want)
			}
			if now := fmt.Sprint(b.all(t)); now == before {
				t.Error("nothing was changed")
			}
		})
	}
}

// failing is an editor in which an edit does not come about: on the way it does something else.
type failing struct {
	editor
	first func()
}

func (e failing) Apply(context.Context, string, string, string) error {
	e.first()
	return errors.New("the editor says no")
}

// guards C3: what cannot be made whole is put back, and what cannot be put back is said.
func TestWhenOneChangeFailsThoseBeforeItArePutBack(t *testing.T) {
	for name, tt := range map[string]struct {
		patch string
		first func(b *bench, stop func()) // before the last file's change fails
		state State
		says  []string
		files string
	}{
		"a change": {twoFiles, nil, Failed, []string{"the editor says no", "Nothing was changed: put back f"}, `map[d/g:x
 f:x
]`},
		"a file that was made": {strings.Replace(twoFiles, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n", "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n", 1), nil, Failed,
			[]string{"Nothing was changed: put back new"}, "map[d/g:x\n f:x\n]"},
		"a file that was deleted": {strings.Replace(twoFiles, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "--- a/d/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", 1), nil, Failed,
			[]string{"Nothing was changed: put back d/g"}, "map[d/g:x\n f:x\n]"},
		"a file that was moved and changed": {strings.Replace(twoFiles, "--- a/f\n+++ b/f\n", "diff --git a/f b/e/g\nrename from f\nrename to e/g\n--- a/f\n+++ b/e/g\n", 1), nil, Failed,
			[]string{"Nothing was changed: put back e/g, f"}, "map[d/g:x\n f:x\n]"},
		"a stop": {twoFiles, func(_ *bench, stop func()) { stop() }, Stopped,
			[]string{"apply_patch: stopped before open was changed", "Nothing was changed: put back f"}, "map[d/g:x\n f:x\n]"},
		"changed by somebody else meanwhile": {twoFiles, func(b *bench, _ func()) {
			_ = os.WriteFile(filepath.Join(b.dir, "f"), []byte("theirs\n"), 0o666)
		}, Unknown, []string{"the editor says no", "Could not be put back, and is changed: f (it was changed again meanwhile)"}, "map[d/g:x\n f:theirs\n]"},
		"put back by somebody else meanwhile": {twoFiles, func(b *bench, _ func()) {
			_ = os.WriteFile(filepath.Join(b.dir, "f"), []byte("x\n"), 0o666)
		}, Failed, []string{"Nothing was changed: put back f"}, "map[d/g:x\n f:x\n]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "-- f --\nx\n-- d/g --\nx\n", nil)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w, err := workspace.Open(b.dir, failing{editor{"open": "x\n"}, func() {
				if got := b.all(t); fmt.Sprint(got) == "map[d/g:x\n f:x\n]" {
					t.Error("nothing was changed before")
				}
				if tt.first != nil {
					tt.first(b, stop)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			b.w = w
			r := b.run(t, ctx, "apply_patch", args{"patch": tt.patch})
			if r.State != tt.state {
				t.Errorf("the result is %s, want %s", r.State, tt.state)
			}
			for _, s := range tt.says {
				if !strings.Contains(r.Output, s) {
					t.Errorf("the result does not say %q:\n%s", s, r.Output)
				}
			}
			if got := fmt.Sprint(b.all(t)); got != tt.files {
				t.Errorf("the folder holds %s", got)
			}
		})
	}
}

// An open document is patched through the editor; it cannot be moved or deleted under it.
func TestAnOpenFileIsPatchedInTheEditorAndNotMovedOrDeleted(t *testing.T) {
	ed := editor{"d/open": "unsaved\n"}
	b := newBench(t, "-- d/open --\nsaved\n-- f --\nx\n", ed)
	r := b.run(t, t.Context(), "apply_patch", args{"patch": "--- a/d/open\n+++ b/d/open\n@@ -1 +1,2 @@\n unsaved\n+more\n"})
	if r.State != Done || ed["d/open"] != "unsaved\nmore\n" || !strings.Contains(r.Output, "in the editor, where it is open; it is not saved") {
		t.Errorf("%s: %s: the document is %q", r.State, r.Output, ed["d/open"])
	}
	for name, tt := range map[string]struct {
		tool string
		args args
	}{
		"move":          {"move_path", args{"from": "d/open", "to": "d/closed"}},
		"move over it":  {"move_path", args{"from": "f", "to": "d/open"}},
		"move folder":   {"move_path", args{"from": "d", "to": "e"}},
		"delete":        {"delete_path", args{"path": "d/open"}},
		"delete folder": {"delete_path", args{"path": "d"}},
		"patch rename":  {"apply_patch", args{"patch": "diff --git a/d/open b/x\nrename from d/open\nrename to x\n"}},
		"patch delete":  {"apply_patch", args{"patch": "--- a/d/open\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-unsaved\n-more\n"}},
	} {
		r := b.run(t, t.Context(), tt.tool, tt.args)
		if r.State != Failed || !strings.Contains(r.Output, "open in the editor, and would stay there") {
			t.Errorf("%s: %s: %s", name, r.State, r.Output)
		}
	}
	if got := fmt.Sprint(b.all(t)); got != "map[d/open:saved\n f:x\n]" || len(b.changes) != 1 {
		t.Errorf("the folder holds %s; recorded %v", got, b.changes)
	}
}

// A change that somebody else made since the model read the file is never buried by a patch, a move or a deletion.
func TestAFileThatChangedSinceItWasReadIsNotPatchedMovedOrDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		tool string
		args args
	}{
		"patch":  {"apply_patch", args{"patch": "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-one\n+1\n"}},
		"rename": {"apply_patch", args{"patch": "diff --git a/d/f b/g\nrename from d/f\nrename to g\n"}},
		"move":   {"move_path", args{"from": "d/f", "to": "g"}},
		"delete": {"delete_path", args{"path": "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRemembering(t, "-- d/f --\none\ntwo\n", nil)
			b.run(t, "read_file", args{"path": "d/f"})
			b.put(t, "d/f", "one\nzwei\n")
			r := b.run(t, tt.tool, tt.args)
			if r.State != Failed || !strings.Contains(r.Output, "d/f changed since you last read it; nothing was done") || !strings.Contains(r.Output, "-two\n+zwei") {
				t.Fatalf("%s: %s", r.State, r.Output)
			}
			if got := fmt.Sprint(b.all(t)); got != "map[d/f:one\nzwei\n]" || len(b.changes) != 0 {
				t.Errorf("the folder holds %s; recorded %v", got, b.changes)
			}
			if r = b.run(t, tt.tool, tt.args); r.State != Done { // it has been shown
				t.Errorf("the second try: %s: %s", r.State, r.Output)
			}
		})
	}
}

func TestAPathIsMovedAsItIsAndReplacesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		state    State
		says     string
		files    string
	}{
		"file":             {"f", "new/g", Done, "moved f to new/g", "map[d/g:g\n d/sub/h:h\n new/g:f\n]"},
		"folder":           {"d", "e/d", Done, "moved d to e/d (a folder with 2 files)", "map[e/d/g:g\n e/d/sub/h:h\n f:f\n]"},
		"letters' case":    {"f", "F", Done, "moved f to F", "map[F:f\n d/g:g\n d/sub/h:h\n]"},
		"folder's case":    {"d", "D", Done, "moved d to D (a folder with 2 files)", "map[D/g:g\n D/sub/h:h\n f:f\n]"},
		"over a file":      {"f", "d/g", Failed, "d/g: file already exists; it is not replaced", ""},
		"over a folder":    {"f", "d", Failed, "it is a folder; to move into it, name the new path in it, as in d/f", ""},
		"folder on folder": {"d", "d/sub", Failed, "d/sub lies in d, which would be moved into itself", ""},
		"into itself":      {"d", "d/x/y", Failed, "d/x/y lies in d", ""},
		"itself":           {"f", "./f", Failed, "f is its name already", ""},
		"missing":          {"x", "y", Failed, "x: file does not exist", ""},
		"the root":         {".", "d/x", Failed, "that is the whole workspace", ""},
		"to the root":      {"f", ".", Failed, "the workspace itself cannot be moved or replaced", ""},
		"outside":          {"f", "../f", Failed, "outside the workspace", ""},
		"from outside":     {"/etc/passwd", "p", Failed, "outside the workspace", ""},
		"into .git":        {"f", ".git/hooks/f", Failed, "permission denied", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "-- f --\nf\n-- d/g --\ng\n-- d/sub/h --\nh\n", nil)
			r := b.run(t, t.Context(), "move_path", args{"from": tt.from, "to": tt.to})
			if r.State != tt.state || !strings.Contains(r.Output, tt.says) {
				t.Errorf("%s: %s", r.State, r.Output)
			}
			if tt.files == "" {
				tt.files = "map[d/g:g\n d/sub/h:h\n f:f\n]"
			}
			if got := fmt.Sprint(b.all(t)); got != tt.files {
				t.Errorf("the folder holds %s, want %s", got, tt.files)
			}
		})
	}
}

func TestADeletionIsBoundedAndSaysWhatWasThere(t *testing.T) {
	b := newBench(t, "-- f --\nf\n-- d/g --\ng\n-- d/sub/h --\nh\n", nil)
	for i := range treeNames {
		b.put(t, fmt.Sprintf("many/%d", i), "")
	}
	b.put(t, "large/a", strings.Repeat("x", treeBytes/2))
	b.put(t, "large/b", strings.Repeat("x", treeBytes/2+1))
	b.put(t, "repo/.git/config", "x\n")
	for name, says := range map[string]string{
		".": "that is the whole workspace", "../x": "outside the workspace", "x": "x: file does not exist", "many/x": "file does not exist",
		"large": "large: too large: its files have more than 32 MiB; do it in parts, or with run", "repo": "permission denied", "repo/.git": "permission denied",
	} {
		if r := b.run(t, t.Context(), "delete_path", args{"path": name}); r.State != Failed || !strings.Contains(r.Output, says) {
			t.Errorf("%s: %s: %s", name, r.State, r.Output)
		}
	}
	b.put(t, "many/x", "")
	if r := b.run(t, t.Context(), "delete_path", args{"path": "many"}); r.State != Failed || !strings.Contains(r.Output, "many: too large: it holds more than 500") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if len(b.changes) != 0 {
		t.Fatalf("recorded %v", b.changes)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "d", "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"f": "deleted f (2 bytes)", "d": "deleted d, a folder with 2 files"} {
		if r := b.run(t, t.Context(), "delete_path", args{"path": name}); r.State != Done || r.Output != says {
			t.Errorf("%s: %s: %s", name, r.State, r.Output)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "d")); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// What a permission is about is every file that would be touched, and it holds for these only.
func TestAPermissionForAFolderIsForTheFilesThatAreInIt(t *testing.T) {
	b := newBench(t, "-- d/.env --\nKEY=1\n-- d/g --\ng\n", nil)
	for tool, tt := range map[string]struct {
		args string
		want []string
	}{
		"delete_path": {`{"path":"d/"}`, []string{"d", "d/.env", "d/g"}},
		"move_path":   {`{"from":"d","to":"./e"}`, []string{"d", "d/.env", "d/g", "e", "e/.env", "e/g"}},
		"apply_patch": {`{"patch":"diff --git a/d/g b/h\nrename from d/g\nrename to h\n--- a/d/.env\n+++ b/d/.env\n@@ -1 +1 @@\n-KEY=1\n+KEY=2\n"}`,
			[]string{"d/g", "h", "d/.env"}},
	} {
		tool, _ := Lookup(tool)
		c := tool.Ask(b.w, json.RawMessage(tt.args))
		if !slices.Equal(c.Paths, tt.want) {
			t.Errorf("%s asks about %q", tool.Name, c.Paths)
		}
		if d := (permit.Policy{Mode: permit.ModeEdit}).Decide(c, permit.Grants{}); d.Verdict != permit.Ask || !strings.Contains(d.Why, ".env") {
			t.Errorf("%s: %+v", tool.Name, d)
		}
	}
	tool, _ := Lookup("delete_path")
	raw := json.RawMessage(`{"path":"e"}`)
	b.put(t, "e/f", "x\n")
	p := allow(b.w, tool, raw)
	b.put(t, "e/new", "x\n")
	r := tool.Run(t.Context(), Env{Workspace: b.w, Permit: p}, raw)
	if r.State != Failed || !strings.Contains(r.Output, "permission denied: it was given for other files") || len(b.all(t)) != 4 {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}
