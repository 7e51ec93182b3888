//go:build unix

package agent

import (
	"os"
	"path/filepath"
	"testing"

	"fermata/tools"
)

// A link comes back as a link, and what it leads to is not touched on the way.
func TestALinkThatWasDeletedOrMovedComesBackAsALink(t *testing.T) {
	w := newWorld(t, tools.All(), edited([]string{"delete away", "move here there/here"})...)
	if err := os.WriteFile(filepath.Join(w.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	leads := map[string]string{"away": "/etc/passwd", "here": "old.txt"}
	for name, to := range leads {
		if err := os.Symlink(to, filepath.Join(w.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.run(say("delete and move"))
	if r, err := w.agent.Revert(t.Context(), Revert{}); err != nil || told(r) != "away, here, there/here" {
		t.Fatalf("%s, %v", told(r), err)
	}
	for name, to := range leads {
		if got, err := os.Readlink(filepath.Join(w.root, name)); err != nil || got != to {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
	if r, err := w.agent.Revert(t.Context(), Revert{Undo: true}); err != nil || told(r) != "away, here, there/here" {
		t.Fatalf("%s, %v", told(r), err)
	}
	if _, err := os.Lstat(filepath.Join(w.root, "away")); !os.IsNotExist(err) {
		t.Errorf("the undo left the link: %v", err)
	}
	if got, err := os.Readlink(filepath.Join(w.root, "there", "here")); err != nil || got != "old.txt" {
		t.Errorf("the undo left %q, %v", got, err)
	}
}
