// Package watch tells cheaply that a file has not changed: by fsnotify, which watches the folders of the files that it is
// asked about, and no others; where that would open all files in such a folder, it watches only the files themselves. It promises
// one thing: when [Files.Quiet] says of a file that it was quiet, no change of it was reported since it was asked last. It proves
// nothing more: reports can be late, and some file systems report nothing. Who needs the truth looks at the file's size and time
// besides, and compares hashes when it is not told that the file was quiet.
//
// Of a folder it keeps only what concerns files that it was asked about: a checkout or a build that changes ten thousand
// others beside them costs reading past their names. Nothing outside of a workspace is watched. When the system's limit is
// reached, or its own, files that cannot be watched are just never quiet; that is logged once.
//
// It knows nothing of sessions, models or editors. All methods may be called from any goroutine; none waits for a file.
package watch

import (
	"errors"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"

	"fermata/tools/workspace"
)

// maxFolders is how many folders are watched at once: the user's other programs need watches too.
const maxFolders = 4096

// Watcher watches for all sessions of a process: the system grants each user few of them. Make it with [New]. It opens
// nothing and runs no goroutine before the first file is asked about.
type Watcher struct {
	log *slog.Logger
	max int // folders
	// eachFile says that files are watched one by one. The kqueue of macOS and the BSDs holds open what it watches, and fsnotify
	// has it watch all names in a folder: one large folder would leave the process no files to open.
	eachFile bool

	// changing is held while the system is asked to watch or not. It is taken before mu, and never by the goroutines that
	// take what the system reports: some systems answer only when their reports are taken.
	changing sync.Mutex
	fs       *fsnotify.Watcher
	add      func(dir string) error // fs.Add
	limited  bool                   // no more than limit folders can be watched
	limit    int
	said     bool // that was logged
	closed   bool
	hearing  sync.WaitGroup

	losses atomic.Int64      // how often reports were lost
	heard  func(name string) // for tests: called with each report about a file that was asked about

	mu      sync.Mutex
	folders map[string]folder // by absolute path; with eachFile, of the file
}

// folder is what was asked about in a watched folder, by name.
type folder map[string][]*file

// file is one file of one set.
type file struct {
	set    *Files
	path   string // from the root
	folder string // of Watcher.folders
	quiet  bool
	losses int64 // of Watcher when it was asked about last
}

// New makes a Watcher. log is told, once, that files cannot be watched; nil: nobody.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	kqueue := slices.Contains([]string{"darwin", "dragonfly", "freebsd", "netbsd", "openbsd"}, runtime.GOOS)
	return &Watcher{log: log, max: maxFolders, eachFile: kqueue, folders: map[string]folder{}}
}

// Close ends the watching and waits for its goroutines. After it no file is quiet.
func (w *Watcher) Close() error {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.closed = true
	w.losses.Add(1)
	if w.fs == nil {
		return nil
	}
	err := w.fs.Close()
	w.hearing.Wait()
	w.fs = nil
	return err
}

// Files are those files of one workspace that somebody asks about. Close them.
type Files struct {
	w     *Watcher
	space *workspace.Workspace
	files map[string]*file // by path; Watcher.mu guards it
}

// Files begins a set of files of a workspace, which must stay open until the set is closed.
func (w *Watcher) Files(space *workspace.Workspace) *Files {
	return &Files{w: w, space: space, files: map[string]*file{}}
}

// Quiet reports whether nothing was heard of a file since it was asked about last. It begins to watch the file, so that it is
// false the first time: look at the file after that call, not before. path is relative to the root with links resolved, as
// [workspace.File].Path is one; the file need not exist, its folder must, else it is never quiet.
func (s *Files) Quiet(path string) bool {
	if watched, quiet := s.ask(path); watched {
		return quiet
	}
	s.watch(path)
	return false
}

func (s *Files) ask(path string) (watched, quiet bool) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	f := s.files[path]
	if f == nil {
		return false, false
	}
	losses := s.w.losses.Load()
	quiet = f.quiet && f.losses == losses
	f.quiet, f.losses = true, losses
	return true, quiet
}

// Forget stops to watch a file.
func (s *Files) Forget(path string) { s.forget(path) }

// Missed is to be told of a change of a file that was quiet: its report is late, or its folder is no longer the one that is
// watched, because one above it went away and another came. The folder is watched anew.
func (s *Files) Missed(path string) {
	w := s.w
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	f := s.files[path]
	if f != nil {
		w.leave(f.folder)
	}
	w.mu.Unlock()
	if f != nil && w.fs != nil {
		_ = w.fs.Remove(f.folder)
	}
}

// leave forgets a folder: its files are watched anew when they are asked about. Call it with mu held.
func (w *Watcher) leave(dir string) {
	for _, files := range w.folders[dir] {
		for _, f := range files {
			delete(f.set.files, f.path)
		}
	}
	delete(w.folders, dir)
}

