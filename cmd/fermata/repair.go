package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/transcript"
)

func newRepairCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repair",
		Short: "Bring back what can be read of a damaged database",
		Long: "repair checks the database. When something is wrong with it, it copies the files first and says where the copy is, then\n" +
			"reads everything that can still be read into a new database, which takes the place of the damaged one. The copy is\n" +
			"never changed. End editors and other programs that use fermata before.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := a.databasePath()
			if err != nil {
				return err
			}
			return (&repair{app: a, path: path, style: styleOf(a.out, environment)}).run(cmd.Context())
		},
	}
}

// repair replaces a damaged database.
type repair struct {
	app   *app
	path  string
	style style
}

// databaseFiles are what a database consists of, as suffixes of its path.
var databaseFiles = []string{"", "-wal"}

func (r *repair) say(format string, args ...any) {
	fmt.Fprintln(r.app.out, printable(fmt.Sprintf(format, args...)))
}

func (r *repair) run(ctx context.Context) error {
	if !r.exists() {
		r.say("nothing is recorded yet, so nothing is to be repaired")
		return nil
	}
	if owners := transcript.Owners(r.path); len(owners) > 0 {
		return fmt.Errorf("repair: the database is in use by %s; end it and try again", strings.Join(owners, ", "))
	}
	before, bad := findProblems(ctx, r.path)
	if bad == nil && len(before) == 0 {
		r.say("all is as it was written; nothing was changed")
		return nil
	}
	if errors.Is(bad, transcript.ErrNewer) || errors.Is(bad, transcript.ErrLocked) || errors.Is(bad, fs.ErrPermission) {
		return bad // no damage
	}
	if bad != nil {
		r.say("damaged: %v", bad)
	}
	for _, p := range before {
		r.say("damaged: %s", problemText(p))
	}
	dir, err := r.copy(time.Now())
	if err != nil {
		return fmt.Errorf("repair: copy the database first: %w", err)
	}
	made := filepath.Join(dir, "repaired.db")
	saved, err := transcript.Salvage(ctx, filepath.Join(dir, filepath.Base(r.path)), made, transcript.Options{Version: versionString()})
	if err != nil {
		return fmt.Errorf("repair: %w; nothing was changed", err)
	}
	after, err := findProblems(ctx, made)
	switch {
	case err != nil:
		return fmt.Errorf("repair: the new database: %w; nothing was changed", err)
	case len(saved.Sessions) == 0:
		return errors.Join(fmt.Errorf("repair: no session was found in it; nothing was changed. To start over, move %s away", r.path), os.RemoveAll(dir))
	case bad == nil && len(after) >= len(before):
		r.say("nothing more can be read than is read now; the rest is sound, and damaged sessions open all the same. Nothing was changed")
		return os.RemoveAll(dir)
	}
	r.say("the files as they were are in %s", dir)
	if err := r.replace(made); err != nil {
		return fmt.Errorf("repair: %w; the new database is %s", err, made)
	}
	r.tell(saved, after)
	return nil
}

func (r *repair) exists() bool {
	for _, suffix := range databaseFiles {
		if _, err := os.Stat(r.path + suffix); err == nil {
			return true
		}
	}
	return false
}

// findProblems is what verify finds, or the error with which it cannot even begin.
func findProblems(ctx context.Context, path string) ([]transcript.Problem, error) {
	store, err := transcript.Open(path, transcript.Options{Version: versionString(), ReadOnly: true})
	if err != nil {
		return nil, err
	}
	report, err := store.Verify(ctx, encoderByName)
	return report.Problems, errors.Join(err, store.Close())
}

// copy copies the files into a new folder beside them, and makes sure that they are on the disk.
func (r *repair) copy(now time.Time) (dir string, err error) {
	dir = r.path + ".damaged-" + now.Format("20060102-150405.000")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, suffix := range databaseFiles {
		err := copyFile(r.path+suffix, filepath.Join(dir, filepath.Base(r.path)+suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return dir, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// replace puts the new database where the damaged one is. Its log goes first: the new file must never stand beside a log
// that is not its own.
func (r *repair) replace(made string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(r.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(made, r.path)
}

func (r *repair) tell(saved transcript.Salvaged, after []transcript.Problem) {
	entries, whole := 0, 0
	for _, s := range saved.Sessions {
		entries += s.Entries
		if s.Whole() {
			whole++
			continue
		}
		what := []string{plural(s.Entries, "entry") + " brought back"}
		for _, lost := range []struct {
			n    int64
			what string
		}{{s.Missing, "lost before them"}, {s.Lost, "lost at its end"}, {int64(s.Changed), "damaged"}} {
			if lost.n > 0 {
				what = append(what, fmt.Sprintf("%d %s", lost.n, lost.what))
			}
		}
		if s.NoID {
			what = append(what, "its id was lost")
		}
		r.say("session %s %q: %s", s.Session, s.Title, strings.Join(what, ", "))
	}
	r.say("back: %s with %s; whole: %d", plural(len(saved.Sessions), "session"), plural(entries, "entry"), whole)
	if len(after) > 0 {
		r.say("fermata verify goes on to tell of what is lost: %s. These sessions open all the same", plural(len(after), "problem"))
	}
}
