package transcript

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// seeing is a session whose model has read "old" in a file, in another one that its turn quotes, and in a queued message.
func seeing(t testing.TB, s *Store) (l *Log, sums []string) {
	t.Helper()
	l = newSession(t, s)
	put := func(content string) string {
		sum, err := l.PutBlob(t.Context(), []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		return sum
	}
	quoted := prompt(NewTurnID(), "Read.")
	quoted.Prompt = append(quoted.Prompt, PromptPart{Type: "file", Path: "q", Text: "quoted", SHA256: put("quoted")})
	turn := quoted.Turn
	sent := send(t, l, sendOf(turn, 1, quoted))
	conclude(t, l, turn, 1, sent.Request, Complete, "", call("c", "read_file", `{}`))
	m := NewMessageID()
	waits := []PromptPart{{Type: "file", Path: "m", Text: "message", SHA256: put("message")}}
	add(t, l, &ToolStarted{Turn: turn, Step: 1, Call: "c", Name: "read_file", ReadOnly: true},
		&ToolSettled{Turn: turn, Step: 1, Call: "c", Name: "read_file", State: ToolDone, Output: "old",
			Seen: []FileState{{Path: "f", SHA256: put("old")}, {Path: "long", SHA256: shaOf([]byte("was too long to be kept"))}}},
		&MessageQueued{Message: m, Prompt: waits})
	next := sendOf(turn, 2, nil)
	next.Delivered = []*MessageDelivered{{Message: m, Turn: turn, Step: 2, Prompt: waits}}
	sent = send(t, l, next)
	conclude(t, l, turn, 2, sent.Request, Complete, TurnCompleted, text("Read."))
	return l, sums
}

func wantBlobs(t *testing.T, s *Store, sums []string) {
	t.Helper()
	for _, sum := range sums {
		if _, err := s.Blob(t.Context(), sum); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatAModelHasReadLastsAsLongAsItsSessions(t *testing.T) {
	s := openStore(t, Options{})
	l, sums := seeing(t, s)
	fork, err := s.Fork(t.Context(), l.Session(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), l.Session()); err != nil {
		t.Fatal(err)
	}
	wantBlobs(t, s, sums)
	wantClean(t, s)
	if _, err := s.Delete(t.Context(), fork.Session()); err != nil {
		t.Fatal(err)
	}
	for _, sum := range sums {
		if _, err := s.Blob(t.Context(), sum); !errors.Is(err, ErrNoBlob) {
			t.Errorf("after both were deleted: %v", err)
		}
	}
}

func TestWhatAModelHasReadIsSalvaged(t *testing.T) {
	s := openStore(t, Options{})
	_, sums := seeing(t, s)
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "new.db")
	if _, err := Salvage(t.Context(), path, to, Options{}); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, to, Options{})
	wantBlobs(t, again, sums)
	wantClean(t, again)
}

func TestSightingsAreReadOnceEach(t *testing.T) {
	s := openStore(t, Options{})
	l, _ := seeing(t, s)
	all, upTo, err := s.Sightings(t.Context(), l.Session(), 0)
	if err != nil || upTo != l.Seq() {
		t.Fatal(upTo, l.Seq(), err)
	}
	if got := kinds(all); got != "turn.started tool.settled message.delivered" {
		t.Errorf("kinds %s", got)
	}
	none, same, err := s.Sightings(t.Context(), l.Session(), upTo)
	if err != nil || none != nil || same != upTo {
		t.Error(none, same, err)
	}
	exchange(t, l, "And?", "Yes.")
	more, _, err := s.Sightings(t.Context(), l.Session(), upTo)
	if err != nil || len(more) != 1 || slices.ContainsFunc(more, func(e Entry) bool { return e.Seq <= upTo }) {
		t.Error(kinds(more), err)
	}
	_, _, err = s.Sightings(t.Context(), "s_none", 0)
	wantErr(t, err, ErrNoSession)
}

func BenchmarkSightingsOf10000Entries(b *testing.B) {
	s := openStore(b, Options{})
	l := tenThousand(b, s, 5)
	for b.Loop() {
		if _, _, err := s.Sightings(b.Context(), l.Session(), 0); err != nil {
			b.Fatal(err)
		}
	}
}
