package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// wreck is a database with sessions of every kind, closed or as a killed process leaves it, and what it held.
type wreck struct {
	path    string
	entries map[SessionID][]Entry
	bodies  map[RequestID]string
}

func newWreck(t *testing.T, closed bool) *wreck {
	t.Helper()
	s := openStore(t, Options{})
	w := &wreck{path: s.Path(), entries: map[SessionID][]Entry{}, bodies: map[RequestID]string{}}
	gone := newSession(t, s)
	exchange(t, gone, "private", "private")
	if _, err := s.Delete(t.Context(), gone.Session()); err != nil {
		t.Fatal(err)
	}
	logs := []*Log{talk(t, s), talk(t, s), newSession(t, s)}
	for i := range 8 {
		exchange(t, logs[2], fmt.Sprint("question ", i, " ", prose(900)), fmt.Sprint("answer ", i, " ", prose(3000)))
	}
	if err := s.Rename(t.Context(), logs[1].Session(), "renamed"); err != nil {
		t.Fatal(err)
	}
	turn, sent := start(t, logs[0], "and the last")
	if err := logs[0].Journal(sent.Request, turn, 1, PartText, "half a wo"); err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		w.entries[l.Session()] = entries(t, s, l.Session())
		for _, e := range w.entries[l.Session()] {
			if b, ok := e.Body.(*RequestSent); ok {
				w.bodies[b.Request] = string(readBody(t, s, b.Request))
			}
		}
	}
	if closed {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	dead := filepath.Join(t.TempDir(), "dead.db")
	for _, suffix := range []string{"", "-wal"} {
		w.change(t, w.path+suffix, dead+suffix, func(b []byte) []byte { return b })
	}
	w.path = dead
	return w
}

// change writes a file as a function of another.
func (w *wreck) change(t *testing.T, from, to string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// salvage brings back what it can, wants nothing in it that was not written, and returns how many entries there are.
func (w *wreck) salvage(t *testing.T, path string) (*Store, Salvaged, int) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "new.db")
	rep, err := Salvage(t.Context(), path, to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := openAt(t, to, Options{})
	n := 0
	for _, r := range rep.Sessions {
		want, known := w.entries[r.Session]
		if !known && !r.NoID {
			t.Errorf("session %s was never there", r.Session)
		}
		if r.Entries == 0 || r.NoID {
			continue
		}
		for _, e := range entries(t, s, r.Session) {
			if n++; e.Seq > int64(len(want)) || e.Hash != want[e.Seq-1].Hash || e.Damaged != "" && r.Changed == 0 {
				t.Errorf("session %s has an entry %d %s that was not written so: %s", r.Session, e.Seq, e.Kind(), e.Damaged)
			}
		}
		if r.Whole() && r.Entries != len(want) && r.Lost == 0 {
			t.Logf("session %s seems whole with %d entries of %d", r.Session, r.Entries, len(want))
		}
		// It opens, is repaired and goes on.
		l := reopen(t, s, r.Session)
		if _, err := l.Repair(t.Context(), nil); err != nil {
			t.Errorf("repair %s: %v", r.Session, err)
		}
		exchange(t, l, "go on", "good")
	}
	return s, rep, n
}

func (w *wreck) total() (n int) {
	for _, e := range w.entries {
		n += len(e)
	}
	return n
}

