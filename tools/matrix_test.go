package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestAnEditKeepsTheFileAsItIs is the edit matrix: line ending × byte order mark × encoding × final newline × open in the
// editor or closed × changed by somebody else or not × tool, on bytes.
//
// guards P2 and C3: what is recorded before the change, and what is there after it, is told as it is; and nothing that the
// model has not seen is buried.
func TestAnEditKeepsTheFileAsItIs(t *testing.T) {
	// each edit puts two lines in the place of one, in plain newlines; after is what it comes to
	endings := []struct{ name, before, after, final string }{
		{"LF", "alpha\nbeta ü\ngamma", "alpha\nBETA ö\nnew ß\ngamma", "\n"},
		{"CRLF", "alpha\r\nbeta ü\r\ngamma", "alpha\r\nBETA ö\r\nnew ß\r\ngamma", "\r\n"},
		{"mixed", "alpha\r\nbeta ü\ngamma\r\ndelta", "alpha\r\nBETA ö\nnew ß\ngamma\r\ndelta", "\r\n"},
		{"none", "alpha beta ü gamma", "alpha BETA ö\nnew ß gamma", "\n"},
	}
	encodings := []struct {
		name, mark string
		encode     func(string) string
		refused    map[bool]string // by whether there is a mark: why the file on disk cannot be read
	}{
		{"UTF-8", "\xef\xbb\xbf", func(s string) string { return s }, nil},
		{"UTF-16LE", "\xff\xfe", units(0, 8), map[bool]string{false: "UTF-16 without a byte order mark"}},
		{"UTF-16BE", "\xfe\xff", units(8, 0), map[bool]string{false: "UTF-16 without a byte order mark"}},
		{"Latin-1", "\xef\xbb\xbf", latin1, map[bool]string{true: "damaged UTF-8"}},
	}
	type change string
	const (
		unchanged   change = "unchanged"
		sinceRead   change = "changed since it was read"
		beforeWrite change = "changed before the write" // between the tool's own read and its write
	)
	cases := 0
	for _, ending := range endings {
		for _, final := range []string{"", ending.final} {
			for _, enc := range encodings {
				for _, marked := range []bool{false, true} {
					for _, open := range []bool{false, true} {
						for _, changed := range []change{unchanged, sinceRead, beforeWrite} {
							for _, tool := range []string{"edit_file", "write_file"} {
								cases++
								name := fmt.Sprintf("%s/final newline %v/%s/mark %v/open %v/%s/%s", ending.name, final != "", enc.name, marked, open, changed, tool)
								t.Run(name, func(t *testing.T) {
									mark := ""
									if marked {
										mark = enc.mark
									}
									disk := func(text string) string { return mark + enc.encode(text) }
									before, after := ending.before+final, ending.after+final
									refused := enc.refused[marked]
									c := matrixCase{
										file: disk(before), want: disk(after), theirs: disk("theirs, " + before),
									}
									if open { // then the text is the editor's, and the disk does not matter
										refused = ""
										text := map[bool]string{true: "\uFEFF"}[marked && enc.name == "UTF-8"]
										c.open, c.buffer, c.want, c.theirs = true, text+before, text+after, text+"theirs, "+before
									}
									if tool == "edit_file" {
										c.tool, c.args = tool, args{"path": "f", "old": "beta ü", "new": "BETA ö\nnew ß"}
									} else {
										c.tool, c.args = tool, args{"path": "f", "content": strings.ReplaceAll(after, "\r\n", "\n")}
									}
									switch changed {
									case sinceRead:
										c.sinceRead = true
										c.says = "changed since you last read it"
									case beforeWrite:
										c.beforeWrite = true
										c.says = "changed meanwhile"
									}
									if refused != "" {
										c.says, c.unreadable = refused, true
									}
									c.run(t)
								})
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// matrixCase is one cell.
type matrixCase struct {
	file                   string // on disk
	open                   bool
	buffer                 string // in the editor
	tool                   string
	args                   args
	sinceRead, beforeWrite bool   // when somebody else changes it
	theirs                 string // and what it is then
	unreadable             bool
	want                   string // where it is: in the editor or on disk
	says                   string // of a refusal; "": the change is made
}

func (c matrixCase) run(t *testing.T) {
	ed := editor{}
	if c.open {
		ed["f"] = c.buffer
	}
	b := newRemembering(t, "", ed)
	b.put(t, "f", c.file)
	if r := b.run(t, "read_file", args{"path": "f"}); (r.State == Failed) != c.unreadable {
		t.Fatalf("read_file: %s", r.Output)
	}
	now := func() string {
		if c.open {
			return ed["f"]
		}
		return b.content(t, "f")
	}
	put := func() {
		if c.open {
			ed["f"] = c.theirs
		} else {
			b.put(t, "f", c.theirs)
		}
	}
	want := c.want
	if c.says != "" {
		want = now()
	}
	if c.sinceRead {
		put()
		want = c.theirs
	}
	if c.beforeWrite && !c.unreadable { // an unreadable one is refused before
		want = c.theirs
	}
	tool, _ := Lookup(c.tool)
	raw, err := json.Marshal(c.args)
	if err != nil {
		t.Fatal(err)
	}
	var recorded []Change
	r := tool.Run(t.Context(), Env{
		Workspace: b.w, Memory: b.memory, Permit: allow(b.w, tool, raw),
		Intent: func(_ context.Context, change Change) error {
			recorded = append(recorded, change)
			if c.beforeWrite {
				put()
			}
			return nil
		},
	}, raw)
	if c.says == "" != (r.State == Done) || !strings.Contains(r.Output, c.says) {
		t.Errorf("%s: %s\nwant %q", r.State, r.Output, c.says)
	}
	if got := now(); got != want {
		t.Errorf("the file is\n%q, want\n%q", got, want)
	}
	if c.open {
		if got := b.content(t, "f"); got != c.file {
			t.Errorf("the disk has\n%q, want\n%q", got, c.file)
		}
	}
	was := c.file
	if c.open {
		was = c.buffer
	}
	switch {
	case c.says != "" && !c.beforeWrite || c.unreadable:
		if len(recorded) != 0 {
			t.Errorf("%d changes were recorded", len(recorded))
		}
	case len(recorded) != 1 || string(recorded[0].Before) != was || string(recorded[0].After) != c.want || recorded[0].Buffer != c.open:
		t.Errorf("recorded %+v", recorded)
	}
	if c.says == "" && !strings.Contains(r.Output, "+BETA ö\n+new ß") && !strings.Contains(r.Output, "+alpha BETA ö\n+new ß gamma") {
		t.Errorf("the result does not show the change: %s", r.Output)
	}
}

// units encodes UTF-16, the first and second byte of a unit being those bits of it.
func units(first, second int) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			b.WriteByte(byte(u >> first))
			b.WriteByte(byte(u >> second))
		}
		return b.String()
	}
}

func latin1(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
	}
	return b.String()
}
