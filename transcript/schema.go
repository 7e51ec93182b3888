package transcript

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// appID marks the file as fermata's: the bytes "frmt" in the application id of SQLite's header.
const appID = 0x66726d74

// migrations are the scripts in order; script i brings a database from version i to i+1. A script that was released is
// never changed.
func migrations() []string {
	names, err := fs.Glob(schemaFiles, "schema/*.sql") // sorted
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var out []string
	for i, name := range names {
		num, _, _ := strings.Cut(strings.TrimPrefix(name, "schema/"), "_")
		if n, err := strconv.Atoi(num); err != nil || n != i+1 {
			panic("schema files are numbered from 001 without gaps: " + name)
		}
		script, err := schemaFiles.ReadFile(name)
		if err != nil {
			panic(err) // embedded
		}
		out = append(out, string(script))
	}
	return out
}

func newestVersion() int { return len(migrations()) }

// rowQuerier is a connection, or a pool of them.
type rowQuerier interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func versionOf(ctx context.Context, db rowQuerier) (version, app int, err error) {
	err = db.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id)`).Scan(&version, &app)
	return version, app, err
}

// checkVersion refuses databases of other programs and of later versions. A file with neither a version nor a name is
// one that another fermata is just creating, or an empty database; migrate looks closer.
func (s *Store) checkVersion(version, app int) error {
	if app != appID && (app != 0 || version != 0) {
		return fmt.Errorf("%w: %s belongs to another program (%s)", ErrNotDatabase, s.path, advice(ErrNotDatabase))
	}
	if newest := newestVersion(); version > newest {
		return fmt.Errorf("%w: %s has version %d, fermata %s knows %d (%s)",
			ErrNewer, s.path, version, s.opt.Version, newest, advice(ErrNewer))
	}
	return nil
}

// checkEmpty refuses a database without a version that holds something all the same.
func (s *Store) checkEmpty(ctx context.Context, db rowQuerier) error {
	var tables int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables)
	if err == nil && tables > 0 {
		err = fmt.Errorf("%w: %s holds tables of another program (%s)", ErrNotDatabase, s.path, advice(ErrNotDatabase))
	}
	return err
}

// migrate brings the database up to date: one transaction for each script, and each looks again, under the lock, whether
// another process was faster.
func (s *Store) migrate(ctx context.Context) error {
	scripts := migrations()
	start, app, err := versionOf(ctx, s.w.conn)
	if err != nil {
		return err
	}
	if err := s.checkVersion(start, app); err != nil || start == len(scripts) {
		return err
	}
	for {
		done := false
		err := s.w.do(ctx, "migrate", func(t *tx) error {
			version, app, err := versionOf(ctx, s.w.conn)
			if err != nil {
				return err
			}
			if err := s.checkVersion(version, app); err != nil {
				return err
			}
			if version == len(scripts) {
				done = true
				return nil
			}
			if version == 0 {
				if err := s.checkEmpty(ctx, s.w.conn); err != nil {
					return err
				}
			}
			script := fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;", scripts[version], appID, version+1)
			if _, err := s.w.conn.ExecContext(ctx, script); err != nil {
				return fmt.Errorf("migration to version %d: %w", version+1, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	// look reads the version in the file itself: have it there.
	_, err = s.w.conn.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
	return err
}
