package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// edited are the scripts of turns, each of which makes some calls in one answer and then says that it is done. A call is
// "write PATH CONTENT", "edit PATH OLD NEW", "run COMMAND", "move PATH PATH", "delete PATH" or "patch LINE|LINE|…"; "" is a turn
// without a call.
func edited(turns ...[]string) (scripts []func(*reply)) {
	for n, calls := range turns {
		if len(calls) > 0 {
			scripts = append(scripts, func(r *reply) {
				for i, c := range calls {
					f := strings.Split(c, " ")
					name, args := "run", map[string]string{}
					switch f[0] {
					case "write":
						name, args["path"], args["content"] = "write_file", f[1], strings.Join(f[2:], " ")+"\n"
					case "edit":
						name, args["path"], args["old"], args["new"] = "edit_file", f[1], f[2], f[3]
					case "run":
						args["command"] = strings.Join(f[1:], " ")
					case "move":
						name, args["from"], args["to"] = "move_path", f[1], f[2]
					case "delete":
						name, args["path"] = "delete_path", f[1]
					case "patch":
						name, args["patch"] = "apply_patch", strings.ReplaceAll(strings.TrimPrefix(c, "patch "), "|", "\n")
					}
					b, _ := json.Marshal(args)
					r.call(fmt.Sprintf("call_%d_%d", n, i), name, string(b))
				}
				r.done()
			})
		}
		scripts = append(scripts, func(r *reply) { r.say("Done."); r.done() })
	}
	return scripts
}

