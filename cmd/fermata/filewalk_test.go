package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// walkServer is a model that says what it is told to: a request comes out of asked, and is answered by what goes into say.
type walkServer struct {
	*httptest.Server
	asked chan bool
	say   chan string
}

func newWalkServer(t testing.TB) *walkServer {
	m := &walkServer{asked: make(chan bool), say: make(chan string)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		select {
		case m.asked <- true:
		case <-r.Context().Done(): // the daemon was killed
			return
		}
		select {
		case text := <-m.say:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text+"data: [DONE]\n\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(m.Server.Close)
	return m
}

func event(delta map[string]any, finish any) string {
	b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	return "data: " + string(b) + "\n\n"
}

// walkEditor is the open documents as an editor really has them.
type walkEditor struct {
	mu      sync.Mutex
	docs    map[string]*document
	stopped bool // the daemon that asks is gone
}

func (d *walkEditor) apply(root string, params json.RawMessage) any {
	var p struct {
		Edit struct {
			DocumentChanges []struct{ TextDocument struct{ URI string } }
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if json.Unmarshal(params, &p) == nil && len(p.Edit.DocumentChanges) == 1 && !d.stopped {
		for name, doc := range d.docs {
			if u, err := url.Parse(p.Edit.DocumentChanges[0].TextDocument.URI); err == nil && u.Path == filepath.ToSlash(filepath.Join(root, name)) {
				return doc.apply(params)
			}
		}
	}
	return map[string]any{"applied": false, "failureReason": "no such document"}
}

// fileWalk is one random walk over the files of a workspace.
type fileWalk struct {
	seed uint64
	*editor
	walker
	server  *walkServer
	have    walkEditor
	want    fileModel
	session string
	seq     int64 // of the last entry that was looked at
	calls   int
	fresh   map[string]bool // read in this turn, and not touched by anybody since
	steps   []walkStep
	turns   []string
	maybe   map[string]bool // files of which nobody knows what a killed daemon has done to them: what reverts say of them is free
	begun   map[string]int  // of each turn, how many steps there were before it
	reverts []string        // that wrote files
	wrote   map[string][]walkStep
	said    []string // what was done, for the report of a failure
	done    map[string]int
}

func newFileWalk(t testing.TB, seed uint64) *fileWalk {
	t.Helper()
	w := &fileWalk{seed: seed, editor: newUser(t, "reply\nsay none\n", ""), server: newWalkServer(t), walker: walker{Rand: rand.New(rand.NewPCG(seed, 4))},
		want: fileModel{map[string]string{}, map[string]string{}}, begun: map[string]int{}, maybe: map[string]bool{}, wrote: map[string][]walkStep{}, done: map[string]int{}}
	w.have.docs = map[string]*document{}
	w.configure(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nbase_url = %q\n[limits]\ntries = 1\nmax_steps = 1000\n[permissions]\nmode = \"trust\"\n", w.server.URL))
	for _, name := range walkNames[:6] {
		text := w.lines()
		if name == "crlf.txt" {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		w.put(name, &text)
	}
	w.boot()
	w.session = w.NewSession(w.root)
	return w
}

func (w *fileWalk) note(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// fail reports the walk up to here.
func (w *fileWalk) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s\nafter:\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.said[max(0, len(w.said)-1000):], "\n"))
}

// boot starts a daemon, and the editor tells it of its documents.
func (w *fileWalk) boot() {
	w.have.mu.Lock()
	w.have.stopped = false
	w.have.mu.Unlock()
	w.start(peer.Options{Answer: func(method string, params json.RawMessage) (any, *peer.Error) {
		if method == "workspace/applyEdit" {
			return w.have.apply(w.root, params), nil
		}
		return nil, nil
	}})
	w.Initialize(w.root, map[string]any{
		"workspace":    map[string]any{"applyEdit": true, "workspaceEdit": map[string]any{"documentChanges": true}},
		"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}},
	})
	w.have.mu.Lock()
	defer w.have.mu.Unlock()
	for _, d := range w.have.docs {
		d.open = false
		d.set(d.text)
	}
	w.synced()
}

// synced waits until the daemon has read all that it was told.
func (w *fileWalk) synced() { w.Must("fermata/session/list", map[string]any{"limit": 1}, nil) }

// put writes or deletes a file behind everybody's back.
func (w *fileWalk) put(name string, text *string) {
	file := filepath.Join(w.root, filepath.FromSlash(name))
	var err error
	if text == nil {
		delete(w.want.disk, name)
		err = os.RemoveAll(file)
	} else {
		w.want.disk[name] = *text
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, []byte(*text), 0o644)
		}
	}
	if err != nil {
		w.fail("%v", err)
	}
}

