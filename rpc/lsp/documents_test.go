package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/agent"
	"fermata/rpc/wire"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// applyParams is what matters of workspace/applyEdit.
type applyParams struct {
	Edit struct {
		Changes         map[string][]textEdit
		DocumentChanges []struct {
			TextDocument struct {
				URI     string
				Version *int
			}
			Edits []textEdit
		}
	}
}

type textEdit struct {
	Range   wire.Range
	NewText string
}

func didOpen(uri, text string) obj {
	return note("textDocument/didOpen", obj{"textDocument": obj{"uri": uri, "languageId": "x", "version": 1, "text": text}})
}

func didChange(uri string, version int, c obj) obj {
	return note("textDocument/didChange", obj{"textDocument": obj{"uri": uri, "version": version}, "contentChanges": []obj{c}})
}

// applying answers workspace/applyEdit as an editor that makes the edit.
func (e *editor) applying() {
	e.answers["workspace/applyEdit"] = func(params json.RawMessage) any {
		var p applyParams
		if err := json.Unmarshal(params, &p); err != nil {
			e.t.Error(err)
		}
		d := p.Edit.DocumentChanges[0]
		e.send(didChange(d.TextDocument.URI, *d.TextDocument.Version+1, obj{"range": d.Edits[0].Range, "text": d.Edits[0].NewText}))
		return obj{"applied": true}
	}
}

var editing = obj{"workspace": obj{"applyEdit": true, "workspaceEdit": obj{"documentChanges": true}}}

func TestAnEditOfAnOpenDocumentGoesToTheEditor(t *testing.T) {
	e := start(t, "reply\ncall edit_file {\"path\":\"a b.txt\",\"old\":\"two\",\"new\":\"2\"}\nreply\nsay done\n")
	e.applying()
	e.answers["window/showMessageRequest"] = func(json.RawMessage) any { return obj{"title": "Allow once"} }
	path := filepath.Join(e.root, "a b.txt")
	if err := os.WriteFile(path, []byte("on disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.initialize(editing)
	e.send(didOpen(fileURI(path), "one\ntwo\nthree\n"))
	r := e.req("fermata/turn/start", obj{"session": e.session(), "prompt": text("edit")})
	e.send(r)
	got, _ := e.result(r)
	if got.Outcome != "completed" || len(got.Tools) != 1 || got.Tools[0].State != "done" {
		t.Fatalf("%+v", got)
	}
	m, _ := e.find("the edit", func(m message) bool { return m.Method == "workspace/applyEdit" })
	var p applyParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		t.Fatal(err)
	}
	d := p.Edit.DocumentChanges[0]
	want := textEdit{wire.Range{Start: at(1, 0), End: at(1, 3)}, "2"}
	if *d.TextDocument.Version != 1 || d.TextDocument.URI != fileURI(path) || len(d.Edits) != 1 || d.Edits[0] != want {
		t.Errorf("%s", m.Params)
	}
	if b, _ := os.ReadFile(path); string(b) != "on disk" {
		t.Errorf("the file on disk is %q", b)
	}
}

// bare runs f with the overlay of a client that has a.txt open, and no agent.
func bare(t *testing.T, deadline time.Duration, capabilities obj, f func(e *editor, o workspace.Overlay, uri string)) {
	e := newEditor(t)
	e.deadline = deadline
	client := make(chan agent.Client, 1)
	e.connect(func(c agent.Client) (*agent.Agent, *transcript.Store, error) {
		select {
		case client <- c:
		default: // it is tried again for each request
		}
		return nil, nil, errors.New("no database in this test")
	})
	e.initialize(capabilities)
	uri := fileURI(filepath.Join(e.root, "a.txt"))
	e.send(didOpen(uri, "before"))
	e.refused("fermata/session/list", nil, -32603, "no database") // the document was read by now
	f(e, (<-client).Overlay(e.root), uri)
	e.in.Close()
	<-e.served
}

func TestAnEditSucceedsOnlyWhenItsTextComesBack(t *testing.T) {
	for name, tt := range map[string]struct {
		within time.Duration // the deadline; short where it must pass
		answer func(e *editor, uri string) any
		want   string // of the error; "" for success
	}{
		"a client that lies":      {50 * time.Millisecond, func(*editor, string) any { return obj{"applied": true} }, "did not make the edit in time"},
		"a client that is silent": {50 * time.Millisecond, func(*editor, string) any { return nil }, "did not make the edit in time"},
		"a client that refuses":   {patience, func(*editor, string) any { return obj{"applied": false, "failureReason": "stale"} }, "did not make the edit: stale"},
		"a client that makes another edit": {50 * time.Millisecond, func(e *editor, uri string) any {
			e.send(didChange(uri, 2, obj{"text": "other"}))
			return obj{"applied": true}
		}, "did not make the edit in time"},
		"a text that comes before the reply": {patience, func(e *editor, uri string) any {
			e.send(didChange(uri, 2, obj{"text": "after\n"}))
			return nil
		}, ""},
		"a text that is changed again at once": {patience, func(e *editor, uri string) any {
			e.send(didChange(uri, 2, obj{"text": "after\n"}), didChange(uri, 3, obj{"text": "after and more"}))
			return obj{"applied": true}
		}, ""},
		"line ends of the document": {patience, func(e *editor, uri string) any {
			e.send(didChange(uri, 2, obj{"text": "after\r\n"}))
			return obj{"applied": true}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t, tt.within, editing, func(e *editor, o workspace.Overlay, uri string) {
				e.mu.Lock()
				e.answers["workspace/applyEdit"] = func(json.RawMessage) any { return tt.answer(e, uri) }
				e.mu.Unlock()
				err := o.Apply(e.t.Context(), "a.txt", "before", "after\n")
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			})
		})
	}
}

