package transcript

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

// PutBlob stores bytes under their SHA-256, once, and returns it in hex. It keeps no reference to b.
func (s *Store) PutBlob(ctx context.Context, b []byte) (string, error) {
	var sum []byte
	err := s.write(ctx, "store blob", func(t *tx) (err error) {
		sum, err = t.putBlob(b)
		return err
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