// check compares all that is there with what is to be there.
func (w *fileWalk) check(what string) {
	w.t.Helper()
	if disk := w.onDisk(); !maps.Equal(disk, w.want.disk) {
		w.fail("%s: the disk has\n%q\nwant\n%q", what, disk, w.want.disk)
	}
	if docs := w.inEditor(); !maps.Equal(docs, w.want.docs) {
		w.fail("%s: the editor has\n%q\nwant\n%q", what, docs, w.want.docs)
	}
}

func (w *fileWalk) onDisk() map[string]string {
	disk := map[string]string{}
	err := filepath.WalkDir(w.root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(w.root, file)
		if !strings.HasPrefix(filepath.Base(name), ".fermata-") { // which a killed daemon may leave
			disk[filepath.ToSlash(name)] = string(text)
		}
		return err
	})
	if err != nil {
		w.fail("%v", err)
	}
	return disk
}

func (w *fileWalk) inEditor() map[string]string {
	w.have.mu.Lock()
	defer w.have.mu.Unlock()
	docs := map[string]string{}
	for name, d := range w.have.docs {
		docs[name] = d.text
	}
	return docs
}

// touched says that somebody else than the model has changed a file.
func (w *fileWalk) touched(name string) {
	delete(w.fresh, name)
}

// interfere is the user, or another program, at work.
func (w *fileWalk) interfere() {
	name := w.pick(walkNames)
	before := w.want.content(name)
	_, open := w.want.docs[name]
	switch n := w.IntN(10); {
	case n < 3:
		text := w.lines()
		w.put(name, &text)
		w.note("another program writes %s", name)
	case n == 3:
		w.put(name, nil)
		w.note("another program deletes %s", name)
	case n < 7: // opened, or edited
		text, ok := w.want.disk[name]
		if open {
			end := "\n"
			if strings.Contains(w.want.docs[name], "\r\n") {
				end = "\r\n"
			}
			text, ok = w.want.docs[name]+w.line()+end, true
		}
		if !ok {
			return
		}
		w.document(name, text)
		w.note("the editor has %s as %q", name, text)
	case n < 9 && open: // saved
		text := w.want.docs[name]
		w.put(name, &text)
		w.note("the editor saves %s", name)
	case open: // closed; what was not saved is lost
		w.have.mu.Lock()
		uri := w.have.docs[name].uri()
		delete(w.have.docs, name)
		w.have.mu.Unlock()
		delete(w.want.docs, name)
		w.Notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri}})
		w.note("the editor closes %s", name)
	}
	if !sameText(before, w.want.content(name)) {
		w.touched(name)
	}
	if _, now := w.want.docs[name]; now != open {
		w.touched(name)
	}
	w.synced()
}

func (w *fileWalk) document(name, text string) {
	w.have.mu.Lock()
	defer w.have.mu.Unlock()
	d := w.have.docs[name]
	if d == nil {
		d = &document{e: w.editor, name: name}
		w.have.docs[name] = d
	}
	w.want.docs[name] = text
	d.set(text)
}

// news are the entries since those that were looked at.
func (w *fileWalk) news() (out []transcript.Body) {
	var opened struct {
		Entries []struct {
			logEntry
			Seq int64
		}
	}
	w.Must("fermata/session/open", map[string]any{"session": w.session, "since": w.seq}, &opened)
	for _, e := range opened.Entries {
		w.seq = e.Seq
		if b := decode(w.t, e.logEntry); b != nil {
			out = append(out, b)
		}
	}
	w.Forget()
	return out
}

func (w *fileWalk) waitAsked() {
	w.t.Helper()
	select {
	case <-w.server.asked:
	case <-time.After(patience):
		w.fail("the model is not asked; %s", w.Stderr())
	}
}

// A walk of edits by tools, patches, moves, deletions, commands, reverts, undone reverts, changes by other programs and by the
// user in the editor, and of kill -9 in the middle of any of them. After each of them every file holds what a simple model
// of the files says, and what the log says of a call is what happened.
//
// guards C2, C3, P2, P4
func TestAfterARandomWalkEachFileHoldsWhatItShould(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the commands of the walk are for a Unix shell
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newFileWalk(t, seed)
			w.walk(25)
			t.Log(w.done)
		})
	}
}

// BenchmarkFileWalk goes on for as long as it is told to: BENCHTIME=30m. The seed is the number of the walk; each is in a
// workspace and a database of its own.
func BenchmarkFileWalk(b *testing.B) {
	seed, all := uint64(1000), map[string]int{}
	for b.Loop() {
		seed++
		w := newFileWalk(b, seed)
		w.walk(150)
		w.quit()
		verifyDatabase(b, w.database())
		for k, n := range w.done {
			all[k] += n
		}
		if b.Failed() {
			b.Fatalf("seed %d", seed)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		b.ReportMetric(float64(all[k])/float64(b.N), strings.ReplaceAll(k, " ", "-")+"/walk")
	}
}
