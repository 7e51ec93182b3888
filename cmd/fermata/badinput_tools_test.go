package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// toolCase is an answer with tool calls, and what the model reads about each in the next request; … stands for any text.
type toolCase struct {
	name  string
	steps []string
	want  []string
	file  string // in the workspace
	holds string // what it holds in the end
}

// callPieces are the events of calls, each as its exact JSON.
func callPieces(pieces ...string) []string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(chunk(`{"tool_calls":[` + p + `]}`))
	}
	return []string{raw(b.String()), "finish tool_calls"}
}

func call(tool string, args map[string]string) []string {
	b, _ := json.Marshal(args) // strings
	return []string{"call " + tool + " " + string(b)}
}

func toolCases(outside string) []toolCase {
	read := func(path string) []string { return call("read_file", map[string]string{"path": path}) }
	edit := func(path, old, new string) []string {
		return call("edit_file", map[string]string{"path": path, "old": old, "new": new})
	}
	var many, manyWant []string
	for i := range 20 {
		many = append(many, fmt.Sprintf(`call read_file {"path":"numbered/%02d.txt"}`, i))
		manyWant = append(manyWant, fmt.Sprintf("1\tI am %d.…", i))
	}
	return []toolCase{
		{name: "no arguments", steps: callPieces(`{"index":0,"id":"a","function":{"name":"read_file"}}`), want: []string{`read_file: the argument "path" is missing…expected: …`}},
		{name: "empty arguments of a tool that needs none", steps: callPieces(`{"index":0,"id":"a","function":{"name":"list_dir","arguments":""}}`), want: []string{"…numbered…"}},
		{name: "arguments that are cut", steps: callPieces(`{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"path\":\"plai"}}`), want: []string{"read_file: the arguments are cut off…plai…"}},
		{name: "arguments that are not JSON", steps: []string{`call read_file path=plain.txt`}, want: []string{"read_file: the arguments are not valid JSON…expected: …"}},
		{name: "arguments that are an array", steps: []string{`call read_file ["plain.txt"]`}, want: []string{"read_file: the arguments are not a JSON object but a JSON array…"}},
		{name: "arguments that are a string", steps: []string{`call read_file "\"plain.txt\""`}, want: []string{"read_file: the arguments are not a JSON object but a JSON string…"}},
		{name: "arguments that are an object, not a string", steps: callPieces(`{"index":0,"id":"a","function":{"name":"read_file","arguments":{"path":"plain.txt"}}}`), want: []string{"1\tPlain.…"}},
		{name: "a path that is a number", steps: []string{`call read_file {"path":7}`}, want: []string{`read_file: the argument "path" is a JSON number…a string…`}},
		{name: "a path that is null", steps: []string{`call read_file {"path":null}`}, want: []string{`read_file: the argument "path" is missing…`}},
		{name: "an offset that is a string", steps: []string{`call read_file {"path":"plain.txt","offset":"1"}`}, want: []string{`read_file: the argument "offset" is a JSON string…an integer…`}},
		{name: "an offset below 1", steps: []string{`call read_file {"path":"plain.txt","offset":-1}`}, want: []string{"read_file: offset and limit start at 1…"}},
		{name: "bytes that are no character", steps: callPieces("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"\xff\\\"}\"}}"), want: []string{"read_file: …\ufffd…"}},
		{name: "an edit with malformed arguments is not asked about", steps: []string{`call edit_file {"path":"plain.txt","old":1}`}, want: []string{`edit_file: the argument…`}, file: "plain.txt", holds: "Plain.\n"},
		{name: "an unknown tool", steps: []string{`call delete_file {"path":"plain.txt"}`}, want: []string{`[not run: there is no tool "delete_file". The tools are: read_file, …]`}, file: "plain.txt", holds: "Plain.\n"},
		{name: "a tool without a name", steps: callPieces(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), want: []string{`[not run: there is no tool "". The tools are: …]`}},
		{name: "a tool of a namespace", steps: []string{`call functions.read_file {"path":"plain.txt"}`}, want: []string{`[not run: there is no tool "functions.read_file". The tools are: …]`}},
		{name: "a tool whose name is a sentence", steps: callPieces(`{"index":0,"id":"a","function":{"name":"` + strings.Repeat("läs ", 40) + `","arguments":"{}"}}`), want: []string{`[not run: there is no tool "läs …". The tools are: …]`}},
		{name: "two calls of one id", steps: []string{`call id=same read_file {"path":"numbered/01.txt"}`, `call id=same read_file {"path":"numbered/02.txt"}`}, want: []string{"1\tI am 1.…", "1\tI am 2.…"}},
		{name: "calls without ids", steps: []string{`call id= read_file {"path":"numbered/01.txt"}`, `call id= read_file {"path":"numbered/02.txt"}`}, want: []string{"1\tI am 1.…", "1\tI am 2.…"}},
		{name: "twenty calls, with one that fails", steps: append(many, `call read_file {"path":"none"}`), want: append(manyWant, "read_file: none: file does not exist")},

		{name: "a path above the root", steps: read("../secret.txt"), want: []string{"read_file: …outside…../secret.txt leads above the root…"}},
		{name: "a path that goes down and above", steps: read("numbered/../../secret.txt"), want: []string{"read_file: …leads above the root…"}},
		{name: "a write above the root", steps: call("write_file", map[string]string{"path": "../new.txt", "content": "x"}), want: []string{"write_file: …leads above the root…"}},
		{name: "an absolute path", steps: read(outside), want: []string{"read_file: …outside…give a path relative to it"}},
		{name: "an empty path", steps: read(""), want: []string{"read_file: …the path is empty…"}},
		{name: "a path with NUL", steps: read("plain\x00.txt"), want: []string{`read_file: …contains a NUL character…`}},
		{name: "a file that is not there", steps: read("none.txt"), want: []string{"read_file: none.txt: file does not exist"}},
		{name: "a folder", steps: read("numbered"), want: []string{"read_file: …use list_dir"}},
		{name: "a file within a file", steps: read("plain.txt/x"), want: []string{"read_file: plain.txt/x: …"}},
		{name: "a name of 5000 letters", steps: read(strings.Repeat("a", 5000)), want: []string{"read_file: …"}},
		{name: "the folder of git", steps: call("write_file", map[string]string{"path": ".git/hooks/pre-commit", "content": "x"}), want: []string{"[not run: …git/hooks/pre-commit is protected…]"}},
		{name: "a binary file", steps: read("binary"), want: []string{"read_file: binary: not text: it is binary…"}},
		{name: "a binary file edited", steps: edit("binary", "ab", "cd"), want: []string{"edit_file: binary: not text: it is binary"}, file: "binary", holds: "ab\x00\x01"},
		{name: "a file in Latin-1", steps: edit("latin1.txt", "é", "ö"), want: []string{"…+cafö…"}, file: "latin1.txt", holds: "caf\xf6\n"},
		{name: "a file in Latin-1, given what it lacks", steps: edit("latin1.txt", "caf", "漢"), want: []string{"edit_file: latin1.txt: the file is Latin-1, which has no 漢 (U+6F22, in line 1)…"}, file: "latin1.txt", holds: "caf\xf6\n"},
		{name: "a file in another encoding", steps: read("gbk.txt"), want: []string{"read_file: gbk.txt: not text: it is neither UTF-8 (byte 0xD6 at offset 0)…"}},
		{name: "a sparse file of 200 MB read", steps: read("sparse"), want: []string{"read_file: sparse: not text: it is binary (209715200 bytes)"}},
		{name: "a sparse file of 200 MB edited", steps: edit("sparse", "a", "b"), want: []string{"edit_file: sparse: …209715200 bytes…"}},
		{name: "a sparse file of 200 MB searched", steps: []string{`call grep {"pattern":"needle"}`}, want: []string{"…"}},
		{name: "a file with a byte order mark", steps: edit("bom.txt", "One", "Two"), want: []string{"…bom.txt…"}, file: "bom.txt", holds: "\ufeffTwo\n"},
		{name: "a file in CRLF", steps: edit("crlf.txt", "One\nTwo", "One\nThree\nFour"), want: []string{"…crlf.txt…"}, file: "crlf.txt", holds: "One\r\nThree\r\nFour\r\n"},
		{name: "a file without a last newline", steps: edit("unended.txt", "One", "Two"), want: []string{"…unended.txt…"}, file: "unended.txt", holds: "Two"},
		{name: "a text that is not in the file", steps: edit("plain.txt", "Plane", "x"), want: []string{"edit_file: plain.txt: old is not in the file.…"}, file: "plain.txt", holds: "Plain.\n"},
		{name: "a text that is there twice", steps: edit("twice.txt", "One", "x"), want: []string{"edit_file: twice.txt: old is in the file 2 times, at lines 1, 2;…"}, file: "twice.txt", holds: "One\nOne\n"},
	}
}

