package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"fermata/cmd/internal/peer"
)

// maxPages names the variable that bounds the database of a daemon, in pages: SQLite then says what it says of a full disk.
const maxPages = "FERMATA_TEST_MAX_PAGES"

var _ = boundDatabase(os.Getenv(maxPages))

func boundDatabase(pages string) bool {
	if pages != "" {
		sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
			_, err := conn.ExecContext(context.Background(), "PRAGMA max_page_count = "+pages, nil)
			return err
		})
	}
	return pages != ""
}

// disk is a way to have too little room for the database.
type disk struct {
	name string
	// prepare readies the folder of the database while no daemon runs; it is false where the system does not allow it.
	prepare func(t *testing.T, b *badInput) (o peer.Options, ok bool)
	fill    func(t *testing.T, b *badInput)
	free    func(t *testing.T, b *badInput)
}

// limited is a database that may not grow beyond its pages, most of which hold ballast. It works everywhere.
var limited = disk{
	name: "a database at its limit",
	prepare: func(t *testing.T, b *badInput) (peer.Options, bool) {
		db := connect(t, b.database())
		execute(t, db, "CREATE TABLE ballast (b BLOB)", "INSERT INTO ballast VALUES (zeroblob(4000000))")
		var pages int
		if err := db.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return peer.Options{Env: []string{fmt.Sprintf("%s=%d", maxPages, pages+60)}}, true
	},
	fill: func(*testing.T, *badInput) {},
	free: func(t *testing.T, b *badInput) {
		db := connect(t, b.database())
		execute(t, db, "DROP TABLE ballast")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	},
}

// mounted is a disk of its own, filled with a file. Only Linux has it, where mounting is allowed.
var mounted = disk{
	name: "a disk of its own",
	prepare: func(t *testing.T, b *badInput) (peer.Options, bool) {
		content, err := os.ReadFile(b.database())
		if err != nil {
			t.Fatal(err)
		}
		if !mountSmall(t, filepath.Dir(b.database()), 6<<20) {
			return peer.Options{}, false
		}
		if err := os.WriteFile(b.database(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return peer.Options{}, true
	},
	fill: func(t *testing.T, b *badInput) {
		f, err := os.Create(filepath.Join(filepath.Dir(b.database()), "ballast"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		zeros := make([]byte, 64<<10)
		for err == nil {
			_, err = f.Write(zeros)
		}
		size, err := f.Seek(0, io.SeekEnd)
		if err = errors.Join(err, f.Truncate(size-512<<10)); err != nil {
			t.Fatal(err)
		}
	},
	free: func(t *testing.T, b *badInput) {
		if err := os.Remove(filepath.Join(filepath.Dir(b.database()), "ballast")); err != nil {
			t.Fatal(err)
		}
	},
}

// The disk becomes full in the middle of an answer. The turn fails and says so; while there is no room so does every other
// one; when there is, the same daemon goes on, and what was shown is in the transcript as an attempt.
//
// guards P1, P4, C1, C2, F1
func TestAFullDiskFailsTheTurnAndLosesNothingThatWasShown(t *testing.T) {
	t.Parallel()
	for _, d := range []disk{limited, mounted} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := newBadInput(t, script("Count.", "size 4000", "words 200000"), peer.Options{})
			b.quit()
			o, ok := d.prepare(t, b)
			if !ok {
				return // limited runs everywhere
			}
			b.start(o)
			b.Initialize(b.root, nil)
			b.Must("fermata/session/open", map[string]any{"session": b.session}, nil)
			d.fill(t, b)

			r := b.turn(b.ask(b.session, "Count."))
			if r.Outcome != "failed" || r.Cause != "storage" || !strings.Contains(r.Error, "disk is full") || !strings.Contains(r.Error, "free some space") {
				t.Errorf("the turn ended %+v", r)
			}
			shown := b.Shown(r.Turn, 1, "text")
			if !strings.HasPrefix(shown, "w1 w2 ") {
				t.Errorf("shown was %.80q", shown)
			}
			select {
			case <-b.model.Requests()[0].Ended():
			case <-t.Context().Done():
			}
			b.failsFull()

			d.free(t, b)
			got := b.goesOn(b.session)
			for _, m := range got {
				if m.Role == "assistant" {
					t.Errorf("the model sees the attempt %.80q", m.text())
				}
			}
			if kept, _ := b.answers(b.session, r.Turn); kept != shown {
				t.Errorf("shown were %d bytes, the transcript has %d", len(shown), len(kept))
			}
			b.goesOn(b.NewSession(b.root))
			b.quit()
			verifyDatabase(t, b.database())
		})
	}
}

// failsFull wants turns to fail as long as there is no room, each with a word about it.
func (b *badInput) failsFull() {
	b.t.Helper()
	m := b.Reply(b.ask(b.session, "Count."))
	if m.Error != nil {
		storageError(b.t.(*testing.T), "a turn without room", m.Error, "disk_full", "free some space")
		return
	}
	var r turnResult
	if err := json.Unmarshal(m.Result, &r); err != nil || r.Outcome != "failed" || !strings.Contains(r.Error, "disk is full") {
		b.t.Errorf("a turn without room ended %s %v", bytes.TrimSpace(m.Result), err)
	}
}