// guards C5, P3, P4: nothing is lost on the way, whatever of the two files is there.
func TestSalvageBringsBackAllThatIsThere(t *testing.T) {
	for name, closed := range map[string]bool{"a closed database": true, "one of a killed process": false} {
		t.Run(name, func(t *testing.T) {
			w := newWreck(t, closed)
			before, _ := os.ReadFile(w.path)
			s, rep, n := w.salvage(t, w.path)
			if after, _ := os.ReadFile(w.path); string(after) != string(before) {
				t.Error("the damaged file was touched")
			}
			if n != w.total() || len(rep.Sessions) != len(w.entries) {
				t.Errorf("%d entries of %d, %d sessions of %d", n, w.total(), len(rep.Sessions), len(w.entries))
			}
			titles := map[string]bool{}
			for _, r := range rep.Sessions {
				titles[r.Title] = true
				if !r.Whole() {
					t.Errorf("not whole: %+v", r)
				}
			}
			if !titles["renamed"] {
				t.Errorf("the titles are %v", titles)
			}
			for id, body := range w.bodies {
				if string(readBody(t, s, id)) != body {
					t.Errorf("the body of %s is another", id)
				}
			}
			wantClean(t, s)
			_, err := Salvage(t.Context(), w.path, s.Path(), Options{})
			wantErr(t, err, fs.ErrExist)
		})
	}
}

// guards C1, P4
func TestSalvageKeepsWhatWasBeingSaid(t *testing.T) {
	w := newWreck(t, false)
	s, _, _ := w.salvage(t, w.path)
	list, _, err := s.Sessions(t.Context(), SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		for _, e := range entries(t, s, i.ID) {
			if a, ok := e.Body.(*Answer); ok && a.Text() == "half a wo" && a.Cause == CauseDaemonDied {
				return
			}
		}
	}
	t.Error("the journalled text is in no answer")
}

// Each page in turn is lost. What the others hold comes back.
//
// guards C5, P4
func TestSalvageLosesNoMoreThanThePagesThatAreGone(t *testing.T) {
	w := newWreck(t, true)
	const page = 4096
	fi, err := os.Stat(w.path)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for n := 0; n < int(fi.Size()/page); n += 2 { // every other one, for the time it takes
		torn := filepath.Join(t.TempDir(), "torn.db")
		w.change(t, w.path, torn, func(b []byte) []byte { clear(b[n*page : (n+1)*page]); return b })
		_, _, got := w.salvage(t, torn)
		most = max(most, w.total()-got)
	}
	t.Logf("%d pages, at most %d of %d entries gone with one", fi.Size()/page, most, w.total())
	if most > 40 {
		t.Errorf("one page took %d entries", most)
	}
}

// guards C5, P4, C6
func TestSalvageOfHalfAFile(t *testing.T) {
	whole, killed := newWreck(t, true), newWreck(t, false)
	for name, tt := range map[string]struct {
		w      *wreck
		damage func(b []byte) []byte
		suffix string // of the file that is damaged
		drop   string // of the file that is gone
		least  int    // entries, in percent
	}{
		"the second half is gone":      {whole, func(b []byte) []byte { return b[:len(b)/2] }, "", "", 15},
		"the last page is torn":        {whole, func(b []byte) []byte { return b[:len(b)-2000] }, "", "", 80},
		"the first page is garbage":    {whole, func(b []byte) []byte { copy(b, "garbage that is no header"); return b }, "", "", 100},
		"the log without its file":     {killed, nil, "", "", 30},
		"the file without its log":     {killed, nil, "", "-wal", 0},
		"the log is torn at its end":   {killed, func(b []byte) []byte { return b[:len(b)-3000] }, "-wal", "", 80},
		"the log is torn in the midst": {killed, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "-wal", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			for _, suffix := range []string{"", "-wal"} {
				if _, err := os.Stat(tt.w.path + suffix); errors.Is(err, fs.ErrNotExist) || suffix == tt.drop && tt.drop != "" || name == "the log without its file" && suffix == "" {
					continue
				}
				damage := tt.damage
				if damage == nil || suffix != tt.suffix {
					damage = func(b []byte) []byte { return b }
				}
				tt.w.change(t, tt.w.path+suffix, path+suffix, damage)
			}
			_, rep, n := tt.w.salvage(t, path)
			t.Logf("%d of %d entries, %d sessions", n, tt.w.total(), len(rep.Sessions))
			if n*100 < tt.least*tt.w.total() {
				t.Errorf("%d of %d entries came back: %+v", n, tt.w.total(), rep)
			}
		})
	}
}
