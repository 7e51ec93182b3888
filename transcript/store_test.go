package transcript

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStoreIsForItsOwnerOnly(t *testing.T) {
	s := openStore(t, Options{})
	exchange(t, newSession(t, s), "q", "a")
	for name, want := range map[string]fs.FileMode{filepath.Dir(s.Path()): 0o700, s.Path(): 0o600, s.Path() + "-wal": 0o600} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, fi.Mode().Perm(), err, want)
		}
	}
}

func TestCloseLeavesOneFile(t *testing.T) {
	s := openStore(t, Options{})
	exchange(t, newSession(t, s), "q", "a")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(filepath.Dir(s.Path()))
	if len(files) != 1 {
		t.Errorf("%d files are left: %v", len(files), files)
	}
	wantClean(t, openAt(t, s.Path(), Options{}))
}

func TestOpenRefusesWhatIsNotOursAndLeavesItAlone(t *testing.T) {
	database := func(script string) func(path string) error {
		return func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec(script)
			return err
		}
	}
	content := func(b string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(b), 0o600) }
	}
	for name, tt := range map[string]struct {
		make func(path string) error
		want error
	}{
		"a newer version":          {database(fmt.Sprintf(`PRAGMA journal_mode=WAL; CREATE TABLE x(y); PRAGMA application_id=%d; PRAGMA user_version=%d`, appID, newestVersion()+1)), ErrNewer},
		"another program's":        {database(`CREATE TABLE x(y); PRAGMA application_id=7; PRAGMA user_version=1`), ErrNotDatabase},
		"another program's, plain": {database(`CREATE TABLE x(y); PRAGMA user_version=1`), ErrNotDatabase},
		"text":                     {content(strings.Repeat("hello ", 100)), ErrNotDatabase},
		"short text":               {content("hello"), ErrNotDatabase},
		"zeros":                    {content(string(make([]byte, 8192))), ErrNotDatabase},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for _, readOnly := range []bool{false, true} {
				_, err := Open(path, Options{ReadOnly: readOnly, Version: "v9"})
				wantErr(t, err, tt.want)
				if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), advice(tt.want)) {
					t.Errorf("the error does not help: %v", err)
				}
			}
			after, _ := os.ReadFile(path)
			files, _ := os.ReadDir(filepath.Dir(path))
			if !bytes.Equal(before, after) || len(files) != 1 {
				t.Errorf("it was touched: %v", files)
			}
		})
	}
}

func TestTablesOfAnotherProgramAreNotMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE precious(x)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	_, err = Open(path, Options{})
	wantErr(t, err, ErrNotDatabase)
}

func TestAReadOnlyStoreReadsAndRefusesToWrite(t *testing.T) {
	s := openStore(t, Options{})
	l := talk(t, s)
	for _, closed := range []bool{false, true} {
		if closed {
			s.Close()
		}
		r := openAt(t, s.Path(), Options{ReadOnly: true})
		wantClean(t, r)
		log := reopen(t, r, l.Session())
		_, err := log.Append(t.Context(), prompt("t_x", "q"))
		wantErr(t, err, ErrReadOnly)
		wantErr(t, log.Journal("r", "t", 1, PartText, "x"), ErrReadOnly)
		if _, err := log.PutBlob(t.Context(), nil); !errors.Is(err, ErrReadOnly) {
			t.Error("PutBlob:", err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.db"), Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Error("got", err)
	}
}

// guards P4: nothing is half written, and writing goes on when it can.
func TestAFullOrReadOnlyDiskRefusesTheWriteAndTheLogStaysUsable(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil, mend string
		want        error
	}{
		"full":      {`PRAGMA max_page_count = 1`, `PRAGMA max_page_count = 1000000`, ErrFull},
		"read-only": {`PRAGMA query_only = 1`, `PRAGMA query_only = 0`, ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{})
			l := newSession(t, s)
			exchange(t, l, "q", "a")
			turn, sent := start(t, l, "q2")
			before := kinds(entries(t, s, l.Session()))
			tamper(t, s, tt.spoil)
			_, err := l.Append(t.Context(), &ToolSettled{Turn: turn, Output: prose(100_000)})
			wantErr(t, err, tt.want)
			if !strings.Contains(err.Error(), s.Path()) || IsFull(err) != (tt.want == ErrFull) {
				t.Errorf("the error does not help: %v", err)
			}
			wantErr(t, l.Journal(sent.Request, turn, 1, PartText, prose(100_000)), tt.want)
			big := sendOf(turn, 2, nil)
			big.Head = []byte(prose(100_000))
			_, err = l.Send(t.Context(), big)
			wantErr(t, err, tt.want)
			if after := kinds(entries(t, s, l.Session())); after != before {
				t.Errorf("the log grew: %s", after)
			}
			tamper(t, s, tt.mend)
			conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text("a2"))
			exchange(t, l, "q3", "a3")
			wantClean(t, s)
		})
	}
}

