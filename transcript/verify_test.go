package transcript

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// guards P3, C5, invariant 2: whatever is changed in the file is found, and the rest is checked all the same.
func TestVerifyFindsWhatWasChanged(t *testing.T) {
	const freely = `DROP TRIGGER entry_kept; DROP TRIGGER entry_fixed; DROP TRIGGER fragment_kept; DROP TRIGGER fragment_fixed;
		DROP TRIGGER request_kept; DROP TRIGGER request_fixed; DROP TRIGGER blob_kept; DROP TRIGGER blob_fixed;
		DROP TRIGGER epoch_kept; DROP TRIGGER epoch_fixed; PRAGMA foreign_keys = 0;`
	for name, tt := range map[string]struct {
		change string
		want   []string // each in some problem
	}{
		"a byte in a fragment": {`UPDATE fragment SET parts = replace(parts, 'use the tool', 'use the fool')`,
			[]string{"fragment 3 of epoch 1 is not what its entry says", "the body is not the one that was hashed"}},
		"an offset in a fragment": {`UPDATE fragment SET parts = replace(parts, '[', '[1') WHERE n = 1 AND epoch = 1`, []string{"database is damaged: fragment 1"}},
		"a removed fragment":      {`DELETE FROM fragment WHERE n = 2 AND epoch = 1`, []string{"fragment 2 of epoch 1 is missing", "cannot be rebuilt"}},
		"the last fragment":       {`DELETE FROM fragment WHERE n = 5 AND epoch = 1`, []string{"cannot be rebuilt"}},
		"another source":          {`UPDATE fragment SET source = 2 WHERE n = 2 AND epoch = 2`, []string{"epoch 2"}},
		"a removed entry":         {`DELETE FROM entry WHERE seq = 7`, []string{"entry 7: missing"}},
		"the last entry removed":  {`DELETE FROM entry WHERE seq = (SELECT max(seq) FROM entry)`, []string{"the log ends at 32, it was written up to 33"}},
		"the first entry removed": {`DELETE FROM entry WHERE seq = 1`, []string{"entry 1: missing"}},
		"a changed entry":         {`UPDATE entry SET body = replace(body, 'first question', 'First question')`, []string{"entry 2: changed"}},
		"a changed time":          {`UPDATE entry SET at = at + 1 WHERE seq = 5`, []string{"entry 5: changed"}},
		"a changed kind":          {`UPDATE entry SET kind = 'answer' WHERE seq = 5`, []string{"entry 5: changed"}},
		"an unknown kind":         {`UPDATE entry SET kind = 'gossip' WHERE seq = 5`, []string{`entry 5: unknown kind "gossip"`}},
		"a changed hash":          {`UPDATE entry SET hash = zeroblob(32) WHERE seq = 5`, []string{"entry 5: changed", "entry 6: changed"}},
		"the last entry changed":  {`UPDATE entry SET body = replace(body, 'completed', 'stopped') WHERE seq = (SELECT max(seq) FROM entry)`, []string{"entry 33: changed"}},
		"the last hash":           {`UPDATE session SET last_hash = zeroblob(32)`, []string{"entry 33: the last entry is not the one"}},
		"a changed blob":          {`UPDATE blob SET body = replace(body, 'stream', 'scream')`, []string{"blob ", "is changed"}},
		"a removed blob":          {`DELETE FROM blob WHERE num = 1`, []string{"no such blob"}},
		"a request's hash":        {`UPDATE request SET sha256 = zeroblob(32) WHERE seq = 4`, []string{"the request table says something else"}},
		"a removed request":       {`DELETE FROM request WHERE seq = 4`, []string{"the request table does not have it"}},
		"an added request":        {`INSERT INTO request SELECT NULL, 'r_x', sid, 1, turn, step, try, epoch, n, bytes, sha256, midstate FROM request LIMIT 1`, []string{"the request table has 6 requests, the log 5"}},
		"an epoch's head":         {`UPDATE epoch SET head = tail`, []string{"the epoch table says something else of epoch 1", "of epoch 2"}},
		"a turn's end":            {`UPDATE turn SET ended = 1`, []string{"the turn table says something else"}},
		"a removed turn":          {`DELETE FROM turn`, []string{"the turn table has 0 turns, the log 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{})
			l := talk(t, s)
			healthy := newSession(t, s)
			exchange(t, healthy, "q", "a")
			wantClean(t, s)
			change := tt.change
			for table, col := range map[string]string{"fragment": "sid", "entry": "sid", "request": "sid", "epoch": "sid", "turn": "sid", "session": "sid"} {
				// Only the first session is changed.
				if strings.HasPrefix(change, "UPDATE "+table+" ") || strings.HasPrefix(change, "DELETE FROM "+table) {
					if strings.Contains(change, "WHERE") {
						change += " AND " + col + " = 1"
					} else {
						change += " WHERE " + col + " = 1"
					}
				}
			}
			change = strings.ReplaceAll(change, "max(seq) FROM entry)", "max(seq) FROM entry WHERE sid = 1)")
			tamper(t, s, freely, change)
			rep := verify(t, s)
			for _, want := range tt.want {
				if !slices.ContainsFunc(rep.Problems, func(p Problem) bool { return strings.Contains(p.String(), want) }) {
					t.Errorf("no problem says %q; they are %v", want, rep.Problems)
				}
			}
			if !slices.IsSortedFunc(rep.Problems, func(a, b Problem) int { return strings.Compare(string(a.Session), string(b.Session)) }) {
				t.Error("problems are not sorted")
			}
			for _, p := range rep.Problems {
				if p.Session == healthy.Session() && !strings.Contains(tt.change, "blob") {
					t.Error("a problem in the healthy session:", p)
				}
			}
			if rep.Sessions != 2 {
				t.Errorf("%d sessions were looked at, want 2", rep.Sessions)
			}
			if _, err := s.Entries(t.Context(), l.Session(), 0, 0); err != nil {
				t.Error("the session does not open:", err)
			}
		})
	}
}

