package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tools"
	"fermata/tools/watch"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// documents are what is open in an editor.
type documents map[string]string

func (d documents) Text(p string) (string, bool) { text, ok := d[p]; return text, ok }
func (d documents) Paths() []string              { return slices.Collect(maps.Keys(d)) }
func (d documents) Apply(_ context.Context, p, before, after string) error {
	if d[p] != before {
		return errors.New("the document changed")
	}
	d[p] = after
	return nil
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.root, filepath.FromSlash(name))); err != nil {
		w.t.Fatal(err)
	}
}

// said is the newest request's last message.
func (w *world) said() string {
	w.t.Helper()
	w.model.mu.Lock()
	n := len(w.model.bodies)
	w.model.mu.Unlock()
	m := w.model.messages(w.t, n)
	return *m[len(m)-1].Content
}

// makes is an answer of nothing but calls of a tool.
func makes(name string, args ...string) func(*reply) {
	return func(r *reply) {
		for i, a := range args {
			r.call(fmt.Sprintf("c%d", i+1), name, a)
		}
		r.done()
	}
}

func fine(r *reply) { r.say("Fine."); r.done() }

// shell is a command for the system's shell that puts a line into a file, and its arguments.
func shell(line, file string) string {
	return fmt.Sprintf(`{"command":"echo %s>%s"}`, line, file)
}

// The first turn reads a.go and b.go, both "old"; then before the second and the third something happens to files.
//
// guards S11, M1
func TestWhatOthersDidToFilesTheModelKnowsIsToldOnce(t *testing.T) {
	one := "[Since your last turn these files changed: %s.]\n\nAnd now?"
	for name, tt := range map[string]struct {
		acts   []func(*reply) // of the model, after it has read; the last one ends the turn
		open   documents
		before func(w *world) // the second turn
		said   string
		then   func(w *world) // before the third turn
		last   string
	}{
		"nothing":                   {},
		"edited":                    {before: func(w *world) { w.put("a.go", "new\n") }, said: "a.go"},
		"several, by name":          {before: func(w *world) { w.remove("b.go"); w.put("a.go", "new\n") }, said: "a.go, b.go (deleted)"},
		"a file it does not know":   {before: func(w *world) { w.put("c.go", "new\n") }},
		"written, and as it was":    {before: func(w *world) { w.put("a.go", "new\n"); w.put("a.go", "old\n") }},
		"edited and not saved":      {before: func(w *world) { w.editor.(documents)["a.go"] = "new\n" }, open: documents{"a.go": "old\n"}, said: "a.go (edited in the editor)"},
		"opened, edited, not saved": {before: func(w *world) { w.editor.(documents)["a.go"] = "new\n" }, open: documents{}, said: "a.go (edited in the editor)"},
		"edited and saved":          {before: func(w *world) { w.put("a.go", "new\n"); w.editor.(documents)["a.go"] = "new\n" }, open: documents{"a.go": "old\n"}, said: "a.go"},
		"opened":                    {before: func(w *world) { w.editor.(documents)["a.go"] = "old\n" }, open: documents{}},
		"opened by an editor with its own line endings": {before: func(w *world) { w.editor.(documents)["a.go"] = "old\r\n" }, open: documents{}},
		"opened so, and closed": {
			before: func(w *world) { w.editor.(documents)["a.go"] = "old\r\n" }, open: documents{},
			then: func(w *world) { delete(w.editor.(documents), "a.go") },
		},
		"opened so, and edited": {
			before: func(w *world) { w.editor.(documents)["a.go"] = "old\r\n" }, open: documents{},
			then: func(w *world) { w.editor.(documents)["a.go"] = "new\r\n" }, last: "a.go (edited in the editor)",
		},
		"a folder took its place": {before: func(w *world) { w.remove("a.go"); w.put("a.go/x", "") }, said: "a.go (can no longer be read)"},
		"taken back afterwards": {
			before: func(w *world) { w.put("a.go", "new\n") }, said: "a.go",
			then: func(w *world) { w.put("a.go", "old\n") }, last: "a.go (back to what you know)",
		},
		"changed again afterwards": {
			before: func(w *world) { w.put("a.go", "new\n") }, said: "a.go",
			then: func(w *world) { w.put("a.go", "newer\n") }, last: "a.go",
		},
		"deleted, and made again": {
			before: func(w *world) { w.remove("a.go") }, said: "a.go (deleted)",
			then: func(w *world) { w.put("a.go", "made\n") }, last: "a.go",
		},
		"by its own edit": {
			acts: []func(*reply){makes("edit_file", `{"path":"a.go","old":"old","new":"own"}`), fine},
			then: func(w *world) { w.put("a.go", "new\n") }, last: "a.go",
		},
		"by its own edit of a document": {
			acts: []func(*reply){makes("edit_file", `{"path":"a.go","old":"old","new":"own"}`), fine}, open: documents{"a.go": "old\n"},
		},
		"by its own command": {
			acts: []func(*reply){makes("run", shell("own", "a.go")), fine},
			then: func(w *world) { w.put("a.go", "new\n") }, last: "a.go",
		},
		"a new file of its own": {
			acts:   []func(*reply){makes("write_file", `{"path":"c.go","content":"own\n"}`), fine},
			before: func(w *world) { w.put("c.go", "new\n") }, said: "c.go",
		},
		"an edit that failed": {
			acts:   []func(*reply){makes("edit_file", `{"path":"a.go","old":"nowhere","new":"own"}`), fine},
			before: func(w *world) { w.put("a.go", "new\n") }, said: "a.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			acts := tt.acts
			if acts == nil {
				acts = []func(*reply){fine}
			}
			scripts := append([]func(*reply){makes("read_file", `{"path":"a.go"}`, `{"path":"b.go"}`)}, acts...)
			w := newWorld(t, tools.All(), append(scripts, fine)...)
			if tt.open != nil {
				w.editor = tt.open
			}
			w.put("a.go", "old\n")
			w.put("b.go", "old\n")
			w.run(say("Read."))
			want := func(files string) string {
				if files == "" {
					return "And now?"
				}
				return fmt.Sprintf(one, files)
			}
			if tt.before != nil {
				tt.before(w)
			}
			w.run(say("And now?"))
			if got := w.said(); got != want(tt.said) {
				t.Errorf("the second turn begins with %q, want %q", got, want(tt.said))
			}
			if tt.then != nil {
				tt.then(w)
			}
			w.run(say("And now?"))
			if got := w.said(); got != want(tt.last) {
				t.Errorf("the third turn begins with %q, want %q", got, want(tt.last))
			}
		})
	}
}

