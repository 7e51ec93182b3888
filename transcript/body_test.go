package transcript

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// net/http closes the body of a request whose connection broke while its writing goroutine still reads from it.
//
// guards M2
func TestABodyMayBeClosedWhileItIsRead(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	_, sent := start(t, l, prose(1<<20))
	for range 20 {
		body, _, err := s.Body(t.Context(), sent.Request)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, body) })
		wg.Go(func() { _ = body.Close() })
		wg.Wait()
		if n, err := body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("after the close %d bytes were read, %v", n, err)
		}
	}
}

// Of an answer of reasoning alone the encoder sends nothing: the messages around it are joined as if it were not there, also
// where a batch of fragments ends and after a restart, and the part that says it has no length.
//
// guards T2, M2, M3, P3
func TestAMessageOfWhichNothingIsSentLeavesNoTraceInTheBody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := openAt(t, path, Options{})
	l := newSession(t, s)
	var last Sent
	var want []string
	for i := range batchFragments + 3 {
		if i%10 == 5 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, path, Options{})
			l = reopen(t, s, l.Session())
		}
		turn, sent := start(t, l, "q")
		want, last = append(want, "user q"), sent
		part := text("a")
		if i%3 == 0 {
			part = reasoning("Hm.")
		} else {
			want = append(want, "assistant a")
		}
		conclude(t, l, turn, 1, sent.Request, Stopped, TurnStopped, part)
	}
	body, n, err := s.Body(t.Context(), last.Request)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(body)
	if err != nil || int64(len(sent)) != n {
		t.Fatalf("%d bytes of %d: %v", len(sent), n, err)
	}
	var got struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatalf("%v: %s", err, sent)
	}
	var lines []string
	for _, m := range got.Messages {
		lines = append(lines, m.Role+" "+m.Content)
	}
	if !slices.Equal(lines, want) { // the last answer says nothing either
		t.Errorf("the body holds %q, want %q", lines, want)
	}
	in, err := s.Input(t.Context(), last.Request)
	if err != nil || !in.Verified || !bytes.Equal(in.Body, sent) {
		t.Fatalf("the input is another one: %v, verified %v", err, in.Verified)
	}
	nothing := 0
	for _, p := range in.Parts {
		switch piece := in.Body[p.Offset : p.Offset+p.Length]; {
		case p.Kind == "message" && p.Length == 0:
			nothing++
		case p.Kind == "message" && !json.Valid(piece):
			t.Errorf("part of entry %d is %s", p.Source, piece)
		}
	}
	if messages, err := s.Messages(t.Context(), last.Request); err != nil || len(messages) != len(lines)+nothing || nothing == 0 {
		t.Errorf("%d messages, %d of them nothing: %v", len(messages), nothing, err)
	}
	wantClean(t, s)
}