// guards the append-only promise of the log
func TestTheDatabaseRefusesToChangeTheLog(t *testing.T) {
	s := openStore(t, Options{})
	talk(t, s)
	for _, table := range []string{"entry", "fragment", "request", "epoch", "blob"} {
		for _, q := range []string{"DELETE FROM " + table, "UPDATE " + table + " SET rowid = rowid", "UPDATE " + table + " SET sid = sid"} {
			_, err := s.w.conn.ExecContext(context.Background(), q)
			if err == nil || !(strings.Contains(err.Error(), "are never") || strings.Contains(err.Error(), "no such column")) {
				t.Errorf("%s: %v", q, err)
			}
		}
	}
	wantClean(t, s)
}

// guards C2, C4: an open turn is told by what will become of it.
func TestVerifyTellsRunningTurnsFromAbandonedOnes(t *testing.T) {
	s := openStore(t, Options{})
	running, dead := newSession(t, s), newSession(t, s)
	if err := running.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, running, "q")
	start(t, dead, "q")
	rep := wantClean(t, s)
	if !slices.Equal(rep.Running, []SessionID{running.Session()}) || !slices.Equal(rep.Open, []SessionID{dead.Session()}) {
		t.Errorf("running %v, open %v", rep.Running, rep.Open)
	}
}

func TestVerifyCountsWhatItCannotEncode(t *testing.T) {
	s := openStore(t, Options{})
	talk(t, s)
	rep, err := s.Verify(t.Context(), func(string) (Encoder, bool) { return nil, false })
	if err != nil || rep.Unencoded != rep.Fragments || rep.Fragments == 0 || len(rep.Problems) > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestVerifyFindsAnEncoderThatChangedItsMind(t *testing.T) {
	s := openStore(t, Options{})
	talk(t, s)
	rep, err := s.Verify(t.Context(), func(string) (Encoder, bool) { return shouting{}, true })
	if err != nil || len(rep.Problems) != 2 { // once for each epoch
		t.Errorf("%v, %v", rep.Problems, err)
	}
}

type shouting struct{ plain }

func (shouting) Encode(m Message) ([]byte, error) {
	b, err := plain{}.Encode(m)
	return []byte(strings.ToUpper(string(b))), err
}

// guards C5
func TestADamagedEntryIsShownAndTheRestOpens(t *testing.T) {
	s := openStore(t, Options{})
	l := talk(t, s)
	all := entries(t, s, l.Session())
	tamper(t, s, `DROP TRIGGER entry_fixed; UPDATE entry SET body = substr(body, 1, 10) WHERE seq IN (1, 2, 3)`)
	l = reopen(t, s, l.Session())
	if l.Opened().Workspace != "/w" {
		t.Errorf("opened: %+v", l.Opened())
	}
	got := entries(t, s, l.Session())
	if len(got) != len(all) {
		t.Fatalf("%d entries of %d", len(got), len(all))
	}
	for i, e := range got {
		if (e.Damaged != "") != (i < 3) || (e.Body == nil) != (i < 3) {
			t.Errorf("entry %d: %q", e.Seq, e.Damaged)
		}
	}
	if _, err := s.Requests(t.Context(), l.Session()); err != nil {
		t.Error(err)
	}
	exchange(t, l, "goes on", "yes")
}