// guards S11: of a long file only the hash is kept.
func TestALongFileThatIsOnlyOpenedHasNotChanged(t *testing.T) {
	long := strings.Repeat("A line of a long file.\r\n", tools.MaxKept/20)
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`), fine)
	open := documents{}
	w.editor = open
	w.put("a.go", long)
	w.run(say("Read."))
	for _, text := range []string{strings.ReplaceAll(long, "\r", ""), "", strings.ReplaceAll(long, "\r", "") + "more"} {
		if open["a.go"] = text; text == "" {
			delete(open, "a.go")
		}
		want := "And?"
		if strings.HasSuffix(text, "more") {
			want = "[Since your last turn these files changed: a.go (edited in the editor).]\n\nAnd?"
		}
		w.run(say("And?"))
		if got := w.said(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// guards S11: what the log holds is told by whoever opens it, and what was told is in it.
func TestWhatTheModelKnowsSurvivesARestartAndIsInAFork(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`), fine)
	w.put("a.go", "old\n")
	w.put("quoted.go", "old\n")
	w.run(Start{Prompt: []transcript.PromptPart{{Type: "text", Text: "Read."}, {Type: "file", Path: "quoted.go"}}})
	fork := func(a *Agent) *Session {
		s, err := a.Fork(t.Context(), w.s.ID(), "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := fork(w.agent)
	w.put("a.go", "new\n")
	w.put("quoted.go", "new\n")
	ask := func(a *Agent, s *Session) string {
		if _, err := a.Reserve(s.ID()).Run(t.Context(), say("And?")); err != nil {
			t.Fatal(err)
		}
		return w.said()
	}
	const told = "[Since your last turn these files changed: a.go, quoted.go.]\n\nAnd?"
	o := w.agent.o
	o.Watcher = watch.New(nil)
	again := New(o)
	defer func() {
		if err := again.Close(context.Background(), ErrShutdown); err != nil {
			t.Error(err)
		}
	}()
	s, err := again.Open(t.Context(), w.s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(again, s); got != told {
		t.Errorf("after a restart: %q", got)
	}
	if got := ask(w.agent, w.s); got != "And?" {
		t.Errorf("told by another daemon: %q", got)
	}
	if got := ask(again, first); got != told {
		t.Errorf("in the fork: %q", got)
	}
	if got := ask(again, fork(again)); got != "And?" {
		t.Errorf("in a fork of what was told: %q", got)
	}
	// The fork has what it needs to tell what changed, also without its parent.
	if _, err := again.Delete(t.Context(), w.s.ID()); err != nil {
		t.Fatal(err)
	}
	if first.known.Content(t.Context(), tools.Digest([]byte("old\n"))) == nil {
		t.Error("the content that the fork's model knows is gone")
	}
}

// guards S11, F3
func TestChangedFilesStandBehindHowTheTurnEnded(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`), func(r *reply) { r.say("half"); r.hang() },
		func(r *reply) { r.raw("data: {\"error\":{\"message\":\"no\"}}\n\n") }, fine)
	w.put("a.go", "old\n")
	turn, ended := w.start(say("Read."))
	w.until(deltaEndsWith("half"))
	turn.Stop(ErrStopped)
	<-ended
	w.put("a.go", "new\n")
	if r := w.run(say("And?")); r.Outcome != transcript.TurnFailed {
		t.Fatalf("%+v", r)
	}
	const changed = "[Since your last turn these files changed: a.go.]"
	if got, want := w.said(), "[The user stopped your answer above where it ends.]\n"+changed+"\n\nAnd?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.put("a.go", "newer\n")
	if _, err := w.agent.ReserveRetry("").Run(t.Context(), Start{}); err != nil {
		t.Fatal(err)
	}
	if got := w.said(); !strings.HasSuffix(got, "\n"+changed+"\n[The user asks you to go on with the request above.]") {
		t.Errorf("the retry: %q", got)
	}
}

func TestASessionWithoutAWorkspaceKnowsNoFiles(t *testing.T) {
	w := newWorld(t, nil, fine)
	s, err := w.agent.NewSession(t.Context(), SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part := transcript.PromptPart{Type: "selection", Path: filepath.Join(w.root, "a.go"), Text: "x"}
	for range 2 {
		start := say("And?")
		start.Prompt = append(start.Prompt, part)
		if _, err := w.agent.Reserve(s.ID()).Run(t.Context(), start); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.said(); !strings.HasPrefix(got, "And?") || !s.known.none() {
		t.Errorf("%q", got)
	}
}

func TestAListOfManyFilesIsCut(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("f%02d", i))
	}
	if got := changedLine(names); !strings.HasSuffix(got, "f18, f19, and 10 more that you know.]") {
		t.Error(got)
	}
	if got := changedLine([]string{strings.Repeat("x", 3000), "y"}); !strings.HasSuffix(got, "x, and 1 more that you know.]") {
		t.Error(got)
	}
}

// What the entries of a log make known of the file f: "read HASH", "told HASH" if that is another one.
func TestWhatIsKnownIsAFoldOfTheLog(t *testing.T) {
	changed := func(before, after string) *transcript.FileChanged {
		return &transcript.FileChanged{Turn: "t", Step: 1, Call: "c", Path: "f", Before: before, After: after}
	}
	settled := func(s transcript.ToolState) *transcript.ToolSettled {
		return &transcript.ToolSettled{Turn: "t", Step: 1, Call: "c", State: s}
	}
	saw := func(sum string) *transcript.ToolSettled {
		return &transcript.ToolSettled{Turn: "t", Step: 1, Call: "r", State: transcript.ToolDone, Seen: []transcript.FileState{{Path: "f", SHA256: sum}}}
	}
	late := settled(transcript.ToolDone)
	late.Late = true
	touched := settled(transcript.ToolDone)
	touched.Touched = []transcript.FileState{{Path: "f", SHA256: "2"}}
	command := changed("1", "2")
	command.By = transcript.ByCommand
	revert := func(s transcript.RevertState) []transcript.Body {
		return []transcript.Body{saw("2"), &transcript.RevertStarted{Files: []transcript.RevertedFile{{Path: "f", Before: "2", After: "1"}}},
			&transcript.RevertEnded{Revert: 2, Files: []transcript.RevertFate{{Path: "f", State: s}}}}
	}
	quoted := []transcript.PromptPart{{Type: "file", Path: "f", SHA256: "1"}}
	for name, tt := range map[string]struct {
		log  []transcript.Body
		want string
	}{
		"read":                          {[]transcript.Body{saw("1")}, "read 1"},
		"read again":                    {[]transcript.Body{saw("1"), saw("2")}, "read 2"},
		"not known":                     {[]transcript.Body{settled(transcript.ToolDone)}, ""},
		"an edit":                       {[]transcript.Body{saw("1"), changed("1", "2"), settled(transcript.ToolDone)}, "read 2"},
		"two edits of a call":           {[]transcript.Body{changed("1", "2"), changed("2", "3"), settled(transcript.ToolDone)}, "read 3"},
		"an edit that failed":           {[]transcript.Body{saw("1"), changed("1", "2"), settled(transcript.ToolFailed)}, "read 1"},
		"an edit that runs":             {[]transcript.Body{saw("1"), changed("1", "2")}, "read 1"},
		"an edit of unknown fate":       {[]transcript.Body{saw("1"), changed("1", "2"), settled(transcript.ToolUnknown)}, "read 1"},
		"an edit that came back late":   {[]transcript.Body{saw("1"), changed("1", "2"), settled(transcript.ToolUnknown), late}, "read 2"},
		"a new file":                    {[]transcript.Body{changed("", "2"), settled(transcript.ToolDone)}, "read 2"},
		"a deleted file":                {[]transcript.Body{saw("1"), changed("1", ""), settled(transcript.ToolDone)}, ""},
		"seen to be deleted":            {[]transcript.Body{saw("1"), saw("")}, ""},
		"changed by a command":          {[]transcript.Body{saw("1"), touched}, "read 1 told 2"},
		"recorded of a command":         {[]transcript.Body{saw("1"), command, settled(transcript.ToolFailed)}, "read 1 told 2"},
		"a command on an unknown file":  {[]transcript.Body{touched, command}, ""},
		"quoted":                        {[]transcript.Body{&transcript.TurnStarted{Prompt: quoted}}, "read 1"},
		"quoted in a delivered message": {[]transcript.Body{saw("2"), &transcript.MessageDelivered{Prompt: quoted}}, "read 1"},
		"quoted in what is tried again": {[]transcript.Body{saw("2"), &transcript.TurnStarted{Retries: "t", Prompt: quoted}}, "read 2"},
		"told":                          {[]transcript.Body{saw("1"), &transcript.TurnStarted{Changed: []transcript.FileState{{Path: "f", SHA256: "2"}}}}, "read 1 told 2"},
		"told that it was deleted":      {[]transcript.Body{saw("1"), &transcript.TurnStarted{Changed: []transcript.FileState{{Path: "f", Gone: transcript.GoneDeleted}}}}, "read 1 told deleted"},
		"reverted by the user":          {revert(transcript.RevertDone), "read 2 told 1"},
		"kept by a revert":              {revert(transcript.RevertKept), "read 2"},
		"an old row that does not say":  {[]transcript.Body{&transcript.TurnStarted{Prompt: []transcript.PromptPart{{Type: "file", Path: "f"}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKnown(nil, "s", nil)
			for range 2 { // to fold an entry again does no harm
				for i, b := range tt.log {
					k.told([]transcript.Entry{{Seq: int64(i + 1), Body: b}})
				}
				got := ""
				if at := k.files["f"]; at != nil {
					f := at.Value.(*knownFile)
					got = "read " + f.read
					if now := f.told.SHA256 + string(f.told.Gone); now != f.read {
						got += " told " + now
					}
				}
				if got != tt.want {
					t.Errorf("known is %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestOnlyTheFilesThatWereReadLastAreKnown(t *testing.T) {
	k := newKnown(nil, "s", nil)
	see := func(i int) {
		k.told([]transcript.Entry{{Seq: int64(i), Body: &transcript.ToolSettled{Seen: []transcript.FileState{{Path: fmt.Sprint(i), SHA256: "1"}}}}})
	}
	for i := range maxKnown {
		see(i)
	}
	see(0) // it is one of the last now
	see(maxKnown)
	_, kept := k.Known("0")
	_, old := k.Known("1")
	if len(k.files) != maxKnown || k.order.Len() != maxKnown || !kept || old {
		t.Errorf("%d files are known, 0: %v, 1: %v", len(k.files), kept, old)
	}
}

// BenchmarkNews5000 is what the beginning of a turn costs when 5,000 files of 8 KiB are known and none has changed.
func BenchmarkNews5000(b *testing.B) {
	root := b.TempDir()
	space, err := workspace.Open(root, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer space.Close()
	var log []transcript.Entry
	for i := range maxKnown {
		name := fmt.Sprintf("p%d/q%d/f%d.go", i/500, i/50, i)
		content := []byte(strings.Repeat(fmt.Sprintf("line of file %d\n", i), 8192/16))
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), content, 0o666); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(root, name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			b.Fatal(err)
		}
		log = append(log, transcript.Entry{Seq: int64(i + 1), Body: &transcript.ToolSettled{Seen: []transcript.FileState{{Path: name, SHA256: tools.Digest(content)}}}})
	}
	for _, watched := range []bool{true, false} {
		b.Run(fmt.Sprintf("watched=%v", watched), func(b *testing.B) {
			var w *watch.Watcher
			if watched {
				w = watch.New(nil)
				defer w.Close()
			}
			k := newKnown(nil, "s", w)
			k.told(log)
			never := func() bool { return false }
			k.look(space, never) // the first look reads all
			runtime.GC()
			for b.Loop() {
				for _, g := range k.look(space, never) {
					if g.now.state != g.told {
						b.Fatalf("%+v", g.now.state)
					}
				}
			}
		})
	}
}
