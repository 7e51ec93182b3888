package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Errors of the store. They arrive wrapped, with the operation and the database's path; test with [errors.Is].
var (
	// ErrNewer: the database was written by a later version of fermata. It was not touched.
	ErrNewer = errors.New("database of a newer fermata")
	// ErrOlder: the database was written by an earlier version and opened for reading only. Opening it for writing brings
	// it up to date.
	ErrOlder = errors.New("database of an older fermata")
	// ErrNotDatabase: the file is no SQLite database, or another program's. It was not touched.
	ErrNotDatabase = errors.New("not a fermata database")
	// ErrReadOnly: the file, its folder or the store does not allow writing.
	ErrReadOnly = errors.New("database is read-only")
	// ErrLocked: another process held the database for longer than [Options].BusyTimeout. Trying again may help.
	ErrLocked = errors.New("database is locked by another process")
	// ErrFull: there is no room on the disk. Nothing of the write was kept; it can be repeated when there is room.
	ErrFull = errors.New("disk is full")
	// ErrIO: the disk failed. Nothing of the write was kept.
	ErrIO = errors.New("disk input or output failed")
	// ErrDamaged: stored bytes are not what was written: a checksum does not fit, or SQLite found a malformed page.
	ErrDamaged = errors.New("database is damaged")

	// ErrNoSession, ErrNoTurn, ErrNoRequest and ErrNoBlob: there is nothing of that name.
	ErrNoSession = errors.New("no such session")
	ErrNoTurn    = errors.New("no such turn")
	ErrNoRequest = errors.New("no such request")
	ErrNoBlob    = errors.New("no such blob")

	// ErrBadCursor: a page was asked for with a cursor that [Store.Sessions] did not give.
	ErrBadCursor = errors.New("no cursor of a page before")

	// ErrTurnOpen: a turn cannot start while another turn of the session has not ended (invariant 2).
	ErrTurnOpen = errors.New("a turn of this session has not ended")
	// ErrTurnEnded: a turn cannot end twice, nor without having started (invariant 2).
	ErrTurnEnded = errors.New("the turn is not open")
	// ErrRepeated: the session has a turn of this client id, see [Store.TurnByClientID].
	ErrRepeated = errors.New("the client id was used before")
	// ErrLeased: another daemon runs turns in the session (C4). The error is a [*LeaseError].
	ErrLeased = errors.New("session is in use by another daemon")
	// ErrLeaseLost: the log once held the lease, and another daemon has it now. Nothing was written.
	ErrLeaseLost = errors.New("another daemon took over the session")
)

// LeaseError says who holds a session (C4). It is an [ErrLeased].
type LeaseError struct {
	Session SessionID
	Owner   string
	Expires time.Time
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("%v: %s is held by %s until %s", ErrLeased, e.Session, e.Owner, e.Expires.Format(time.TimeOnly))
}

// Is makes a LeaseError an ErrLeased.
func (e *LeaseError) Is(target error) bool { return target == ErrLeased }

// IsFull reports whether err says that the disk is full.
func IsFull(err error) bool { return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) }

// classify returns the sentinel for an error of SQLite or the file system, nil when there is none.
func classify(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() {
		case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
			return ErrDamaged // the disk did what it could: the file ends too early, or says that it is damaged
		case sqlite3.SQLITE_IOERR_SHMSIZE:
			return ErrFull // the shared memory, a file beside the database, could not grow
		}
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return ErrLocked
		case sqlite3.SQLITE_FULL:
			return ErrFull
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
			return ErrReadOnly
		case sqlite3.SQLITE_NOTADB:
			return ErrNotDatabase
		case sqlite3.SQLITE_CORRUPT:
			return ErrDamaged
		case sqlite3.SQLITE_IOERR:
			return ErrIO
		}
		return nil
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return ErrReadOnly
	}
	return nil
}

// advice says what to do about a sentinel, in words for people.
func advice(sentinel error) string {
	switch sentinel {
	case ErrNewer:
		return "update fermata, or name another data folder"
	case ErrNotDatabase:
		return "move the file away, or name another data folder; if fermata wrote it, run: fermata repair"
	case ErrReadOnly:
		return "allow writing to the file and its folder, or name another data folder"
	case ErrLocked:
		return "end the program that holds it and try again"
	case ErrFull:
		return "free some space and try again"
	case ErrIO:
		return "check the disk"
	case ErrDamaged:
		return "run: fermata repair"
	}
	return ""
}

// fail wraps err with the operation, the database's path, the sentinel that fits and what to do. nil stays nil.
func (s *Store) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return failAt(s.path, op, err)
}

func failAt(path, op string, err error) error {
	sentinel := classify(err)
	if sentinel == nil || errors.Is(err, sentinel) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w: %s (%s): %w", op, sentinel, path, advice(sentinel), err)
}