func TestAnOverlayIsTheOpenDocumentsOfItsRoot(t *testing.T) {
	bare(t, 0, obj{}, func(e *editor, o workspace.Overlay, uri string) {
		e.send(didOpen(fileURI(filepath.Join(e.root, "sub", "ä b.txt")), "x"), didOpen("file:///elsewhere/c.txt", "y"), didOpen("untitled:1", "z"))
		e.refused("fermata/session/list", nil, -32603, "")
		paths := o.Paths()
		slices.Sort(paths)
		if !slices.Equal(paths, []string{"a.txt", "sub/ä b.txt"}) {
			t.Errorf("%q", paths)
		}
		if text, ok := o.Text("sub/ä b.txt"); !ok || text != "x" {
			t.Errorf("%q %v", text, ok)
		}
		if err := o.Apply(e.t.Context(), "a.txt", "not this", "x"); !errors.Is(err, errStale) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(e.t.Context())
		cancel(agent.ErrStopped)
		if err := o.Apply(ctx, "a.txt", "before", "x"); !errors.Is(err, agent.ErrStopped) {
			t.Error(err)
		}
		e.find("an edit without versions", func(m message) bool {
			return m.Method == "workspace/applyEdit" && strings.Contains(string(m.Params), `"changes"`)
		})
		e.send(note("textDocument/didClose", obj{"textDocument": obj{"uri": uri}}))
		e.refused("fermata/session/list", nil, -32603, "")
		if _, ok := o.Text("a.txt"); ok {
			t.Error("a closed document is still there")
		}
	})
}

func TestARootMayBeReachedByALink(t *testing.T) {
	e := newEditor(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(e.root, link); err != nil {
		t.Fatal(err)
	}
	s := &server{}
	s.folders.add(fileURI(link))
	if err := s.didOpen([]byte(`{"textDocument":{"uri":"` + fileURI(filepath.Join(link, "a.txt")) + `","text":"x"}}`)); err != nil {
		t.Fatal(err)
	}
	if text, ok := s.Overlay(e.root).Text("a.txt"); !ok || text != "x" {
		t.Errorf("%q %v", text, ok)
	}
}

// A link and what it leads to are one file, also when the editor calls it by the one name and the model by the other.
func TestADocumentIsFoundByWhatItsNameLeadsTo(t *testing.T) {
	e := newEditor(t)
	for _, name := range []string{"AGENTS.md", "other.md"} {
		if err := os.WriteFile(filepath.Join(e.root, name), []byte("saved"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"CLAUDE.md", "GEMINI.md"} {
		if err := os.Symlink("AGENTS.md", filepath.Join(e.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{}
	o := s.Overlay(e.root)
	show := func() string {
		var out []string
		for _, p := range slices.Sorted(slices.Values(o.Paths())) {
			text, _ := o.Text(p)
			out = append(out, p+"="+text)
		}
		return strings.Join(slices.Compact(out), " ")
	}
	doc := func(name, text string) []byte {
		return []byte(`{"textDocument":{"uri":"` + fileURI(filepath.Join(e.root, name)) + `","text":"` + text + `"}}`)
	}
	for i, step := range []struct {
		do   func([]byte) error
		name string
		want string
	}{
		{s.didOpen, "CLAUDE.md", "AGENTS.md=0 CLAUDE.md=0"},
		{s.didOpen, "other.md", "AGENTS.md=0 CLAUDE.md=0 other.md=1"},
		{s.didOpen, "GEMINI.md", "AGENTS.md=2 CLAUDE.md=0 GEMINI.md=2 other.md=1"},
		{s.didOpen, "AGENTS.md", "AGENTS.md=3 CLAUDE.md=0 GEMINI.md=2 other.md=1"},
		{s.didClose, "AGENTS.md", "AGENTS.md=0 CLAUDE.md=0 GEMINI.md=2 other.md=1"},
		{s.didClose, "CLAUDE.md", "AGENTS.md=2 GEMINI.md=2 other.md=1"},
		{s.didClose, "other.md", "AGENTS.md=2 GEMINI.md=2"},
		{s.didClose, "GEMINI.md", ""},
	} {
		if err := step.do(doc(step.name, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		if got := show(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}