// layOut makes the workspace of the cases, and a file outside of it.
func layOut(t *testing.T, root string) (outside string) {
	t.Helper()
	files := map[string]string{
		"plain.txt": "Plain.\n", "binary": "ab\x00\x01", "latin1.txt": "caf\xe9\n", "gbk.txt": "\xd6\xd0\xb9\xfa\xc8\xcb\n", "bom.txt": "\ufeffOne\n",
		"crlf.txt": "One\r\nTwo\r\n", "unended.txt": "One", "twice.txt": "One\nOne\n", "../secret.txt": "Secret.\n", "../outside/secret.txt": "Secret.\n",
	}
	for i := range 20 {
		files[fmt.Sprintf("numbered/%02d.txt", i)] = fmt.Sprintf("I am %d.\n", i)
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(root, "sparse"))
	if err == nil {
		err = f.Truncate(200 << 20)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(root), "secret.txt")
}

// Each case is a turn whose model calls tools as no model should, or on files that are not as they should be. The model
// reads what is wrong in the very next request, which is one that providers take; the turn goes on to its end; and nothing
// outside of the workspace was read or written.
//
// guards P2, S9, C3
func TestWhateverAModelCallsIsAnsweredAndTheTurnGoesOn(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	root := filepath.Join(home, "workspace")
	outside := layOut(t, root)
	cases := append(toolCases(outside), systemToolCases(t, root, outside)...)
	var scenario strings.Builder
	for i, c := range cases {
		scenario.WriteString(script(fmt.Sprintf("Case %d.", i), c.steps...))
		scenario.WriteString(script(fmt.Sprintf("Case %d.", i), "say I see."))
	}
	allow := peer.Options{Answer: func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil }}
	b := newBadInput(t, scenario.String(), allow)
	for i, c := range cases {
		session := b.NewSession(root)
		r := b.turn(b.ask(session, fmt.Sprintf("Case %d.", i)))
		if r.Outcome != "completed" || b.Shown(r.Turn, 2, "text") != "I see." {
			t.Errorf("%s: the turn ended %+v", c.name, r)
			continue
		}
		requests := b.model.Requests()
		got := legal(t, requests[len(requests)-1].Body)[3:] // after the system's, the user's and the answer
		if len(got) != len(c.want) {
			t.Errorf("%s: %d results, want %d: %+v", c.name, len(got), len(c.want), got)
			continue
		}
		for k, m := range got {
			if !matches(c.want[k], m.text()) || strings.Contains(m.text(), "Secret.") {
				t.Errorf("%s: the model reads %q, want %q", c.name, m.text(), c.want[k])
			}
		}
		if c.file != "" {
			if holds, err := os.ReadFile(filepath.Join(root, c.file)); err != nil || string(holds) != c.holds {
				t.Errorf("%s: the file holds %q, want %q (%v)", c.name, holds, c.holds, err)
			}
		}
	}
	b.goesOn(b.session)
	b.quit()
	if names, err := os.ReadDir(home); err != nil || len(names) != 3 {
		t.Errorf("beside the workspace are %v %v", names, err)
	}
}
