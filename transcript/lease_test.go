package transcript

import (
	"errors"
	"path/filepath"
	"testing"
)

// guards C4
func TestAProcessThatSleptThroughItsLeaseCannotWriteAfterAnotherHasCome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	a, b := openAt(t, path, Options{Owner: "a"}), openAt(t, path, Options{Owner: "b"})
	la := newSession(t, a)
	if err := la.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn, sent := start(t, la, "x")
	a.alive.hide()
	lb := reopen(t, b, la.Session())
	if err := lb.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := lb.Repair(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := lb.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := la.Journal(sent.Request, turn, 1, PartText, "ghost"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("journal: %v", err)
	}
	if _, err := la.Append(t.Context(), &ToolStarted{Turn: turn, Step: 1, Call: "c1"}); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("append: %v", err)
	}
}
