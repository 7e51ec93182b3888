package watch

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tools/workspace"
)

// watched is a watcher, a set of files of a real folder, and what was heard of them.
type watched struct {
	*Files
	t     testing.TB
	dir   string
	heard chan string
	log   bytes.Buffer
}

func newWatched(t testing.TB, names ...string) *watched {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t, dir: dir, heard: make(chan string, 1<<16)}
	for _, n := range names {
		w.put(n, "old\n")
	}
	space, err := workspace.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	watcher := New(slog.New(slog.NewTextHandler(&w.log, nil)))
	watcher.eachFile = false // on every system; TestFilesAreWatchedOneByOne is about true
	watcher.heard = func(name string) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			rel = name
		}
		select {
		case w.heard <- filepath.ToSlash(rel):
		default:
		}
	}
	w.Files = watcher.Files(space)
	t.Cleanup(func() {
		w.Close()
		if err := watcher.Close(); err != nil {
			t.Error(err)
		}
		if err := space.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) put(name, content string) {
	w.t.Helper()
	name = filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// hear waits until a report of a file or folder came.
func (w *watched) hear(name string) {
	w.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case got := <-w.heard:
			if got == name {
				return
			}
		case <-late:
			w.t.Fatalf("nothing was heard of %s", name)
		}
	}
}

// settle asks until a file is quiet: a change can be reported in pieces.
func (w *watched) settle(name string) {
	w.t.Helper()
	for range 1000 {
		if w.Quiet(name) {
			return
		}
	}
	w.t.Fatalf("%s is never quiet", name)
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAFileThatChangedIsNotQuietOnce(t *testing.T) {
	for name, change := range map[string]func(w *watched, file string){
		"written": func(w *watched, file string) { w.put("a/b.go", "new\n") },
		"replaced": func(w *watched, file string) {
			w.put("a/b.go.tmp", "new\n")
			w.must(os.Rename(file+".tmp", file))
		},
		"deleted":  func(w *watched, file string) { w.must(os.Remove(file)) },
		"moved":    func(w *watched, file string) { w.must(os.Rename(file, filepath.Join(w.dir, "c.go"))) },
		"appended": appendTo,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, "a/b.go", "a/other.go")
			if w.Quiet("a/b.go") {
				t.Error("a file is quiet that was never asked about")
			}
			if !w.Quiet("a/b.go") || w.Quiet("a/other.go") || !w.Quiet("a/other.go") {
				t.Error("a file is not quiet though nothing happened")
			}
			change(w, filepath.Join(w.dir, "a", "b.go"))
			w.hear("a/b.go")
			if w.Quiet("a/b.go") {
				t.Error("the change was heard, and the file is quiet")
			}
			w.settle("a/b.go")
			if !w.Quiet("a/other.go") {
				t.Error("its neighbour is not quiet")
			}
		})
	}
}

func appendTo(w *watched, file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = f.WriteString("more\n")
	w.must(err)
	w.must(f.Close())
}

func TestAFileThatIsMadeAgainIsWatchedAgain(t *testing.T) {
	w := newWatched(t, "a/b.go")
	w.Quiet("a/b.go")
	w.must(os.Remove(filepath.Join(w.dir, "a", "b.go")))
	w.hear("a/b.go")
	w.settle("a/b.go")
	w.put("a/b.go", "again\n")
	w.hear("a/b.go")
	if w.Quiet("a/b.go") {
		t.Error("it came back, and is quiet")
	}
}

func TestAFolderThatIsMadeAgainIsWatchedAgain(t *testing.T) {
	w := newWatched(t, "a/b.go")
	w.Quiet("a/b.go")
	w.must(os.RemoveAll(filepath.Join(w.dir, "a")))
	w.hear("a")
	for range 2 {
		if w.Quiet("a/b.go") {
			t.Error("a file in a folder that is gone is quiet")
		}
	}
	w.put("a/b.go", "again\n")
	if w.Quiet("a/b.go") {
		t.Error("the first time")
	}
	w.settle("a/b.go")
	w.put("a/b.go", "and again\n")
	w.hear("a/b.go")
	if w.Quiet("a/b.go") {
		t.Error("the folder that came back is not watched")
	}
}

