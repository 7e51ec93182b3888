package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// thinking is an editor that does not come to make an edit: it says when it is asked, and waits.
type thinking struct {
	path, text string
	asked      chan struct{}
}

func (d *thinking) Paths() []string                  { return []string{d.path} }
func (d *thinking) Text(path string) (string, bool)  { return d.text, path == d.path }
func (d *thinking) Overlay(string) workspace.Overlay { return d }
func (d *thinking) Apply(ctx context.Context, _, _, _ string) error {
	close(d.asked)
	<-ctx.Done()
	return context.Cause(ctx)
}

// guards S7, S14, C3: a patch that is stopped between two files has changed none, and says so.
func TestAPatchThatIsStoppedBetweenTwoFilesIsPutBack(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"patch --- a/old.txt|+++ b/old.txt|@@ -1 +1 @@|-before|+after|--- a/z.txt|+++ b/z.txt|@@ -1 +1 @@|-open|+changed"}, nil)...)
	d := &thinking{"z.txt", "open\n", make(chan struct{})}
	w.editor = d
	if err := os.WriteFile(filepath.Join(w.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	turn, report := w.start(say("patch"))
	<-d.asked
	if got := files(t, w.root); got != "old.txt=after|" {
		t.Errorf("at the stop the folder holds %s", got)
	}
	turn.Stop(ErrStopped)
	if r := <-report; r.Outcome != transcript.TurnStopped {
		t.Errorf("%+v", r)
	}
	if got := files(t, w.root); got != "old.txt=before|" {
		t.Errorf("after the stop the folder holds %s", got)
	}
	w.run(say("go on"))
	said := w.model.messages(t, 2)
	want := "apply_patch: stopped before z.txt was changed\nNothing was changed: put back old.txt"
	if got := *said[2].Content; got != want {
		t.Errorf("the model is told %q, want %q", got, want)
	}
	c, err := w.agent.Changes(t.Context(), "", turn.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files {
		if f.Now != NowReverted {
			t.Errorf("%+v", f)
		}
	}
}

// What would be done is in the question, as git writes it, and nothing is done before the answer.
func TestTheQuestionShowsWhatAPatchAMoveOrADeletionWouldDo(t *testing.T) {
	for name, tt := range map[string]struct{ call, diff string }{
		"patch": {"patch --- a/old.txt|+++ b/old.txt|@@ -1 +1 @@|-before|+after|diff --git a/x.sh b/x.sh|new file mode 100755|--- /dev/null|+++ b/x.sh|@@ -0,0 +1 @@|+ls",
			"--- a/old.txt\n+++ b/old.txt\n@@ -1,1 +1,1 @@\n-before\n+after\ndiff --git a/x.sh b/x.sh\nnew file mode 100755\n--- /dev/null\n+++ b/x.sh\n@@ -0,0 +1,1 @@\n+ls\n"},
		"move":   {"move d e", "diff --git a/d/f b/e/f\nrename from d/f\nrename to e/f\n"},
		"delete": {"delete d", "--- a/d/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-text\n"},
		"rename and change": {"patch diff --git a/old.txt b/new.txt|rename from old.txt|rename to new.txt|--- a/old.txt|+++ b/new.txt|@@ -1 +1 @@|-before|+after",
			"diff --git a/old.txt b/new.txt\nrename from old.txt\nrename to new.txt\n--- a/old.txt\n+++ b/new.txt\n@@ -1,1 +1,1 @@\n-before\n+after\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), edited([]string{tt.call}, []string{tt.call})...)
			for file, text := range map[string]string{"old.txt": "before\n", "d/f": "text\n"} {
				file = filepath.Join(w.root, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var asked Question
			w.ask = func(_ context.Context, q Question) (Reply, error) {
				asked = q
				return Reply{Answer: permit.DenyCall}, nil
			}
			w.run(say("change"))
			if asked.Diff != tt.diff {
				t.Errorf("the question shows\n%s\nwant\n%s", asked.Diff, tt.diff)
			}
			if got := files(t, w.root); got != "d/f=text| old.txt=before|" {
				t.Errorf("denied, and the folder holds %s", got)
			}
			w.ask = func(context.Context, Question) (Reply, error) { return Reply{Answer: permit.AllowOnce}, nil }
			rep := w.run(say("change"))
			c, err := w.agent.Changes(t.Context(), "", rep.Turn)
			if err != nil {
				t.Fatal(err)
			}
			if diff, err := w.agent.Unified(t.Context(), c); err != nil || string(diff) != tt.diff {
				t.Errorf("what was done shows %v\n%s\nwant\n%s", err, diff, tt.diff)
			}
		})
	}
}

// A file that was only moved has not been read: it is not replaced whole. One that was read is still known under its new name.
func TestAMoveIsNoRead(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"move old.txt new.txt", "write new.txt mine"}, []string{"write b.txt b", "move b.txt c.txt", "write c.txt c"})...)
	if err := os.WriteFile(filepath.Join(w.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(say("move"))
	w.run(say("move"))
	if got := files(t, w.root); got != "c.txt=c| new.txt=before|" {
		t.Errorf("the folder holds %s", got)
	}
}

// The permissions of a file come back with it.
func TestAFileThatComesBackHasItsPermissions(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"delete old.txt"})...)
	file := filepath.Join(w.root, "old.txt")
	if err := os.WriteFile(file, []byte("before\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	w.run(say("delete"))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Fatalf("it is still there: %v", err)
	}
	if r, err := w.agent.Revert(t.Context(), Revert{}); err != nil || told(r) != "old.txt" {
		t.Fatalf("%s, %v", told(r), err)
	}
	if after, err := os.Stat(file); err != nil || after.Mode() != before.Mode() {
		t.Errorf("it came back as %v, %v", after, err)
	}
}