// guards C4: several daemons share the file.
func TestAWriteWaitsForAnotherProcess(t *testing.T) {
	s := openStore(t, Options{BusyTimeout: 50 * time.Millisecond})
	l := newSession(t, s)
	other := openAt(t, s.Path(), Options{})
	tamper(t, other, `BEGIN IMMEDIATE`)
	_, err := l.Append(t.Context(), prompt("t_1", "q"))
	wantErr(t, err, ErrLocked)
	if _, err := s.Session(t.Context(), l.Session()); err != nil {
		t.Error("reading waits too:", err)
	}

	patient := openAt(t, s.Path(), Options{})
	done := make(chan error, 1)
	go func() { // ends with the append
		pl, err := patient.Log(context.Background(), l.Session())
		if err == nil {
			_, err = pl.Append(context.Background(), prompt("t_1", "q"))
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatal("it did not wait:", err)
	case <-time.After(20 * time.Millisecond):
	}
	tamper(t, other, `COMMIT`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	other := openAt(t, s.Path(), Options{})
	tamper(t, other, `BEGIN IMMEDIATE`)
	cause := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	_, err := l.Append(ctx, prompt("t_1", "q"))
	wantErr(t, err, cause)
	tamper(t, other, `COMMIT`)
	exchange(t, l, "q", "a")
}

func TestManyProcessesOpenANewDatabaseAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "fermata.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			l, err := s.NewSession(t.Context(), SessionOpened{})
			if err == nil {
				_, err = l.Append(t.Context(), prompt(NewTurnID(), "q"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r := wantClean(t, openAt(t, path, Options{})); r.Sessions != 6 {
		t.Errorf("%d sessions", r.Sessions)
	}
}

// guards C4
func TestALeaseIsHeldByOneAndTakenOverWhenItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.db")
		open := func(owner string) *Store {
			s, err := Open(path, Options{Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		sa, sb := open("a"), open("b")
		defer sa.Close()
		defer sb.Close()
		ctx := context.Background()
		a := newSession(t, sa)
		b, err := sb.Log(ctx, a.Session())
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Lease(ctx); err != nil {
			t.Fatal(err)
		}
		err = b.Lease(ctx)
		held, ok := errors.AsType[*LeaseError](err)
		if !ok || held.Owner != "a" || !errors.Is(err, ErrLeased) {
			t.Fatal("got", err)
		}
		<-time.After(LeaseTime - time.Second)
		if err := a.Renew(ctx); err != nil {
			t.Fatal(err)
		}
		<-time.After(LeaseTime - time.Second)
		wantErr(t, b.Lease(ctx), ErrLeased)
		turn, sent := start(t, a, "q")
		<-time.After(2 * time.Second)
		if err := b.Lease(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Repair(ctx, nil); err != nil {
			t.Fatal(err)
		}
		// a slept through its lease: nothing that it writes gets in.
		wantErr(t, a.Journal(sent.Request, turn, 1, PartText, "x"), ErrLeaseLost)
		_, err = a.Append(ctx, prompt("t_2", "q"))
		wantErr(t, err, ErrLeaseLost)
		wantErr(t, a.Renew(ctx), ErrLeaseLost)
		if err := a.Release(ctx); err != nil {
			t.Fatal(err)
		}
		wantErr(t, a.Lease(ctx), ErrLeased)
		if err := b.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := a.Lease(ctx); err != nil {
			t.Fatal(err)
		}
		exchange(t, a, "q", "a")
	})
}

// What a kill -9 leaves is a lease that is live and an owner that is not: the session need not wait for the expiry.
//
// guards C4, C2
func TestALeaseOfADeadOwnerIsTakenOverAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	sa, sb := openAt(t, path, Options{}), openAt(t, path, Options{})
	a := newSession(t, sa)
	b, err := sb.Log(t.Context(), a.Session())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, b.Lease(t.Context()), ErrLeased)
	if err := sa.alive.lock.Unlock(); err != nil { // the system does this when a process dies
		t.Fatal(err)
	}
	if err := b.Lease(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABlobIsStoredOnceAndReadAsItWas(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	for _, b := range [][]byte{nil, {0}, []byte(prose(100_000))} {
		sha, err := l.PutBlob(t.Context(), b)
		again, err2 := l.PutBlob(t.Context(), b)
		if err := errors.Join(err, err2); err != nil || sha != again || sha != shaOf(b) {
			t.Fatal(sha, again, err)
		}
		got, err := s.Blob(t.Context(), sha)
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes of %d, %v", len(got), len(b), err)
		}
	}
	if n := count(t, s, "blob"); n != 3 {
		t.Errorf("%d blobs", n)
	}
	_, err := s.Blob(t.Context(), shaOf([]byte("none")))
	wantErr(t, err, ErrNoBlob)
	_, err = s.Blob(t.Context(), "../etc")
	wantErr(t, err, ErrNoBlob)
}