// files are what a folder holds, "path=content" in order, line ends as |.
func files(t *testing.T, root string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		out = append(out, filepath.ToSlash(rel)+"="+strings.ReplaceAll(string(b), "\n", "|"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// told is a revert's result, in order: "path", or "path (why)" of a kept one.
func told(r Reverted) string {
	var out []string
	for _, f := range r.Files {
		if f.State == transcript.RevertDone {
			out = append(out, f.Path)
		} else {
			out = append(out, f.Path+" ("+f.Why+")")
		}
	}
	return strings.Join(out, ", ")
}

// Turns change files, people change them too, and some of it is taken back. turns[n] is said with "turn", and says an edit twice where the first
// try is told that the file has changed; "put PATH CONTENT"
// and "rm PATH" are somebody else's doing; "revert", "since" and "undo" go on with "N" and paths, where N is the number of a
// turn, 0 meaning no turn. What is checked is what a revert says, and "is" what the folder holds.
//
// guards the promises of Agent.Revert
func TestARevertTakesBackWhatATurnDidAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		turns [][]string
		steps []string
	}{
		"created, changed": {
			[][]string{{"write new.txt one", "edit old.txt before after"}},
			[]string{"turn", "is new.txt=one| old.txt=after|", "revert 0 → new.txt, old.txt", "is old.txt=before|",
				"revert 0 → new.txt (it is so already), old.txt (it is so already)",
				"undo → new.txt, old.txt", "is new.txt=one| old.txt=after|", "undo → error no such revert"},
		},
		"one file": {
			[][]string{{"write a/x.txt one", "write a/y.txt two", "write b.txt three"}},
			[]string{"turn", "revert 0 b.txt → b.txt", "revert 1 a → a/x.txt, a/y.txt", "is old.txt=before|",
				"revert 1 nothing.txt → nothing.txt (it is not among the files that were changed)", "revert 1 ../x → error bad path",
				"undo → a/x.txt, a/y.txt", "undo → b.txt", "is a/x.txt=one| a/y.txt=two| b.txt=three| old.txt=before|"},
		},
		"changed by the user since": {
			[][]string{{"write new.txt one", "edit old.txt before after"}},
			[]string{"turn", "put old.txt mine", "revert 0 → new.txt, old.txt (it was changed since)", "is old.txt=mine|",
				"put new.txt theirs", "undo → new.txt (it was changed since)", "is new.txt=theirs| old.txt=mine|"},
		},
		"deleted by the user since": {
			[][]string{{"edit old.txt before after"}},
			[]string{"turn", "rm old.txt", "revert 0 → old.txt (it was changed since)", "is "},
		},
		"changed again by a later turn": {
			[][]string{{"edit old.txt before one"}, {"edit old.txt one two"}, nil},
			[]string{"turn", "turn", "turn", "revert 1 → old.txt (turn 2 changed it again: revert that one first, or go back to before this one)",
				"revert 0 → old.txt", "is old.txt=one|", "revert 1 → old.txt", "is old.txt=before|",
				"undo → old.txt", "undo → old.txt", "is old.txt=two|"},
		},
		"back to before a turn": {
			[][]string{{"edit old.txt before one", "write a.txt a"}, {"edit old.txt one two", "write b.txt b"}, {"edit old.txt two three"}},
			[]string{"turn", "turn", "turn", "since 2 → b.txt, old.txt", "is a.txt=a| old.txt=one|", "since 1 → a.txt, b.txt (it is so already), old.txt",
				"is old.txt=before|", "undo → a.txt, old.txt", "undo → b.txt, old.txt", "is a.txt=a| b.txt=b| old.txt=three|"},
		},
		"the user's change between two turns is not lost": {
			[][]string{{"edit old.txt before one"}, {"edit old.txt mine two", "edit old.txt mine two"}},
			[]string{"turn", "put old.txt mine", "turn", "is old.txt=two|", "since 1 → old.txt (somebody else changed it too, between these changes)",
				"is old.txt=two|", "revert 2 → old.txt", "is old.txt=mine|"},
		},
		"the user went back between two turns": {
			[][]string{{"edit old.txt before one"}, {"edit old.txt before two", "edit old.txt before two"}},
			[]string{"turn", "put old.txt before", "turn", "since 1 → old.txt", "is old.txt=before|"},
		},
		"a change that failed is none": {
			[][]string{{"edit old.txt nothing after"}},
			[]string{"turn", "revert 1 → error no file was changed", "revert 0 → error no file was changed", "undo → error no such revert"},
		},
		"changed and changed back is no change": {
			[][]string{{"edit old.txt before after", "edit old.txt after before", "write new.txt x"}},
			[]string{"turn", "revert 0 → new.txt", "is old.txt=before|"},
		},
		"moved": {
			[][]string{{"move old.txt d/new.txt"}},
			[]string{"turn", "is d/new.txt=before|", "revert 0 → d/new.txt, old.txt", "is old.txt=before|", "undo → d/new.txt, old.txt", "is d/new.txt=before|",
				"revert 0 old.txt → old.txt", "is d/new.txt=before| old.txt=before|"},
		},
		"moved to other letters": {
			[][]string{{"move old.txt OLD.txt"}},
			[]string{"turn", "is OLD.txt=before|", "revert 0 → OLD.txt, old.txt", "is old.txt=before|", "undo → OLD.txt, old.txt", "is OLD.txt=before|",
				"put OLD.txt mine", "revert 0 → OLD.txt (it was changed since), old.txt", "is OLD.txt=mine| old.txt=before|"},
		},
		"moved and then changed by the user": {
			[][]string{{"move old.txt new.txt"}},
			[]string{"turn", "put new.txt mine", "revert 0 → new.txt (it was changed since), old.txt", "is new.txt=mine| old.txt=before|"},
		},
		"deleted": {
			[][]string{{"write a/x.txt one", "write a/b/y.txt two"}, {"delete a", "delete old.txt"}},
			[]string{"turn", "turn", "is ", "revert 0 → a/b/y.txt, a/x.txt, old.txt", "is a/b/y.txt=two| a/x.txt=one| old.txt=before|",
				"undo → a/b/y.txt, a/x.txt, old.txt", "is ", "put old.txt mine", "revert 2 → a/b/y.txt, a/x.txt, old.txt (it was changed since)"},
		},
		"patched": {
			[][]string{{"write a.txt one", "patch --- a/old.txt|+++ b/old.txt|@@ -1 +1 @@|-before|+after|diff --git a/a.txt b/b.txt|rename from a.txt|rename to b.txt|--- a/a.txt|+++ b/b.txt|@@ -1 +1,2 @@| one|+two"},
				{"patch --- a/b.txt|+++ /dev/null|@@ -1,2 +0,0 @@|-one|-two|--- /dev/null|+++ b/c.txt|@@ -0,0 +1 @@|+three"}},
			[]string{"turn", "is b.txt=one|two| old.txt=after|", "turn", "is c.txt=three| old.txt=after|", "revert 0 → b.txt, c.txt", "is b.txt=one|two| old.txt=after|",
				"revert 1 → b.txt, old.txt", "is old.txt=before|", "undo → b.txt, old.txt", "undo → b.txt, c.txt", "since 1 → a.txt (it is so already), b.txt (it is so already), c.txt, old.txt", "is old.txt=before|"},
		},
		"a patch that does not fit is none": {
			[][]string{{"patch --- a/old.txt|+++ b/old.txt|@@ -1 +1 @@|-before|+after|--- a/x.txt|+++ b/x.txt|@@ -1 +1 @@|-one|+two"}},
			[]string{"turn", "is old.txt=before|", "revert 0 → error no file was changed"},
		},
		"an undo can be undone": {
			[][]string{{"edit old.txt before after"}},
			[]string{"turn", "revert 0 → old.txt", "undo → old.txt", "undo the last → old.txt", "is old.txt=before|", "undo → old.txt", "is old.txt=after|"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), edited(c.turns...)...)
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(w.root, name), []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("old.txt", "before")
			turns, last := []transcript.TurnID{""}, transcript.RevertID("")
			for _, step := range c.steps {
				step, want, _ := strings.Cut(step, " → ")
				f := strings.Split(step, " ")
				var r Revert
				switch f[0] {
				case "turn":
					turns = append(turns, w.run(say("go on")).Turn)
					continue
				case "put":
					put(f[1], f[2])
					continue
				case "rm":
					if err := os.Remove(filepath.Join(w.root, f[1])); err != nil {
						t.Fatal(err)
					}
					continue
				case "is":
					if got := files(t, w.root); got != strings.TrimPrefix(step, "is ") {
						t.Fatalf("the folder holds %q, want %q", got, step)
					}
					continue
				case "undo":
					r.Undo = true
					if step == "undo the last" {
						r.Revert = last
					}
				default:
					r = Revert{Turn: turns[f[1][0]-'0'], Since: f[0] == "since", Paths: f[2:]}
				}
				out, err := w.agent.Revert(t.Context(), r)
				got := told(out)
				if err != nil {
					got = "error " + err.Error()
				}
				for n, id := range turns[1:] {
					got = strings.ReplaceAll(got, "turn "+string(id), fmt.Sprintf("turn %d", n+1))
				}
				if got != want && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, want)) {
					t.Fatalf("%s came to %q, want %q\n%s", step, got, want, w.dump())
				}
				if out.Revert != "" {
					last = out.Revert
				}
			}
		})
	}
}

