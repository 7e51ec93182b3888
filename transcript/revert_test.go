package transcript

import (
	"errors"
	"strings"
	"testing"
)

// revertable is a session with a turn that has ended, and names of blobs for it.
func revertable(t *testing.T, s *Store) (l *Log, turn TurnID, blob func(string) string) {
	t.Helper()
	l = newSession(t, s)
	turn, _ = exchange(t, l, "q", "yes")
	return l, turn, func(text string) string {
		sum, err := l.PutBlob(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
}

// guards C3, C2
func TestRepairEndsARevertByEvidence(t *testing.T) {
	s := openStore(t, Options{})
	l, turn, blob := revertable(t, s)
	before, after, else_ := blob("before"), blob("after"), blob("else")
	now := map[string]string{"done": after, "kept": before, "else": else_, "made": after, "open": before, "odd": ""}
	started := add(t, l, &RevertStarted{Of: turn, Files: []RevertedFile{
		{Path: "done", Before: before, After: after}, {Path: "kept", Before: before, After: after},
		{Path: "else", Before: before, After: after}, {Path: "made", After: after}, {Path: "gone", Before: before},
		{Path: "open", Before: before, After: after, Buffer: true}, {Path: "odd", Before: before, After: after},
	}})[0].Seq
	out, err := l.Repair(t.Context(), func(path string) (string, bool, error) {
		if path == "odd" {
			return "", false, errors.New("a folder")
		}
		sum, ok := now[path]
		return sum, ok, nil
	})
	if err != nil || len(out) != 1 {
		t.Fatal(out, err)
	}
	ended, _ := out[0].Body.(*RevertEnded)
	if ended == nil || ended.Revert != started || ended.Cause != CauseDaemonDied {
		t.Fatalf("%+v", out[0].Body)
	}
	var got []string
	for _, f := range ended.Files {
		got = append(got, f.Path+" "+string(f.State))
	}
	if want := "done reverted, kept kept, else unknown, made reverted, gone reverted, open unknown, odd unknown"; strings.Join(got, ", ") != want {
		t.Errorf("the files are %s, want %s", strings.Join(got, ", "), want)
	}
	if out, err := l.Repair(t.Context(), nil); err != nil || out != nil {
		t.Errorf("repaired twice: %v, %v", out, err)
	}
	exchange(t, l, "and now", "yes")
	if rep := wantClean(t, s); len(rep.Open) != 0 {
		t.Errorf("still open: %v", rep.Open)
	}
}

// guards invariant 2: what a revert does is part of no turn.
func TestARevertStartsOnlyBetweenTurns(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, _ := start(t, l, "q")
	if _, err := l.Append(t.Context(), &RevertStarted{Of: turn}); !errors.Is(err, ErrTurnOpen) {
		t.Errorf("a revert within a turn: %v", err)
	}
	add(t, l, &TurnEnded{Turn: turn, Outcome: TurnStopped})
}

// guards C5: a revert that has not ended is not copied, one that has keeps its own names.
func TestAForkCopiesRevertsThatHaveEnded(t *testing.T) {
	s := openStore(t, Options{})
	l, turn, blob := revertable(t, s)
	file := RevertedFile{Path: "a", Before: blob("b"), After: blob("a")}
	first := add(t, l, &RevertStarted{Of: turn, Files: []RevertedFile{file}})[0].Seq
	add(t, l, &RevertEnded{Revert: first, Files: []RevertFate{{Path: "a", State: RevertDone}}})
	second := add(t, l, &RevertStarted{Undoes: first, Restores: true, Files: []RevertedFile{file}})[0].Seq
	forked := fork(t, s, l.Session(), "")
	add(t, l, &RevertEnded{Revert: second, Files: []RevertFate{{Path: "a", State: RevertKept}}})
	entries, err := s.EntriesOf(t.Context(), forked.Session(), KindRevertStarted, KindRevertEnded)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	b, ended := entries[0].Body.(*RevertStarted), entries[1].Body.(*RevertEnded)
	if b.Of == turn || b.Of == "" || ended.Revert != entries[0].Seq || entries[0].Seq == first && forked.Session() == l.Session() {
		t.Errorf("the copies are %+v and %+v", b, ended)
	}
	if _, err := s.Delete(t.Context(), l.Session()); err != nil { // the fork keeps its blobs
		t.Fatal(err)
	}
	wantClean(t, s)
}

func TestRevertsAreVerified(t *testing.T) {
	s := openStore(t, Options{})
	l, turn, blob := revertable(t, s)
	add(t, l, &RevertStarted{Of: turn, Files: []RevertedFile{{Path: "a", Before: blob("b")}}},
		&RevertEnded{Revert: 3}, &RevertStarted{Of: turn, Files: []RevertedFile{{Path: "a", After: strings.Repeat("ab", 32)}}})
	rep, err := s.Verify(t.Context(), knownEncoders)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range rep.Problems {
		all = append(all, p.What)
	}
	for _, want := range []string{"the revert of entry 3 ended without having started, or twice", "blob abab"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("verify does not say %q but %q", want, all)
		}
	}
	if len(rep.Open) != 1 {
		t.Errorf("the session with a revert that has not ended is not open: %+v", rep)
	}
}

func TestATranscriptShowsWhatWasReverted(t *testing.T) {
	s := openStore(t, Options{})
	l, turn, _ := revertable(t, s)
	at := add(t, l, &RevertStarted{Of: turn, Files: []RevertedFile{{Path: "a_b.go"}, {Path: "c.go"}}})[0].Seq
	add(t, l, &RevertEnded{Revert: at, Files: []RevertFate{{Path: "a_b.go", State: RevertDone}, {Path: "c.go", State: RevertKept, Why: "it was *saved*"}}})
	undo := add(t, l, &RevertStarted{Undoes: at, Restores: true, Files: []RevertedFile{{Path: "a_b.go"}}})[0].Seq
	add(t, l, &RevertEnded{Revert: undo, Files: []RevertFate{{Path: "a_b.go", State: RevertDone}}})
	entries, err := s.Entries(t.Context(), l.Session(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Session(t.Context(), l.Session())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	lines, err := Markdown(&b, info, entries)
	if err != nil {
		t.Fatal(err)
	}
	want := "*You reverted the changes of turn* `" + string(turn) + "`\n\n+ `a_b.go`: reverted\n+ `c.go`: kept, it was \\*saved\\*\n\n" +
		"*You undid a revert*\n\n+ `a_b.go`: put back\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("the transcript is\n%s", b.String())
	}
	for _, ref := range lines {
		if line := strings.Split(b.String(), "\n")[ref.Line-1]; ref.Seq == undo && line != "*You undid a revert*" {
			t.Errorf("entry %d is at %q", undo, line)
		}
	}
}
