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

// show makes the owner visible; it must come before the owner takes its first lease.
func (p *presence) show() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock != nil {
		return nil
	}
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return fmt.Errorf("show that this daemon lives: %w", err)
	}
	lock := flock.New(filepath.Join(p.folder, filepath.Base(p.owner)), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("show that this daemon lives: %w", err)
	}
	p.lock = lock
	return nil
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
	return err
}