// guards C3: of a move it is recorded what goes and what comes.
func TestAChangeIsRecordedWithWhereItCameFrom(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"move old.txt new.txt"})...)
	if err := os.WriteFile(filepath.Join(w.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(say("move"))
	entries, err := w.store.EntriesOf(t.Context(), w.s.ID(), transcript.KindFileChanged)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	gone, come := entries[0].Body.(*transcript.FileChanged), entries[1].Body.(*transcript.FileChanged)
	if gone.Path != "old.txt" || gone.After != "" || come.Path != "new.txt" || come.From != "old.txt" || come.Before != "" || come.After != gone.Before {
		b, _ := json.Marshal([]any{gone, come})
		t.Errorf("recorded %s", strings.ReplaceAll(string(b), `,"`, ` ,"`))
	}
}

// The two sides of a move are listed, and name each other.
func TestAMovedFileIsKnownAsMoved(t *testing.T) {
	for name, tt := range map[string]struct {
		calls []string
		want  string // of the files: path, state, where from and where to
	}{
		"moved":                {[]string{"move old.txt new.txt"}, "new.txt created <old.txt|old.txt deleted >new.txt|"},
		"and changed":          {[]string{"patch diff --git a/old.txt b/new.txt|rename from old.txt|rename to new.txt|--- a/old.txt|+++ b/new.txt|@@ -1 +1 @@|-before|+after"}, "new.txt created <old.txt|old.txt deleted >new.txt|"},
		"moved twice":          {[]string{"move old.txt mid.txt", "move mid.txt new.txt"}, "new.txt created <old.txt|old.txt deleted >new.txt|"},
		"moved back":           {[]string{"move old.txt new.txt", "move new.txt old.txt"}, ""},
		"moved, and made anew": {[]string{"move old.txt new.txt", "write old.txt other"}, "new.txt created|old.txt changed|"},
		"moved and deleted":    {[]string{"move old.txt new.txt", "delete new.txt"}, "old.txt deleted|"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tools.All(), edited(tt.calls)...)
			w.put("old.txt", "before\n")
			w.ask = func(context.Context, Question) (Reply, error) { return Reply{Answer: permit.AllowOnce}, nil }
			c, err := w.agent.Changes(t.Context(), "", w.run(say("change")).Turn)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range c.Files {
				got.WriteString(f.Path + " " + f.State())
				if f.From != "" {
					got.WriteString(" <" + f.From)
				}
				if f.To != "" {
					got.WriteString(" >" + f.To)
				}
				got.WriteString("|")
			}
			if got.String() != tt.want {
				t.Errorf("the changes are %s and should be %s", got.String(), tt.want)
			}
		})
	}
}
