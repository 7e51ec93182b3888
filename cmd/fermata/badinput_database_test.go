package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// connect is the test's own connection to a database.
func connect(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// storageError wants an error about the database that says what to do.
func storageError(t *testing.T, what string, err *peer.Error, kind, says string) {
	t.Helper()
	var data struct{ Kind, Hint string }
	if err == nil || err.Code != -31005 || json.Unmarshal(err.Data, &data) != nil ||
		data.Kind != kind || data.Hint == "" || !strings.Contains(err.Message, says) {
		t.Errorf("%s: answered %v %+v, want %s with %q", what, err, data, kind, says)
	}
}

// Each case is what may stand where the database should be. The daemon starts, says what is wrong and what to do, touches
// nothing, and leaves in order; with the right file back it goes on.
//
// guards P4, C5, C6
func TestADatabaseThatCannotBeUsedIsNamedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path string, content []byte, mode fs.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	newer := func(t *testing.T, path string) {
		t.Helper()
		store, err := transcript.Open(path, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		db := connect(t, path)
		execute(t, db, "PRAGMA user_version = 999")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	type refusal struct {
		name       string
		kind, says string
		put        func(t *testing.T, path string)
	}
	cases := []refusal{
		{"a newer version", "newer_database", "has version 999", newer},
		{"garbage", "not_a_database", "move the file away", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("garbage\n"), 2000), 0o600) }},
		{"a few bytes", "not_a_database", "has 7 bytes", func(t *testing.T, path string) { write(t, path, []byte("SQLite "), 0o600) }},
		{"another program's database", "not_a_database", "another program", func(t *testing.T, path string) {
			write(t, path, nil, 0o600)
			db := connect(t, path)
			execute(t, db, "CREATE TABLE song (name TEXT)", "PRAGMA application_id = 7")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"another program's database without a name", "not_a_database", "another program", func(t *testing.T, path string) {
			write(t, path, nil, 0o600)
			db := connect(t, path)
			execute(t, db, "CREATE TABLE song (name TEXT)")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"a folder", "not_a_database", "is a folder", func(t *testing.T, path string) { write(t, filepath.Join(path, "file"), nil, 0o600) }},
		{"a file where its folder should be", "read_only", "name another data folder", func(t *testing.T, path string) { write(t, filepath.Dir(path), []byte("x"), 0o600) }},
	}
	if os.Getuid() > 0 { // root may write everything; Windows knows no such bits
		cases = append(cases, refusal{"a file that may not be written", "read_only", "allow writing", func(t *testing.T, path string) {
			newer(t, path)
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}})
	}
	b := newBadInput(t, "", peer.Options{})
	b.quit()
	folder := filepath.Dir(b.database())
	kept := folder + ".kept"
	for _, c := range cases {
		if err := os.Rename(folder, kept); err != nil {
			t.Fatal(err)
		}
		c.put(t, b.database())
		before := b.files()
		b.start(peer.Options{})
		b.Initialize(b.root, nil)
		storageError(t, c.name+": a new session", b.Call("fermata/session/new", nil, nil), c.kind, c.says)
		storageError(t, c.name+": a turn", b.Call("fermata/turn/start", map[string]any{"session": b.session, "prompt": peer.Text("Go on.")}, nil), c.kind, c.says)
		storageError(t, c.name+": a stop", b.Call("fermata/turn/stop", nil, nil), c.kind, c.says)
		storageError(t, c.name+": a command", b.Call("workspace/executeCommand", map[string]any{"command": "fermata.openTranscript"}, nil), c.kind, c.says)
		b.quit()
		if after := b.files(); !maps.EqualFunc(before, after, bytes.Equal) {
			t.Errorf("%s: the files were touched", c.name)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(kept, folder); err != nil {
			t.Fatal(err)
		}
	}
	b.start(peer.Options{})
	b.Initialize(b.root, nil)
	b.goesOn(b.session)
	b.quit()
}

// held takes the database's lock as another process would, and lets it go after a time. free waits until it has.
func held(t *testing.T, path string, d time.Duration) (free func()) {
	t.Helper()
	db := connect(t, path)
	execute(t, db, "BEGIN EXCLUSIVE")
	released := make(chan error, 1)
	time.AfterFunc(d, func() {
		_, err := db.Exec("ROLLBACK")
		released <- err
	})
	return func() {
		t.Helper()
		if err := <-released; err != nil {
			t.Error(err)
		}
		_ = db.Close()
	}
}

// The lock is taken for two seconds before a turn, in the middle of an answer, and before the daemon starts.
//
// guards C1, C4, P1, P4
func TestADatabaseThatAnotherProcessHoldsIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBadInput(t, script("Count.", `say "One, "`, "wait 100ms", `say "two."`), peer.Options{})
	begun := time.Now()
	free := held(t, b.database(), 2*time.Second)
	b.goesOn(b.session)
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("the turn ended after %v, while the database was held", took)
	}
	free()

	start := b.ask(b.session, "Count.")
	b.Event("the first word", func(ev peer.Event) bool { return ev.Text == "One, " })
	free = held(t, b.database(), time.Second)
	r := b.turn(start)
	if kept, _ := b.answers(b.session, r.Turn); r.Outcome != "completed" || b.Shown(r.Turn, 1, "text") != "One, two." || kept != "One, two." {
		t.Errorf("the turn ended %+v; shown %q, kept %q", r, b.Shown(r.Turn, 1, "text"), kept)
	}
	free()

	b.quit()
	free = held(t, b.database(), time.Second)
	b.start(peer.Options{})
	b.Initialize(b.root, nil)
	b.goesOn(b.session)
	free()
	b.quit()
}
