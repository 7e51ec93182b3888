package transcript

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

// PutBlob stores bytes under their SHA-256, once for all sessions, and returns it in hex. It keeps no reference to b. The
// blob lives as long as one of the sessions that it was put for: put it before the entry that names it. [ErrNoSession].
func (l *Log) PutBlob(ctx context.Context, b []byte) (string, error) {
	var sum []byte
	err := l.st.write(ctx, "store blob", func(t *tx) (err error) {
		if _, err = t.head(l); err != nil {
			return err
		}
		if sum, err = t.putBlob(b); err != nil {
			return err
		}
		return t.useBlob(l.sid, sum)
	})
	return hex.EncodeToString(sum), err
}

// Blob returns stored bytes by their SHA-256, hex. [ErrNoBlob]; [ErrDamaged] when they are not those any more.
func (s *Store) Blob(ctx context.Context, sha string) ([]byte, error) {
	b, err := getBlob(sha, func(sum []byte, dest *[]byte) error {
		return s.reads.QueryRowContext(ctx, selectBlob, sum).Scan(dest)
	})
	return b, s.fail("read blob", err)
}

const selectBlob = `SELECT body FROM blob WHERE sha256 = ?`

func (t *tx) blob(sha string) ([]byte, error) {
	return getBlob(sha, func(sum []byte, dest *[]byte) error { return t.row(selectBlob, []any{sum}, dest) })
}

func getBlob(sha string, read func(sum []byte, dest *[]byte) error) ([]byte, error) {
	sum, err := hex.DecodeString(sha)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%w: %q", ErrNoBlob, sha)
	}
	var b []byte
	if err := read(sum, &b); errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", ErrNoBlob, sha)
	} else if err != nil {
		return nil, err
	}
	if sha256.Sum256(b) != [sha256.Size]byte(sum) {
		return nil, fmt.Errorf("%w: blob %s is changed", ErrDamaged, sha)
	}
	return b, nil
}

// putBlob returns the blob's SHA-256.
func (t *tx) putBlob(b []byte) ([]byte, error) {
	sum := sha256.Sum256(b)
	if b == nil {
		b = []byte{} // nil is NULL
	}
	_, err := t.exec(`INSERT INTO blob (sha256, body) VALUES (?, ?) ON CONFLICT (sha256) DO NOTHING`, sum[:], b)
	return sum[:], err
}

// useBlobs notes that an entry of a session names blobs by their SHA-256 in hex; "" is none.
func (t *tx) useBlobs(sid int64, shas ...string) error {
	for _, sha := range shas {
		if sum, err := hex.DecodeString(sha); err == nil && len(sum) == sha256.Size { // Verify tells of others
			if err := t.useBlob(sid, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) useBlob(sid int64, sum []byte) error {
	_, err := t.exec(`INSERT INTO blob_use (sid, sha256) VALUES (?, ?) ON CONFLICT DO NOTHING`, sid, sum)
	return err
}
