package transcript

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// presence shows other processes that an owner of leases is alive: it holds a lock on a file of the owner's name, which
// the system lets go when the process dies, however it dies. An expiry alone would keep a session of a killed daemon
// closed for as long as a lease lasts; a process id would mislead across containers that share the database.
type presence struct {
	folder string // beside the database
	owner  string

	mu   sync.Mutex
	lock *flock.Flock // nil: not shown yet
}

func newOwner() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return "fermata-" + strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(b[:])
}

// show makes the owner visible, and clears away what owners left that died long ago. It must come before the owner takes
// its first lease.
func (p *presence) show() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock != nil {
		return nil
	}
	for range 100 {
		lock, err := p.tryShow()
		if err != nil {
			return fmt.Errorf("show that this daemon lives: %w", err)
		}
		if lock != nil {
			p.lock = lock
			return nil
		}
	}
	return fmt.Errorf("show that this daemon lives: %s is taken away again and again", p.folder)
}

// tryShow returns nil when another process has cleared the folder or the file away before the lock was taken.
func (p *presence) tryShow() (*flock.Flock, error) {
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return nil, err
	}
	p.sweep()
	lock := flock.New(filepath.Join(p.folder, filepath.Base(p.owner)), flock.SetPermissions(0o600))
	if err := lock.Lock(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if _, err := os.Stat(lock.Path()); errors.Is(err, fs.ErrNotExist) {
		return nil, lock.Close()
	}
	return lock, nil
}

// sweep removes the files of dead owners. One that was made just now may belong to an owner that has not locked it yet.
func (p *presence) sweep() {
	files, _ := os.ReadDir(p.folder) // what cannot be read is left
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			p.gone(f.Name())
		}
	}
}

// Owners are the names of the daemons that have the database at path open for writing now. A database that cannot be opened
// can be asked about too.
func Owners(path string) []string {
	p := presence{folder: path + "-owners"}
	files, _ := os.ReadDir(p.folder) // no folder, no owners
	var out []string
	for _, f := range files {
		if !p.gone(f.Name()) {
			out = append(out, f.Name())
		}
	}
	return out
}

// gone reports whether another owner is known to be dead. When it cannot be told the answer is no: the lease's expiry
// decides then.
func (p *presence) gone(owner string) bool {
	name := filepath.Join(p.folder, filepath.Base(owner))
	if _, err := os.Stat(name); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return false
	}
	_ = os.Remove(name) // where an open file cannot be removed it is found unlocked again
	_ = lock.Close()
	return true
}

// hide is the end of the owner.
func (p *presence) hide() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock == nil {
		return nil
	}
	name := p.lock.Path()
	err := p.lock.Close()
	p.lock = nil
	if e := os.Remove(name); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	_ = os.Remove(p.folder) // the last one out
	return err
}
