package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"fermata/tools"
)

// A file is known by what it holds: neither its size nor its time tells, and no watcher is needed.
func TestAChangeIsToldWithoutAWatcherToo(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`), fine)
	if err := w.agent.o.Watcher.Close(); err != nil {
		t.Fatal(err)
	}
	w.put("a.go", "old\n")
	file := filepath.Join(w.root, "a.go")
	w.run(say("Read."))
	w.run(say("And?"))
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
	w.run(say("And?"))
	if got := w.said(); got != "And?" {
		t.Errorf("only its time changed: %q", got)
	}
	w.put("a.go", "new\n")
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
	w.run(say("And?"))
	if got := w.said(); got != "[Since your last turn these files changed: a.go.]\n\nAnd?" {
		t.Errorf("all but its content is the same: %q", got)
	}
}

// A file that was just changed when it was looked at can be changed again at what its file system takes for the same time; and what
// is written by another of its names is not reported.
func TestAChangeAtTheTimeOfTheLastLookIsSeen(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`), fine)
	w.put("a.go", "old\n")
	w.put("b/other", "")
	w.run(say("Read."))
	file, twin := filepath.Join(w.root, "a.go"), filepath.Join(w.root, "b", "twin")
	if os.Link(file, twin) != nil {
		return // not on this file system
	}
	soon := time.Now().Add(time.Minute)
	write := func(content string) {
		w.put("b/twin", content)
		if err := os.Chtimes(twin, time.Time{}, soon); err != nil {
			t.Fatal(err)
		}
	}
	write("new\n")
	for range 3 {
		w.run(say("And?"))
	}
	write("own\n")
	w.run(say("And?"))
	if got := w.said(); got != "[Since your last turn these files changed: a.go.]\n\nAnd?" {
		t.Errorf("%q", got)
	}
}

// The folder above a known file is moved away and another takes its place: of what happens there the old watch hears nothing.
func TestAChangeUnderAFolderThatAnotherReplacedIsSeen(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a/b/c.go"}`), fine)
	w.put("a/b/c.go", "old\n")
	w.run(say("Read."))
	space, err := w.s.workspace()
	if err != nil {
		t.Fatal(err)
	}
	is := func(content string) bool {
		return w.s.known.look(space, func() bool { return false })[0].now.state.SHA256 == tools.Digest([]byte(content))
	}
	is("old\n") // from now on it is watched
	if os.Rename(filepath.Join(w.root, "a"), filepath.Join(w.root, "z")) != nil {
		return // Windows moves no folder in which something is watched
	}
	is("") // none is there
	long := time.Now().Add(-time.Hour)
	write := func(content string) {
		w.put("a/b/c.go", content)
		if err := os.Chtimes(filepath.Join(w.root, "a", "b", "c.go"), time.Time{}, long); err != nil {
			t.Fatal(err)
		}
	}
	write("new\n")
	for range 3 {
		if !is("new\n") {
			t.Fatal("the other file is not seen")
		}
	}
	write("own\n")
	for late := time.Now().Add(20 * time.Second); !is("own\n"); {
		if time.Now().After(late) {
			t.Fatal("a change that leaves size and time as they were is not seen")
		}
	}
}