func TestAfterAMissedChangeTheFolderIsWatchedAnew(t *testing.T) {
	w := newWatched(t, "a/b/c.go", "a/b/d.go")
	w.settle("a/b/c.go")
	w.settle("a/b/d.go")
	if os.Rename(filepath.Join(w.dir, "a"), filepath.Join(w.dir, "z")) != nil {
		return // Windows moves no folder in which something is watched
	}
	w.put("a/b/c.go", "another\n")
	w.put("a/b/d.go", "another\n")
	w.Missed("a/b/c.go")
	w.Missed("a/b/c.go") // no harm
	if w.Quiet("a/b/d.go") {
		t.Error("a file beside it is quiet")
	}
	w.settle("a/b/d.go")
	w.put("a/b/d.go", "new\n")
	w.hear("a/b/d.go")
	w.settle("z/b/d.go")
	w.put("z/b/d.go", "new\n")
	w.hear("z/b/d.go") // not by its old name
}

func TestTwoSetsHearOfOneFile(t *testing.T) {
	w := newWatched(t, "a.go")
	other := w.w.Files(w.space)
	w.Quiet("a.go")
	other.Quiet("a.go")
	w.put("a.go", "new\n")
	w.hear("a.go")
	if w.Quiet("a.go") || other.Quiet("a.go") {
		t.Error("one of them did not hear of it")
	}
	other.Close()
	w.settle("a.go")
	w.put("a.go", "newer\n")
	w.hear("a.go")
	if w.Quiet("a.go") {
		t.Error("when one set is closed the other hears nothing")
	}
}

func TestOnlyFoldersOfFilesThatWereAskedAboutAreWatched(t *testing.T) {
	w := newWatched(t, "a/b.go", "c/d.go", "e/f.go")
	w.Quiet("a/b.go")
	w.Quiet("c/d.go")
	w.Forget("c/d.go")
	got := w.w.fs.WatchList()
	if len(got) != 1 || got[0] != filepath.Join(w.dir, "a") {
		t.Errorf("watched are %v", got)
	}
	w.Files.Close()
	if got := w.w.fs.WatchList(); len(got) != 0 {
		t.Errorf("after the close watched are %v", got)
	}
}

func TestNothingOutsideOfTheRootIsWatched(t *testing.T) {
	w := newWatched(t, "in/b.go")
	outside := t.TempDir()
	w.must(os.WriteFile(filepath.Join(outside, "b.go"), []byte("x"), 0o666))
	// The folder was a folder when the model read the file, and is a link now.
	w.must(os.RemoveAll(filepath.Join(w.dir, "in")))
	if err := os.Symlink(outside, filepath.Join(w.dir, "in")); err != nil {
		return // not every user of Windows may make links
	}
	for _, name := range []string{"in/b.go", "../" + filepath.Base(outside) + "/b.go", filepath.ToSlash(outside) + "/b.go"} {
		for range 2 {
			if w.Quiet(name) {
				t.Errorf("%s is watched", name)
			}
		}
	}
	if w.w.fs != nil {
		t.Errorf("watched are %v", w.w.fs.WatchList())
	}
}

func TestAtTheLimitFilesAreNeverQuietAndTheLogSaysSoOnce(t *testing.T) {
	w := newWatched(t, "a/x", "b/x", "c/x")
	w.w.max = 1
	for range 3 {
		for _, name := range []string{"a/x", "b/x", "c/x"} {
			if w.Quiet(name) && name != "a/x" {
				t.Errorf("%s is quiet", name)
			}
		}
	}
	if n := strings.Count(w.log.String(), "not all files can be watched"); n != 1 {
		t.Errorf("the log said it %d times: %s", n, w.log.String())
	}
	w.Forget("a/x") // and there is room again
	w.Quiet("b/x")
	if !w.Quiet("b/x") {
		t.Error("the room that was made is not used")
	}
}

func TestAFolderThatGoesMakesRoomAtTheLimit(t *testing.T) {
	w := newWatched(t, "a/x", "b/x")
	w.w.max = 1
	w.Quiet("a/x")
	w.Quiet("b/x")
	w.must(os.RemoveAll(filepath.Join(w.dir, "a")))
	w.hear("a")
	w.Quiet("b/x")
	if !w.Quiet("b/x") {
		t.Error("the room that was made is not used")
	}
}

