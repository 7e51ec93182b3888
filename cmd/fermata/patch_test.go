package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// patchCall is a call of apply_patch, as a scenario has it.
func patchCall(patch string) string {
	b, err := json.Marshal(map[string]string{"patch": patch})
	if err != nil {
		panic(err)
	}
	return "reply\nsize 4000\ncall apply_patch " + string(b) + "\n"
}

func (e *editor) put(name, text string) {
	e.t.Helper()
	name = filepath.Join(e.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// folder is what the workspace holds.
func (e *editor) folder() string {
	e.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(e.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(e.root, path)
		files[filepath.ToSlash(rel)] = strings.ReplaceAll(string(b), "\n", "|")
		return err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimPrefix(fmt.Sprint(files), "map")
}

const (
	reworked = "--- a/main.go\n+++ b/main.go\n@@ -1,3 +1,3 @@\n package main\n-// old\n+// new\n \n" +
		"diff --git a/lib/util.go b/text/lines.go\nrename from lib/util.go\nrename to text/lines.go\n--- a/lib/util.go\n+++ b/text/lines.go\n@@ -1 +1 @@\n-package lib\n+package text\n" +
		"--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+moved\n"
	reworkedBefore = "[lib/more/x:x| lib/util.go:package lib| main.go:package main|// old|| notes.txt:note|]"
	reworkedAfter  = "[NOTES:moved| docs/notes.txt:note| main.go:package main|// new|| text/lines.go:package text|]"
)

// A patch, a move and a deletion of one turn, as a user sees them: what each would do is in its question, what they did is in
// the changes of the turn, and one revert takes all of it back, one undo puts it there again.
//
// guards invariant 1
func TestAPatchAMoveAndADeletionAreAskedAboutShownAndTakenBack(t *testing.T) {
	t.Parallel()
	scenario := patchCall(reworked) + `reply
call move_path {"from":"notes.txt","to":"docs/notes.txt"}
reply
call delete_path {"path":"lib"}
reply
say Done.
`
	questions := make(chan string, 10)
	e := newUser(t, scenario, "")
	for name, text := range map[string]string{"main.go": "package main\n// old\n\n", "lib/util.go": "package lib\n", "lib/more/x": "x\n", "notes.txt": "note\n"} {
		e.put(name, text)
	}
	e.start(peer.Options{Answer: func(method string, params json.RawMessage) (any, *peer.Error) {
		var q struct{ Tool, Summary, Diff string }
		if method == "fermata/permission" && json.Unmarshal(params, &q) == nil {
			questions <- q.Summary + "\n" + q.Diff
		}
		return map[string]any{"answer": "once"}, nil
	}})
	e.Initialize(e.root, map[string]any{"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}}})
	session := e.NewSession(e.root)
	if r := e.turn(e.ask(session, "Rework it.")); r.Outcome != "completed" {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{
		"apply_patch main.go, text/lines.go, NOTES\n--- a/main.go\n…rename from lib/util.go\nrename to text/lines.go\n…+package text\n--- /dev/null\n+++ b/NOTES\n…",
		"move_path notes.txt → docs/notes.txt\ndiff --git a/notes.txt b/docs/notes.txt\nrename from notes.txt\nrename to docs/notes.txt\n",
		"delete_path lib\n--- a/lib/more/x\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n",
	} {
		if got := <-questions; !matches(want, got) {
			t.Errorf("the question is\n%s\nwant\n%s", got, want)
		}
	}
	if got := e.folder(); got != reworkedAfter {
		t.Fatalf("the folder holds %s", got)
	}
	e.quit()

	out, errs, code := e.fermata("changes", "--stat")
	for _, line := range []string{"created  +1 -0  NOTES", "created +0 -0 docs/notes.txt (moved from notes.txt)", "deleted  +0 -1  lib/more/x", "deleted +0 -0 lib/util.go (moved to text/lines.go)", "changed  +1 -1  main.go"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(line), " ")) {
			t.Errorf("the changes lack %q (%d):\n%s%s", line, code, out, errs)
		}
	}
	if out, errs, code := e.fermata("revert", "--yes"); code != 0 || e.folder() != reworkedBefore {
		t.Errorf("revert: %d %s %s: the folder holds %s", code, out, errs, e.folder())
	}
	if out, errs, code := e.fermata("revert", "--undo", "--yes"); code != 0 || e.folder() != reworkedAfter {
		t.Errorf("undo: %d %s %s: the folder holds %s", code, out, errs, e.folder())
	}
}

// A daemon is killed when a patch has changed one file and waits for the editor to change another. What the next one says of
// each is what the disk says, and the user can take it back.
//
// guards C2, C3, P2
func TestAPatchThatTheDaemonDiedInIsToldFileByFile(t *testing.T) {
	t.Parallel()
	scenario := patchCall("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n--- a/open.txt\n+++ b/open.txt\n@@ -1 +1 @@\n-x\n+y\n") + "reply\nsay Done.\nreply\nsay Good.\n"
	e := newUser(t, scenario, "[permissions]\nmode = \"trust\"\n")
	e.put("a.txt", "x\n")
	e.put("open.txt", "x\n")
	asked, never := make(chan bool, 1), make(chan bool)
	defer close(never)
	e.start(peer.Options{Answer: func(method string, _ json.RawMessage) (any, *peer.Error) {
		if method == "workspace/applyEdit" {
			asked <- true
			<-never
		}
		return nil, nil
	}})
	e.Initialize(e.root, map[string]any{
		"workspace":    map[string]any{"applyEdit": true, "workspaceEdit": map[string]any{"documentChanges": true}},
		"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}},
	})
	e.Notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": "file://" + filepath.ToSlash(filepath.Join(e.root, "open.txt")), "languageId": "text", "version": 1, "text": "x\n"}})
	session := e.NewSession(e.root)
	e.ask(session, "Patch it.")
	<-asked
	e.Kill()
	e.Exit()
	if got := e.folder(); got != "[a.txt:y| open.txt:x|]" {
		t.Fatalf("the folder holds %s", got)
	}

	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	var opened struct{ Entries []logEntry }
	e.Must("fermata/session/open", map[string]any{"session": session}, &opened)
	var said strings.Builder
	for _, entry := range opened.Entries {
		if b, ok := decode(t, entry).(*transcript.ToolSettled); ok {
			said.WriteString(string(b.State) + " " + b.Output)
		}
	}
	if want := "unknown Partly done: fermata ended while this call ran. As it was to be: a.txt. Not known: open.txt."; said.String() != want {
		t.Errorf("the call is settled as %q, want %q", said.String(), want)
	}
	e.quit()
	out, errs, code := e.fermata("revert", "--yes")
	if got := e.folder(); got != "[a.txt:x| open.txt:x|]" || !strings.Contains(out, "kept     open.txt: it is so already") {
		t.Errorf("revert: %d %s %s: the folder holds %s", code, out, errs, got)
	}
}
