package transcript

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// guards the append-only promise: all rows of the deleted session go, and no others.
func TestADeletedSessionIsGoneAndTheOthersAreAsTheyWere(t *testing.T) {
	const secret = "the deleted session's own secret"
	s := openStore(t, Options{})
	before, after := talk(t, s), newSession(t, s)
	gone := talk(t, s)
	changes(t, before, "package shared")
	changes(t, gone, "package shared")
	changes(t, gone, secret+strings.Repeat(" in a blob", 1000))
	turn, sent := start(t, gone, secret+" in a prompt")
	if err := gone.Journal(sent.Request, turn, 1, PartText, secret+" in a journal"); err != nil {
		t.Fatal(err)
	}
	exchange(t, after, "q", "a")
	children := fork(t, s, gone.Session(), "")
	kept := map[SessionID][]Entry{}
	for _, l := range []*Log{before, after, children} {
		kept[l.Session()] = entries(t, s, l.Session())
	}
	requests, err := s.Requests(t.Context(), gone.Session())
	if err != nil {
		t.Fatal(err)
	}
	if len(fileWith(t, s, secret+" in a prompt")) == 0 {
		t.Fatal("the secret is nowhere, so that it is gone proves nothing")
	}

	d, err := s.Delete(t.Context(), gone.Session())
	if err != nil {
		t.Fatal(err)
	}
	if d.Turns != 6 || d.Entries != int(gone.Seq()) || len(d.Requests) != len(requests) || d.Bytes < 10_000 || d.Title == "" {
		t.Errorf("it says that it removed %+v", d)
	}
	for _, table := range []string{"session", "entry", "turn", "epoch", "fragment", "request", "journal", "lease", "blob_use"} {
		var n int
		if err := s.reads.QueryRow(`SELECT count(*) FROM ` + table + ` WHERE sid = ` + fmt.Sprint(gone.sid)).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
	for id, want := range kept {
		if got := entries(t, s, id); !slices.EqualFunc(got, want, func(a, b Entry) bool { return a.Hash == b.Hash }) {
			t.Errorf("session %s is not as it was", id)
		}
	}
	if _, err := s.Blob(t.Context(), shaOf([]byte("package shared"))); err != nil {
		t.Error("a blob of another session:", err)
	}
	// The fork has the blob that the deleted session's file change names, and does not have the running turn.
	if files := fileWith(t, s, secret+" in a prompt", secret+" in a journal"); len(files) > 0 {
		t.Errorf("what was said is still in %v", files)
	}
	if _, err := s.Delete(t.Context(), children.Session()); err != nil {
		t.Fatal(err)
	}
	if files := fileWith(t, s, secret); len(files) > 0 {
		t.Errorf("what was stored is still in %v", files)
	}
	wantClean(t, s)

	// Who has it still open is told, and writes into no other session.
	later := newSession(t, s)
	if later.sid <= gone.sid || later.sid <= children.sid {
		t.Errorf("session number %d was given again", later.sid)
	}
	_, err = gone.Append(t.Context(), &TurnEnded{Turn: turn})
	wantErr(t, err, ErrNoSession)
	wantErr(t, gone.Lease(t.Context()), ErrNoSession)
	_, err = gone.PutBlob(t.Context(), nil)
	wantErr(t, err, ErrNoSession)
	if gone.Journal(sent.Request, turn, 1, PartText, "x") == nil {
		t.Error("the journal of a deleted session was written")
	}
	_, err = s.Delete(t.Context(), gone.Session())
	wantErr(t, err, ErrNoSession)
	wantClean(t, s)
}

// fileWith are the database's files that hold one of the texts.
func fileWith(t *testing.T, s *Store, texts ...string) (found []string) {
	t.Helper()
	for _, name := range []string{s.Path(), s.Path() + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				found = append(found, filepath.Base(name)+": "+text)
			}
		}
	}
	return found
}

