package transcript

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// LeaseTime is how long a lease lasts without [Log.Renew]. A third of it is a good interval between renewals.
const LeaseTime = 10 * time.Second

// Lease takes the right to run turns in the session for [LeaseTime] (C4), or renews it. One owner at a time holds it; a
// lease that expired, or whose owner is dead, is taken over. While another owner's is live the error is a [*LeaseError];
// [ErrNoSession] when the session was deleted.
//
// From here to Release every write of this Log checks that the lease is still its own, and is refused with [ErrLeaseLost] if
// another owner took over, also one that has released it since: a process that slept through its lease cannot write into a
// session that was repaired.
func (l *Log) Lease(ctx context.Context) error {
	if err := l.st.alive.show(); err != nil {
		return l.st.fail("take lease", err)
	}
	return l.lease(ctx, "take lease", func(t *tx, owner string) error {
		if _, err := t.head(l); err != nil {
			return err
		}
		now := time.Now()
		var other string
		var expires int64
		err := t.row(`SELECT owner, expires FROM lease WHERE sid = ?`, []any{l.sid}, &other, &expires)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case other != owner && expires > millis(now) && !l.st.alive.gone(other):
			return &LeaseError{Session: l.id, Owner: other, Expires: fromMillis(expires)}
		}
		_, err = t.exec(`INSERT INTO lease (sid, owner, expires) VALUES (?, ?, ?)
			ON CONFLICT (sid) DO UPDATE SET owner = excluded.owner, expires = excluded.expires`,
			l.sid, owner, millis(now.Add(LeaseTime)))
		return err
	}, true)
}

// Renew makes the lease last [LeaseTime] from now. [ErrLeaseLost] when another owner took it over.
func (l *Log) Renew(ctx context.Context) error {
	return l.lease(ctx, "renew lease", func(t *tx, owner string) error {
		n, err := t.exec(`UPDATE lease SET expires = ? WHERE sid = ? AND owner = ?`, millis(time.Now().Add(LeaseTime)), l.sid, owner)
		if err == nil && n == 0 {
			err = ErrLeaseLost
		}
		return err
	}, true)
}

// Release gives the lease back. It is no error not to have it.
func (l *Log) Release(ctx context.Context) error {
	return l.lease(ctx, "release lease", func(t *tx, owner string) error {
		_, err := t.exec(`DELETE FROM lease WHERE sid = ? AND owner = ?`, l.sid, owner)
		return err
	}, false)
}

func (l *Log) lease(ctx context.Context, op string, f func(t *tx, owner string) error, leased bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.st.write(ctx, op, func(t *tx) error { return f(t, l.st.opt.Owner) })
	if err == nil {
		l.leased = leased
	}
	return err
}
