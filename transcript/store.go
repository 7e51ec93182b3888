package transcript

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Options say how to open a store. The zero value is right for a daemon.
type Options struct {
	BusyTimeout time.Duration // how long a write waits for another process; 0 means 15 s
	Power       bool          // durability = "power": every commit survives a power loss (C6)
	ReadOnly    bool          // nothing is created or written; every write is an [ErrReadOnly]
	Version     string        // of fermata, for error messages
	Owner       string        // who takes leases (C4); "" means a name made of the process id and a random number

	// Fault is for tests that end the process there: it is called right before and right after each commit, with a name of
	// the place. nil means nothing.
	Fault func(place string)
}

// Store is an open database. It may be used from any goroutine, until Close.
type Store struct {
	path  string
	opt   Options
	w     *writer // nil when read-only
	reads *pool
	alive presence
}

// Each page cache is small on purpose: the process holds one per connection, and a session is read in order, once.
const (
	writerCache = 4 << 10 // KiB
	readerCache = 2 << 10 // KiB
	readers     = 3

	// The write-ahead log is folded into the file every walPages pages. Fewer would make more of the commits wait for the
	// disk, more would leave a larger file beside the database.
	walPages = 256
	walLimit = 1 << 20 // bytes
)

// Open opens the database at path, and creates it, with its folder, unless o.ReadOnly. Both are for their owner only. A
// database of an older version is brought up to date first. Errors are [ErrNewer] and [ErrNotDatabase], with the file
// untouched, [ErrReadOnly], [ErrLocked], [ErrFull], [ErrIO], [ErrDamaged], or [fs.ErrNotExist] when o.ReadOnly.
func Open(path string, o Options) (*Store, error) {
	const op = "open transcript"
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, failAt(path, op, err)
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 15 * time.Second
	}
	if o.Owner == "" {
		o.Owner = newOwner()
	}
	s := &Store{path: path, opt: o, alive: presence{folder: path + "-owners", owner: o.Owner}}
	if err := s.prepareFile(); err != nil {
		return nil, failAt(path, op, err)
	}
	if err := s.look(); err != nil {
		return nil, failAt(path, op, err)
	}
	if err := s.connect(); err != nil {
		s.disconnect()
		return nil, failAt(path, op, err)
	}
	if !o.ReadOnly {
		_ = s.alive.show() // on a full disk for one it cannot; whoever takes a lease has to
	}
	return s, nil
}

// Path is the database's absolute path.
func (s *Store) Path() string { return s.path }

// Owner is the name under which this store takes leases.
func (s *Store) Owner() string { return s.opt.Owner }

// Close folds the write-ahead log into the file, unless another process is reading, and closes it. Logs and readers of
// bodies must not be used any more. It is safe to close twice.
func (s *Store) Close() error { return s.fail("close transcript", s.disconnect()) }

func (s *Store) disconnect() error {
	errs := []error{s.alive.hide()}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
		s.reads = nil
	}
	if s.w != nil {
		errs = append(errs, s.w.close())
		s.w = nil
	}
	return errors.Join(errs...)
}

