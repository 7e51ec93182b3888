package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent/permit"
	"fermata/rpc/wire"
)

// changing is a turn that edits a.txt and makes new.txt, and one that does nothing.
const changing = "reply\ncall edit_file {\"path\":\"a.txt\",\"old\":\"two\",\"new\":\"2\"}\ncall write_file {\"path\":\"new.txt\",\"content\":\"x\\n\"}\n" +
	"reply\nsay done\nreply\nsay fine\n"

// changed is an editor with a.txt open after that turn: its text is "one\n2\n", the disk's "saved\n".
func changed(t *testing.T, capabilities obj) (e *editor, session string, got wire.TurnResult) {
	t.Helper()
	e = start(t, changing, func(e *editor) { e.policy.Mode = permit.ModeTrust })
	e.applying()
	if err := os.WriteFile(filepath.Join(e.root, "a.txt"), []byte("saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.initialize(capabilities)
	e.send(didOpen(fileURI(filepath.Join(e.root, "a.txt")), "one\ntwo\n"))
	session = e.session()
	e.call("fermata/turn/start", obj{"session": session, "prompt": text("edit"), "anchor": obj{
		"uri": fileURI(filepath.Join(e.root, "a.txt")), "range": wire.Range{Start: at(1, 0), End: at(1, 0)}}}, &got)
	return e, session, got
}

func TestTheChangesOfATurnAreFilesWithBeforeAndAfter(t *testing.T) {
	e, session, turn := changed(t, editing)
	for _, params := range []any{nil, obj{"turn": turn.Turn}, obj{"session": session}} {
		var got wire.TurnChangesResult
		e.call("fermata/turn/changes", params, &got)
		if string(got.Session) != session || got.Turn != turn.Turn || len(got.Files) != 2 {
			t.Fatalf("%+v", got)
		}
		a, n := got.Files[0], got.Files[1]
		if a.Path != "a.txt" || a.State != "changed" || !a.Buffer || a.Added != 1 || a.Removed != 1 || a.Now != "as_left" || a.By != "tool" ||
			*a.BeforeText != "one\ntwo\n" || *a.AfterText != "one\n2\n" || a.URI != fileURI(filepath.Join(e.root, "a.txt")) {
			t.Errorf("%+v", a)
		}
		if n.Path != "new.txt" || n.State != "created" || n.Before != "" || n.BeforeText != nil || *n.AfterText != "x\n" || n.Buffer {
			t.Errorf("%+v", n)
		}
	}
	e.refused("fermata/turn/changes", obj{"turn": "t_x"}, -31001, "no such turn")
	e.refused("fermata/turn/changes", obj{"session": e.session()}, -31010, "no file was changed")
}

// An open document is reverted through the editor, and the undo puts it back there.
func TestARevertIsMadeToldAndUndone(t *testing.T) {
	e, session, turn := changed(t, editing)
	content := func() string {
		var got wire.TurnChangesResult
		e.call("fermata/turn/changes", nil, &got)
		return got.Files[0].Now + " " + got.Files[1].Now
	}
	var would, got, undone wire.TurnRevertResult
	e.call("fermata/turn/revert", obj{"preview": true}, &would)
	if would.Revert != "" || content() != "as_left as_left" {
		t.Errorf("a preview came to %+v, and the files are %s", would, content())
	}
	e.call("fermata/turn/revert", obj{"turn": turn.Turn}, &got)
	if string(got.Session) != session || got.Revert == "" || len(got.Files) != 2 || got.Files[0] != (wire.RevertedFile{Path: "a.txt", State: "reverted", Buffer: true}) ||
		got.Files[1] != (wire.RevertedFile{Path: "new.txt", State: "reverted"}) || content() != "reverted reverted" {
		t.Errorf("%+v, and the files are %s", got, content())
	}
	if _, i := e.event("revert.ended"); i < 0 {
		t.Error("the revert was not told")
	}
	if b, _ := os.ReadFile(filepath.Join(e.root, "a.txt")); string(b) != "saved\n" {
		t.Errorf("the file on disk is %q", b)
	}
	uri := fileURI(filepath.Join(e.root, "new.txt"))
	e.call("fermata/turn/revert", obj{"revert": got.Revert, "paths": []string{uri}}, &undone)
	if len(undone.Files) != 1 || undone.Files[0].State != "reverted" || content() != "reverted as_left" {
		t.Errorf("%+v, and the files are %s", undone, content())
	}
	e.refused("fermata/turn/revert", obj{"revert": "v"}, -31001, "no such revert")
	e.refused("fermata/turn/revert", obj{"revert": string(session) + ".1"}, -31001, "no such revert")
	e.refused("fermata/turn/revert", obj{"paths": []string{"../x"}}, -32602, "paths: ")
	e.refused("fermata/turn/revert", obj{"turn": "t_x"}, -31001, "no such turn")

	e.call("fermata/turn/start", obj{"session": session, "prompt": text("go on")}, nil)
	if body := string(e.model.Requests()[2].Body); !strings.Contains(body, `[The user reverted your changes to a.txt.]\n\ngo on`) {
		t.Errorf("the model was told %s", body)
	}
}

// Clients without our methods have commands, code actions and a lens; each works without arguments.
func TestChangesAreShownAndRevertedByCommands(t *testing.T) {
	client := obj{"workspace": obj{"applyEdit": true, "workspaceEdit": obj{"documentChanges": true}},
		"textDocument": obj{"codeAction": obj{"codeActionLiteralSupport": obj{}}}}
	e, session, _ := changed(t, client)
	var actions []struct{ Title string }
	e.call("textDocument/codeAction", obj{"textDocument": obj{"uri": fileURI(filepath.Join(e.root, "a.txt"))},
		"range": wire.Range{Start: at(1, 0), End: at(1, 0)}, "context": obj{"diagnostics": []any{}}}, &actions)
	var titles []string
	for _, a := range actions {
		titles = append(titles, a.Title)
	}
	if got := strings.Join(titles, "|"); !strings.HasSuffix(got, "|Show What Fermata Changed|Revert What Fermata Changed") {
		t.Errorf("the code actions are %s", got)
	}
	var shown wire.CommandResult
	e.call("workspace/executeCommand", command0("fermata.showChanges"), &shown)
	path, _ := filePath(shown.URI)
	b, err := os.ReadFile(path)
	if want := "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+x\n"; err != nil || string(b) != want {
		t.Errorf("the diff is %q, %v", b, err)
	}
	e.call("workspace/executeCommand", command0("fermata.revert"), nil)
	e.call("workspace/executeCommand", command0("fermata.revert", obj{"undo": true}), nil)
	for _, want := range []string{"Fermata: reverted a.txt, new.txt", "Fermata: put back a.txt, new.txt"} {
		e.find("the message", func(m message) bool {
			var p struct{ Message string }
			_ = json.Unmarshal(m.Params, &p)
			return m.Method == "window/showMessage" && p.Message == want
		})
	}
	e.call("fermata/session/delete", obj{"session": session}, nil)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the session is deleted, and its diff is left: %v", err)
	}
}

func TestAStoppedTurnThatChangedFilesSaysSoInItsLens(t *testing.T) {
	v := view{outcome: "stopped", changed: true}
	var titles []string
	for _, c := range v.controls() {
		titles = append(titles, c.Title)
	}
	if got := strings.Join(titles, "|"); got != "Stopped here|Redirect|Transcript|Model input|Changes" {
		t.Errorf("the lenses are %s", got)
	}
}