// A kqueue has to open what it watches, and fsnotify has it watch all in a folder.
func TestFilesAreWatchedOneByOne(t *testing.T) {
	for name, change := range map[string]func(w *watched, file string){
		"written": func(w *watched, file string) { w.put("a/b.go", "new\n") },
		"replaced": func(w *watched, file string) {
			w.put("a/tmp", "new\n")
			w.must(os.Rename(filepath.Join(w.dir, "a", "tmp"), file))
		},
		"moved":   func(w *watched, file string) { w.must(os.Rename(file, file+".moved")) },
		"deleted": func(w *watched, file string) { w.must(os.Remove(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, "a/b.go", "a/other.go")
			w.w.eachFile = true
			file := filepath.Join(w.dir, "a", "b.go")
			for range 2 {
				if w.Quiet("a/gone.go") {
					t.Error("a file that is not there is quiet")
				}
			}
			w.Quiet("a/b.go")
			if got := w.w.fs.WatchList(); !w.Quiet("a/b.go") || !slices.Equal(got, []string{file}) {
				t.Errorf("it is not quiet, or more is watched: %v", got)
			}
			change(w, file)
			w.hear("a/b.go")
			if w.Quiet("a/b.go") {
				t.Error("the change was heard, and the file is quiet")
			}
			w.put("a/b.go", "again\n")
			w.settle("a/b.go")
		})
	}
}

func TestAFileThatBecameALinkIsNotWatched(t *testing.T) {
	w := newWatched(t, "a/b.go", "c.go")
	w.w.eachFile = true
	file := filepath.Join(w.dir, "a", "b.go")
	w.must(os.Remove(file))
	if err := os.Symlink("../c.go", file); err != nil {
		return // not every user of Windows may make links
	}
	for range 2 {
		if w.Quiet("a/b.go") || w.w.fs != nil {
			t.Error("where a link leads is watched")
		}
	}
}

// What the system drops when too much happens at once may have been about any file.
func TestLostReportsMakeNoFileQuiet(t *testing.T) {
	w := newWatched(t, "a", "b")
	w.Quiet("a")
	w.Quiet("b")
	errs := make(chan error, 1)
	errs <- os.ErrDeadlineExceeded
	close(errs)
	w.w.hearErrors(errs)
	for _, name := range []string{"a", "b"} {
		if w.Quiet(name) {
			t.Errorf("%s is quiet", name)
		}
		if !w.Quiet(name) {
			t.Errorf("%s is not quiet again", name)
		}
	}
}

func TestAClosedWatcherSaysThatNothingIsQuiet(t *testing.T) {
	w := newWatched(t, "a", "b")
	w.Quiet("a")
	w.must(w.w.Close())
	for _, name := range []string{"a", "b", "b"} {
		if w.Quiet(name) {
			t.Errorf("%s is quiet", name)
		}
	}
}

func TestManyAskAtOnce(t *testing.T) {
	w := newWatched(t, "a/x", "b/x", "c/x")
	var wg sync.WaitGroup
	for i := range 8 {
		set := w.w.Files(w.space)
		wg.Go(func() {
			for n := range 50 {
				name := string(rune('a'+(i+n)%3)) + "/x"
				set.Quiet(name)
				if n%7 == 0 {
					w.put(name, fmt.Sprint(i, n))
				}
				if n%11 == 0 {
					set.Forget(name)
				}
			}
			set.Close()
		})
	}
	wg.Wait()
	if got := w.w.fs.WatchList(); len(got) != 0 {
		t.Errorf("left over are %v", got)
	}
}

// BenchmarkStorm is a folder in which 10,000 files are written, which makes at least 20,000 reports; beside them is a known
// file, or none that is watched.
func BenchmarkStorm(b *testing.B) {
	for name, known := range map[string]bool{"beside a known file": true, "unwatched": false} {
		b.Run(name, func(b *testing.B) {
			w := newWatched(b, "src/known.go")
			if known {
				w.Quiet("src/known.go")
				w.settle("src/known.go")
			}
			for b.Loop() {
				for i := range 10000 {
					file := filepath.Join(w.dir, "src", fmt.Sprintf("o%d", i%500))
					if err := os.WriteFile(file, []byte("x"), 0o666); err != nil {
						b.Fatal(err)
					}
				}
				w.put("src/known.go", "new\n")
				if known {
					w.hear("src/known.go") // all before it was heard too
				}
			}
		})
	}
}
