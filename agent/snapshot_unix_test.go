//go:build unix

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tools"
)

// What a command did to files is found out after it has run: those that the model knows, and in a small workspace all that are
// not ignored.
func TestWhatACommandDidToFilesIsRecordedAndCanBeTakenBack(t *testing.T) {
	w := newWorld(t, tools.All(), edited(
		[]string{"run echo after>old.txt&& echo new>new.txt&& echo x>build.log&& rm gone.txt", "run exit 3"}, []string{"run echo more>>new.txt; exit 3"})...)
	for name, text := range map[string]string{"old.txt": "before\n", "gone.txt": "gone\n", "same.txt": "same\n", ".gitignore": "*.log\n"} {
		if err := os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := w.run(say("run"))
	c, err := w.agent.Changes(t.Context(), "", "")
	var got []string
	for _, f := range c.Files {
		got = append(got, fmt.Sprint(f.Path, " ", f.State(), " ", f.Command, " ", f.Now))
	}
	if want := "gone.txt deleted true as_left, new.txt created true as_left, old.txt changed true as_left"; err != nil || strings.Join(got, ", ") != want {
		t.Fatalf("the command changed %s, %v; want %s\n%s", strings.Join(got, ", "), err, want, w.dump())
	}
	w.run(say("run")) // a command that fails has changed what it changed
	if c, err = w.agent.Changes(t.Context(), "", ""); err != nil || len(c.Files) != 1 || c.Files[0].State() != "changed" {
		t.Errorf("the second command changed %+v, %v", c.Files, err)
	}
	r, err := w.agent.Revert(t.Context(), Revert{Turn: first.Turn, Since: true})
	if err != nil || told(r) != "gone.txt, new.txt, old.txt" {
		t.Errorf("reverted %s, %v", told(r), err)
	}
	if got := files(t, w.root); got != ".gitignore=*.log| build.log=x| gone.txt=gone| old.txt=before| same.txt=same|" {
		t.Errorf("the folder holds %s", got)
	}
}

// In a workspace with too many files only those are looked at that the model knows.
func TestInALargeWorkspaceACommandsChangesOfKnownFilesAreRecorded(t *testing.T) {
	w := newWorld(t, tools.All(), edited(
		[]string{"write known.txt one", "run echo two>known.txt&& echo two>unknown.txt"})...)
	for i := range snapshotFiles {
		if err := os.WriteFile(filepath.Join(w.root, fmt.Sprintf("f%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.root, "unknown.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(say("run"))
	c, err := w.agent.Changes(t.Context(), "", "")
	if err != nil || len(c.Files) != 1 || c.Files[0].Path != "known.txt" || c.Files[0].State() != "created" || c.Files[0].Command {
		t.Fatalf("the turn changed %+v, %v", c.Files, err)
	}
	if _, after, err := w.agent.Contents(t.Context(), c, c.Files[0]); err != nil || string(after) != "two\n" {
		t.Errorf("it left %q, %v", after, err)
	}
}