// guards S11, M4: what was taken back is told once, and what was put back again is not.
func TestTheModelIsToldOnceWhatTheUserReverted(t *testing.T) {
	w := newWorld(t, tools.All(), edited(
		[]string{"write a.txt a", "write b.txt b", "write c.txt c"}, nil, nil, nil, nil)...)
	undo, back := Revert{Undo: true}, func(paths ...string) Revert { return Revert{Paths: paths} }
	w.run(say("write"))
	for n, c := range []struct {
		reverts []Revert
		want    string
	}{
		{[]Revert{back("a.txt", "b.txt")}, "[The user reverted your changes to a.txt and b.txt.]\n\ngo on"},
		{[]Revert{back("c.txt"), undo}, "go on"},
		{[]Revert{undo, back("c.txt")}, "[The user reverted your changes to c.txt.]\n[The user put your changes to a.txt and b.txt back.]\n\ngo on"},
		{nil, "go on"},
	} {
		for _, r := range c.reverts {
			if _, err := w.agent.Revert(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		w.run(say("go on"))
		said := w.model.messages(t, n+3)
		if got := *said[len(said)-2+1].Content; got != c.want {
			t.Errorf("request %d: the model was told %q, want %q", n+3, got, c.want)
		}
	}
}

// guards C4, and that a revert belongs to no turn.
func TestARevertWaitsForNoTurnAndIsRefusedBesideOne(t *testing.T) {
	scripts := edited([]string{"write a.txt a"})
	w := newWorld(t, tools.All(), append(scripts, func(r *reply) { r.say("one"); r.hang() })...)
	first := w.run(say("write"))
	o := w.other(t)
	turn, ended := w.start(say("go on"))
	w.until(deltaEndsWith("one"))
	_, err := w.agent.Revert(t.Context(), Revert{Turn: first.Turn})
	if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Turn != turn.ID() {
		t.Errorf("a revert beside a turn: %v", err)
	}
	if _, err := o.agent.Revert(t.Context(), Revert{Turn: first.Turn}); !errors.Is(err, transcript.ErrLeased) {
		t.Errorf("a revert beside another daemon's turn: %v", err)
	}
	turn.Stop(ErrStopped)
	<-ended
	r, err := o.agent.Revert(t.Context(), Revert{Turn: first.Turn})
	if err != nil || told(r) != "a.txt" {
		t.Errorf("the other daemon's revert came to %s, %v", told(r), err)
	}
	w.until(is[*transcript.RevertEnded]) // told to whoever follows
	if r, err := w.agent.Revert(t.Context(), Revert{Undo: true}); err != nil || told(r) != "a.txt" {
		t.Errorf("this daemon's undo of it came to %s, %v", told(r), err)
	}
}

// document is an editor's open document.
type document struct {
	mu    sync.Mutex
	path  string
	text  string
	apply func()
}

func (d *document) Paths() []string { return []string{d.path} }
func (d *document) Text(path string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text, path == d.path
}

func (d *document) Apply(_ context.Context, _, before, after string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.apply != nil {
		d.apply()
	}
	if d.text != before {
		return errors.New("stale")
	}
	d.text = after
	return nil
}

// edits with an open document: the world's overlay.
type editing struct {
	*world
	doc *document
}

func (e *editing) Overlay(string) workspace.Overlay { return e.doc }

func newEditing(t *testing.T, doc *document, scripts ...func(*reply)) *editing {
	w := newWorld(t, tools.All(), scripts...)
	e := &editing{w, doc}
	w.agent.o.Client = e
	return e
}

// An open document is what is compared and what is changed; the disk stays as it is.
func TestARevertOfAnOpenDocumentGoesThroughTheEditor(t *testing.T) {
	doc := &document{path: "old.txt", text: "before\n"}
	w := newEditing(t, doc, edited([]string{"edit old.txt before after", "write new.txt one"})...)
	if err := os.WriteFile(filepath.Join(w.root, "old.txt"), []byte("saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(say("edit"))
	c, err := w.agent.Changes(t.Context(), "", "")
	if err != nil || len(c.Files) != 2 || !c.Files[1].Buffer || c.Files[1].Now != NowAsLeft || c.Files[0].State() != "created" {
		t.Errorf("the turn's changes are %+v, %v", c, err)
	}
	r, err := w.agent.Revert(t.Context(), Revert{})
	if err != nil || told(r) != "new.txt, old.txt" || !r.Files[1].Buffer || doc.text != "before\n" {
		t.Fatalf("reverted %s, %v: the document is %q", told(r), err, doc.text)
	}
	if got := files(t, w.root); got != "old.txt=saved|" {
		t.Errorf("the disk holds %s", got)
	}
	doc.text = "typed\n"
	r, err = w.agent.Revert(t.Context(), Revert{Undo: true})
	if err != nil || told(r) != "new.txt, old.txt (it was changed since)" || doc.text != "typed\n" {
		t.Errorf("undone %s, %v: the document is %q", told(r), err, doc.text)
	}
}

// A file that a turn made and that is open now is deleted when the editor has nothing unsaved in it.
func TestAFileThatIsOpenIsDeletedOnlyWhenItIsSaved(t *testing.T) {
	doc := &document{path: "other.txt"}
	w := newEditing(t, doc, edited([]string{"write new.txt one"})...)
	w.run(say("write"))
	doc.path, doc.text = "new.txt", "one\nand more\n"
	r, err := w.agent.Revert(t.Context(), Revert{})
	if err != nil || told(r) != "new.txt (it was changed since)" {
		t.Errorf("with unsaved text: %s, %v", told(r), err)
	}
	doc.text = "one\n"
	r, err = w.agent.Revert(t.Context(), Revert{})
	if err != nil || told(r) != "new.txt" || files(t, w.root) != "" {
		t.Errorf("with saved text: %s, %v; the disk holds %s", told(r), err, files(t, w.root))
	}
}

// guards C3, invariant 1
func TestARevertIsRecordedBeforeAFileIsTouched(t *testing.T) {
	doc := &document{path: "old.txt", text: "before\n"}
	w := newEditing(t, doc, edited([]string{"edit old.txt before after"})...)
	w.run(say("edit"))
	var kinds []transcript.Kind
	doc.apply = func() {
		entries, err := w.store.EntriesOf(context.Background(), w.s.ID(), transcript.KindRevertStarted, transcript.KindRevertEnded)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			kinds = append(kinds, e.Kind())
		}
	}
	if _, err := w.agent.Revert(t.Context(), Revert{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kinds, []transcript.Kind{transcript.KindRevertStarted}) {
		t.Errorf("when the document was changed the log held %v of the revert", kinds)
	}
}

// A fork has the changes of the turns that it copied, under their new names, and is told what was reverted before.
func TestAForkKnowsWhatWasChangedAndReverted(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"write a.txt a", "write b.txt b"}, nil)...)
	w.run(say("write"))
	r, err := w.agent.Revert(t.Context(), Revert{Paths: []string{"a.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.agent.Fork(t.Context(), w.s.ID(), "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.agent.Changes(t.Context(), s.ID(), "")
	if err != nil || len(c.Files) != 2 || c.Files[0].Now != NowReverted || c.Files[1].Now != NowAsLeft || c.Turn == r.Turn {
		t.Errorf("the fork's changes are %+v, %v", c, err)
	}
	if u, err := w.agent.Revert(t.Context(), Revert{Session: s.ID(), Undo: true}); err != nil || told(u) != "a.txt" || u.Session != s.ID() {
		t.Errorf("the undo in the fork came to %s, %v", told(u), err)
	}
	w.s = s
	w.run(say("go on"))
	said := w.model.messages(t, 3)
	if got := *said[len(said)-1].Content; got != "go on" {
		t.Errorf("the fork's model was told %q", got)
	}
}