// prepareFile makes the folder and an empty file, so that neither is ever more readable than it should be.
func (s *Store) prepareFile() error {
	fi, err := os.Stat(s.path)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("%w: %s is a folder (%s)", ErrNotDatabase, s.path, advice(ErrNotDatabase))
	case err == nil && !fi.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no regular file (%s)", ErrNotDatabase, s.path, advice(ErrNotDatabase))
	}
	// SQLite deletes a log that it finds beside an empty file, and an empty file is what it makes where there is none.
	if log, walErr := os.Stat(s.path + "-wal"); walErr == nil && log.Size() > 0 && (errors.Is(err, fs.ErrNotExist) || err == nil && fi.Size() == 0) {
		return fmt.Errorf("%w: %s is missing or empty, its log %s is there (%s)", ErrDamaged, s.path, s.path+"-wal", advice(ErrDamaged))
	}
	if s.opt.ReadOnly {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// look reads the file's header as plain bytes and refuses what is not ours, before SQLite gets to see the file: even
// opening one can create and replay files beside it.
func (s *Store) look() error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var h [100]byte
	switch n, err := io.ReadFull(f, h[:]); {
	case err == io.EOF:
		return nil // new
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s has %d bytes (%s)", ErrNotDatabase, s.path, n, advice(ErrNotDatabase))
	case err != nil:
		return err
	}
	if string(h[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: %s (%s)", ErrNotDatabase, s.path, advice(ErrNotDatabase))
	}
	version := int(binary.BigEndian.Uint32(h[60:])) // https://www.sqlite.org/fileformat2.html#the_database_header
	app := int(binary.BigEndian.Uint32(h[68:]))
	if err := s.checkVersion(version, app); err != nil {
		return err
	}
	if err := s.checkLength(f, h); err != nil {
		return err
	}
	// A migration folds the log into the file when it is done. Where a log is left all the same, or nothing says whose the
	// file is, ask SQLite, through a connection that cannot write.
	if fi, err := os.Stat(s.path + "-wal"); (err != nil || fi.Size() == 0) && (version != 0 || app != 0) {
		return nil
	}
	db, err := sql.Open("sqlite", s.dsn("ro", readerCache))
	if err != nil {
		return err
	}
	defer db.Close()
	// In this order: another fermata that is just creating the database makes tables and version in one commit.
	notEmpty := s.checkEmpty(context.Background(), db)
	version, app, err = versionOf(context.Background(), db)
	if err != nil {
		return err
	}
	if err := s.checkVersion(version, app); err != nil || version != 0 {
		return err
	}
	return notEmpty
}

// checkLength refuses a file that lost its end, unless there is a log: then it can be that a process died while it folded
// the log in, and SQLite goes on with that. h is the file's header.
func (s *Store) checkLength(f *os.File, h [100]byte) error {
	if log, err := os.Stat(s.path + "-wal"); err == nil && log.Size() > 0 {
		return nil
	}
	fi, err := f.Stat() // after the log: the file may have been growing
	if err != nil {
		return err
	}
	page := int64(binary.BigEndian.Uint16(h[16:]))
	if page == 1 {
		page = 1 << 16
	}
	pages := int64(binary.BigEndian.Uint32(h[28:]))
	if !bytes.Equal(h[24:28], h[92:96]) {
		pages = 0 // the header does not know
	}
	if page > 0 && (fi.Size()%page != 0 || fi.Size() < pages*page) {
		return fmt.Errorf("%w: the end of %s is missing: it has %d bytes of %d (%s)", ErrDamaged, s.path, fi.Size(), max(pages, fi.Size()/page+1)*page, advice(ErrDamaged))
	}
	return nil
}

// connect opens the connections and migrates.
func (s *Store) connect() error {
	ctx := context.Background()
	if !s.opt.ReadOnly {
		w, err := openWriter(s.dsn("rw", writerCache))
		if err != nil {
			return err
		}
		if s.w = w; s.opt.Fault != nil {
			w.fault = s.opt.Fault
		}
		if err := s.migrate(ctx); err != nil {
			return err
		}
	}
	open := func(mode string) error {
		db, err := sql.Open("sqlite", s.dsn(mode, readerCache))
		if err != nil {
			return err
		}
		s.reads = newPool(db)
		s.reads.SetMaxOpenConns(readers)
		s.reads.SetMaxIdleConns(readers)
		if !s.opt.ReadOnly {
			return nil // opened when first used
		}
		version, app, err := versionOf(ctx, s.reads)
		if err != nil {
			return err
		}
		if err := s.checkVersion(version, app); err != nil {
			return err
		}
		if version < newestVersion() {
			return fmt.Errorf("%w: %s has version %d of %d; open it for writing once", ErrOlder, s.path, version, newestVersion())
		}
		return nil
	}
	if !s.opt.ReadOnly {
		return open("rw")
	}
	err := open("ro")
	if _, walErr := os.Stat(s.path + "-wal"); classify(err) == ErrReadOnly && errors.Is(walErr, fs.ErrNotExist) {
		// On read-only media SQLite can make no files for its locks, and nobody else can write either.
		s.reads.Close()
		err = open("immutable")
	}
	return err
}

// dsn is the data source name of one kind of connection; cache in KiB.
func (s *Store) dsn(mode string, cache int) string {
	q := url.Values{}
	pragma := func(name string, v any) { q.Add("_pragma", fmt.Sprintf("%s(%v)", name, v)) }
	pragma("busy_timeout", s.opt.BusyTimeout.Milliseconds())
	pragma("cache_size", -cache)
	q.Set("_error_rc", "1") // no "out of memory" in the text of an error that is something else
	switch mode {
	case "rw":
		q.Set("mode", "rw")
		pragma("foreign_keys", 1)
		pragma("journal_mode", "WAL")
		pragma("wal_autocheckpoint", walPages)
		pragma("journal_size_limit", walLimit)
		if s.opt.Power {
			pragma("synchronous", "FULL")
		} else {
			pragma("synchronous", "NORMAL")
		}
	case "ro":
		q.Set("mode", "ro")
	case "immutable":
		q.Set("immutable", "1")
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}).String()
}
