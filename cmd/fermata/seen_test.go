package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fermata/cmd/internal/peer"
)

// Each file of testdata/seen is a session in which somebody else changes f.txt between two turns. It is driven over LSP
// against the real binary, a real HTTP model, and an editor that makes the edits it is asked for. Its sections:
//
//	model     the scenario that the model plays
//	f.txt     the file at first
//	document  its text in the editor, which has it open at first. Optional
//	then      what happens between the turns, one a line, texts as Go strings: "disk TEXT", "document TEXT" (the user opens or
//	          edits it), "delete", "restart" (of the daemon)
//	next      the messages of the last request, each as its exact JSON; … stands for any text
//	after     the file on disk in the end
//	edited    the text in the editor in the end. Optional
//
// guards S11, P3
func TestNobodysChangeIsBuriedAndEachIsToldOnce(t *testing.T) {
	eachCase(t, "seen", playSeen)
}

// document is a file as an editor has it.
type document struct {
	e    *editor
	name string // "": f.txt

	mu      sync.Mutex
	text    string
	version int
	open    bool
}

func (d *document) uri() string {
	name := cmp.Or(d.name, "f.txt")
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(d.e.root, name))}).String()
}

// set has the user open or edit it.
func (d *document) set(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version++
	if d.text = text; !d.open {
		d.open = true
		d.e.Notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
			"uri": d.uri(), "languageId": "text", "version": d.version, "text": text}})
		return
	}
	d.change()
}

func (d *document) change() {
	d.e.Notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": d.uri(), "version": d.version},
		"contentChanges": []any{map[string]any{"text": d.text}},
	})
}

// apply makes an edit that the daemon asks for.
func (d *document) apply(params json.RawMessage) any {
	type position struct{ Line, Character int }
	var p struct {
		Edit struct {
			DocumentChanges []struct {
				Edits []struct {
					Range   struct{ Start, End position }
					NewText string
				}
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := json.Unmarshal(params, &p); err != nil || len(p.Edit.DocumentChanges) != 1 || len(p.Edit.DocumentChanges[0].Edits) != 1 {
		return map[string]any{"applied": false, "failureReason": string(params)}
	}
	edit := p.Edit.DocumentChanges[0].Edits[0]
	lines := strings.SplitAfter(d.text, "\n")
	at := func(p position) int { return len(strings.Join(lines[:p.Line], "")) + p.Character }
	d.text = d.text[:at(edit.Range.Start)] + edit.NewText + d.text[at(edit.Range.End):]
	d.version++
	d.change()
	return map[string]any{"applied": true}
}

func playSeen(t *testing.T, c map[string]string) {
	e := newUser(t, c["model"], "[permissions]\nmode = \"trust\"\n")
	d := &document{e: e}
	start := func() {
		e.start(peer.Options{Answer: func(method string, params json.RawMessage) (any, *peer.Error) {
			if method == "workspace/applyEdit" {
				return d.apply(params), nil
			}
			return nil, nil
		}})
		e.Initialize(e.root, map[string]any{
			"workspace":    map[string]any{"applyEdit": true, "workspaceEdit": map[string]any{"documentChanges": true}},
			"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}},
		})
	}
	file := filepath.Join(e.root, "f.txt")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(c["f.txt"])
	start()
	if text, ok := c["document"]; ok {
		d.set(text)
	}
	session := e.NewSession(e.root)
	if r := e.turn(e.ask(session, "Read it.")); r.Outcome != "completed" {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(c["then"]) {
		how, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
		text := ""
		if quoted != "" {
			var err error
			if text, err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		switch how {
		case "disk":
			put(text)
		case "document":
			d.set(text)
		case "delete":
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		case "restart":
			e.quit()
			d.open = false
			start()
		default:
			t.Fatalf("then %q", how)
		}
	}
	if r := e.turn(e.ask(session, "Edit it.")); r.Outcome != "completed" {
		t.Fatalf("%+v", r)
	}
	if r := e.turn(e.ask(session, "Thanks.")); r.Outcome != "completed" {
		t.Fatalf("%+v", r)
	}
	requests := e.model.Requests()
	wantMessages(t, requests[len(requests)-1].Body, strings.Split(strings.TrimSpace(c["next"]), "\n")...)
	if b, err := os.ReadFile(file); string(b) != c["after"] {
		t.Errorf("the file is %q, want %q (%v)", b, c["after"], err)
	}
	d.mu.Lock()
	if d.text != c["edited"] {
		t.Errorf("the document is %q, want %q", d.text, c["edited"])
	}
	d.mu.Unlock()
	e.quit()
}