// guards C4
func TestASessionInUseIsNotDeleted(t *testing.T) {
	s := openStore(t, Options{})
	other := openAt(t, s.Path(), Options{})
	l := newSession(t, s)
	exchange(t, l, "q", "a")
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, from := range []*Store{s, other} {
		_, err := from.Delete(t.Context(), l.Session())
		wantErr(t, err, ErrLeased)
	}
	wantClean(t, s)
	if err := s.alive.lock.Unlock(); err != nil { // as when its process dies
		t.Fatal(err)
	}
	if _, err := other.Delete(t.Context(), l.Session()); err != nil {
		t.Error(err)
	}
	wantClean(t, s)
}

func TestTheRoomOfADeletedSessionIsGivenBack(t *testing.T) {
	s := openStore(t, Options{})
	exchange(t, newSession(t, s), "small", "a")
	big := newSession(t, s)
	for range 20 {
		exchange(t, big, "big", prose(100_000))
	}
	size := func() int64 {
		fi, err := os.Stat(s.Path())
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	d, err := s.Delete(t.Context(), big.Session())
	if err != nil || d.Reclaimed < 2_000_000 || size() > 500_000 {
		t.Errorf("%+v, %v; the file has %d bytes", d, err, size())
	}
	wantClean(t, s)
}

// guards P3: a database of the first version is brought up to date as it is, blobs and all, and then lets a session go.
func TestADatabaseOfVersionOneIsUpgraded(t *testing.T) {
	s := openStore(t, Options{})
	old, other := talk(t, s), talk(t, s)
	changes(t, old, "package a")
	changes(t, other, "package a")
	changes(t, old, "package b")
	all := entries(t, s, other.Session())
	path := s.Path()
	// What version 2 added is taken away; the rest is what version 1 wrote.
	tamper(t, s, `UPDATE session SET sid = sid WHERE FALSE`, downgrade)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := Open(path, Options{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), ErrOlder.Error()) {
		t.Errorf("read-only: %v", err)
	}
	s = openAt(t, path, Options{})
	wantClean(t, s)
	if _, err := s.Delete(t.Context(), old.Session()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), shaOf([]byte("package a"))); err != nil {
		t.Error(err)
	}
	_, err := s.Blob(t.Context(), shaOf([]byte("package b")))
	wantErr(t, err, ErrNoBlob)
	if got := entries(t, s, other.Session()); !slices.EqualFunc(got, all, func(a, b Entry) bool { return a.Hash == b.Hash }) {
		t.Error("the other session is not as it was")
	}
	wantClean(t, s)
}

// downgrade makes version 1 of a database of version 2.
const downgrade = `DROP TRIGGER entry_kept; DROP TRIGGER epoch_kept; DROP TRIGGER fragment_kept; DROP TRIGGER request_kept; DROP TRIGGER blob_kept;
	DROP TABLE deleted; DROP TABLE blob_use;
	CREATE TRIGGER entry_kept    BEFORE DELETE ON entry    BEGIN SELECT raise(ABORT, 'entries are never deleted');   END;
	CREATE TRIGGER epoch_kept    BEFORE DELETE ON epoch    BEGIN SELECT raise(ABORT, 'epochs are never deleted');    END;
	CREATE TRIGGER fragment_kept BEFORE DELETE ON fragment BEGIN SELECT raise(ABORT, 'fragments are never deleted'); END;
	CREATE TRIGGER request_kept  BEFORE DELETE ON request  BEGIN SELECT raise(ABORT, 'requests are never deleted');  END;
	CREATE TRIGGER blob_kept     BEFORE DELETE ON blob     BEGIN SELECT raise(ABORT, 'blobs are never deleted');     END;
	PRAGMA user_version = 1;`

// A damaged body must not keep the others from being upgraded (C5).
func TestADamagedDatabaseOfVersionOneIsUpgradedToo(t *testing.T) {
	s := openStore(t, Options{})
	changes(t, newSession(t, s), "package a")
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(downgrade + `DROP TRIGGER entry_fixed; UPDATE entry SET body = x'ff7b' WHERE kind IN ('file.changed', 'tool.settled')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, Options{})
	if rep := verify(t, s); len(rep.Problems) == 0 {
		t.Error("the damage is not told")
	}
}