// Close stops to watch them all.
func (s *Files) Close() {
	s.w.mu.Lock()
	paths := slices.Collect(maps.Keys(s.files))
	s.w.mu.Unlock()
	s.forget(paths...)
}

func (s *Files) forget(paths ...string) {
	w := s.w
	w.changing.Lock()
	defer w.changing.Unlock()
	for _, dir := range s.drop(paths) {
		if w.fs != nil {
			_ = w.fs.Remove(dir) // there is nothing to remove when the folder is gone
		}
	}
}

// drop takes files out of the set and returns the folders in which no file is left.
func (s *Files) drop(paths []string) (empty []string) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		f := s.files[p]
		if f == nil {
			continue
		}
		delete(s.files, p)
		in, base := w.folders[f.folder], path.Base(p)
		if in[base] = slices.DeleteFunc(in[base], func(o *file) bool { return o == f }); len(in[base]) == 0 {
			delete(in, base)
		}
		if len(in) == 0 {
			delete(w.folders, f.folder)
			empty = append(empty, f.folder)
		}
	}
	return empty
}

// watch begins to watch a file, if that can be.
func (s *Files) watch(name string) {
	w := s.w
	what := path.Dir(name)
	if w.eachFile {
		what = name
	}
	dir := filepath.Join(s.space.RealRoot(), filepath.FromSlash(what))
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	_, watched := w.folders[dir]
	n := len(w.folders)
	w.mu.Unlock()
	if w.closed || !watched && !(s.inside(what) && w.watch(dir, n)) {
		return
	}
	if !watched && !s.inside(what) { // a link took its place meanwhile
		if w.fs != nil {
			_ = w.fs.Remove(dir)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.files[name] != nil {
		return
	}
	in := w.folders[dir]
	if in == nil {
		in = folder{}
		w.folders[dir] = in
	}
	f := &file{set: s, path: name, folder: dir, quiet: true, losses: w.losses.Load()}
	in[path.Base(name)] = append(in[path.Base(name)], f)
	s.files[name] = f
}

// inside reports whether what is to be watched is there, inside the root, and no link leads to it.
func (s *Files) inside(what string) bool {
	e, err := s.space.Stat(what)
	return err == nil && e.Name == what && (e.Mode.IsDir() || s.w.eachFile && e.Mode.IsRegular())
}

// watch has the system watch a folder, besides n others.
func (w *Watcher) watch(dir string, n int) bool {
	if w.limited && n >= w.limit {
		return false
	}
	if n >= w.max {
		w.limitTo(n, errors.New("the bound of fermata's own is reached"))
		return false
	}
	if w.add == nil {
		fsw, err := fsnotify.NewWatcher()
		if err != nil {
			w.limitTo(n, err)
			return false
		}
		w.fs, w.add = fsw, fsw.Add
		w.hearing.Go(func() { w.hearEvents(fsw.Events) }) // both end with Close
		w.hearing.Go(func() { w.hearErrors(fsw.Errors) })
	}
	if w.fs != nil {
		_ = w.fs.Remove(dir) // one that vanished and came back may be watched where it went
	}
	err := w.add(dir)
	if err != nil && limitReached(err) {
		w.limitTo(n, err)
	}
	return err == nil
}

// limitTo notes that no more than n folders can be watched: the next is tried when one of them was let go, or is gone.
func (w *Watcher) limitTo(n int, err error) {
	w.limited, w.limit = true, n
	if !w.said {
		w.said = true
		w.log.Warn("not all files can be watched for changes; the others are compared by their content before each use", "err", err)
	}
}

func (w *Watcher) hearEvents(events <-chan fsnotify.Event) {
	for ev := range events {
		if ev.Op != fsnotify.Chmod {
			w.hear(ev)
		}
	}
}

// hearErrors takes all errors to mean that reports were lost: then no file is quiet.
func (w *Watcher) hearErrors(errs <-chan error) {
	for err := range errs {
		w.losses.Add(1)
		if !errors.Is(err, fsnotify.ErrEventOverflow) {
			w.log.Debug("watching files", "err", err)
		}
	}
}

// hear notes one report. Invariant: a file that was reported is not quiet when it is asked about next
// (TestAFileThatChangedIsNotQuietOnce).
func (w *Watcher) hear(ev fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if in := w.folders[ev.Name]; in != nil && ev.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		w.leave(ev.Name) // it is not where it was
		w.tell(ev.Name)
		return
	}
	dir, base := filepath.Split(ev.Name)
	if w.eachFile {
		dir = ev.Name
	}
	files := w.folders[filepath.Clean(dir)][base]
	for _, f := range files {
		f.quiet = false
	}
	if len(files) > 0 {
		w.tell(ev.Name)
	}
}

func (w *Watcher) tell(name string) {
	if w.heard != nil {
		w.heard(name)
	}
}
