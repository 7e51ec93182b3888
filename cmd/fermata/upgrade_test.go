package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"fermata/transcript"
)

// Who updates fermata and then only looks is not told to run something else first.
func TestASubcommandThatOnlyReadsBringsAnOldDatabaseUpToDate(t *testing.T) {
	a := newApp()
	a.flagData = t.TempDir()
	path := filepath.Join(a.flagData, "fermata.db")
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.NewSession(t.Context(), transcript.SessionOpened{Title: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	// The tables that version 2 added are gone; it makes their triggers anew.
	if _, err := db.Exec(`DROP TABLE deleted; DROP TABLE blob_use; PRAGMA user_version = 1`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err = a.readStore(); err != nil {
		t.Fatal(err)
	}
	if info, err := store.Session(t.Context(), log.Session()); err != nil || info.Title != "old" {
		t.Error(info, err)
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
	verifyDatabase(t, path)
}
