package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tools/workspace"
)

func (b *bench) chmod(t *testing.T, name string) {
	t.Helper()
	if err := os.Chmod(filepath.Join(b.dir, filepath.FromSlash(name)), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestEditFileReplacesExactly(t *testing.T) {
	for name, tt := range map[string]struct {
		content, old, new string
		all               bool
		want              string // "" when it is refused
		says              string
	}{
		"once":                    {content: "a\nb\nc\n", old: "b", new: "B", want: "a\nB\nc\n", says: "+1 -1 lines"},
		"lines":                   {content: "a\nb\nc\n", old: "a\nb\n", new: "x\n", want: "x\nc\n", says: "-a\n-b\n+x"},
		"delete":                  {content: "a\nb\n", old: "b\n", new: "", want: "a\n"},
		"no final newline":        {content: "a\nb", old: "b", new: "c", want: "a\nc"},
		"all":                     {content: "a a\na\n", old: "a", new: "b", all: true, want: "b b\nb\n"},
		"CRLF kept":               {content: "a\r\nb\r\nc\r\n", old: "a\nb", new: "x\ny", want: "x\r\ny\r\nc\r\n"},
		"CRLF, one line to two":   {content: "a\r\nb\r\n", old: "b", new: "b\nc", want: "a\r\nb\r\nc\r\n"},
		"CRLF given as CRLF":      {content: "a\r\nb\r\n", old: "a\r\nb", new: "x\r\ny", want: "x\r\ny\r\n"},
		"mixed, in the CRLF part": {content: "a\r\nb\r\nc\n", old: "a\nb", new: "x\ny", want: "x\r\ny\r\nc\n"},
		"mixed, in the LF part":   {content: "a\r\nb\nc\n", old: "b\nc", new: "x\ny", want: "a\r\nx\ny\n"},
		"BOM kept":                {content: "\uFEFFa\n", old: "a", new: "b", want: "\uFEFFb\n"},
		"BOM given":               {content: "\uFEFFa\n", old: "\uFEFFa", new: "b", want: "\uFEFFb\n"},
		"no pattern":              {content: "a.c abc\n", old: "a.c", new: "$1", want: "$1 abc\n"},
		"ambiguous":               {content: "x\na\nb\na\n", old: "a", new: "c", says: "2 times, at lines 2, 4; give more"},
		"ambiguous, many":         {content: strings.Repeat("a\n", 30), old: "a", new: "c", says: "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"},
		"not found":               {content: "a\n", old: "zebra", new: "c", says: "Nothing like its first line"},
		"other indentation":       {content: "f {\n\tif a {\n\t\tb\n", old: "  if a {\n    b", new: "", says: "other white space is at line 2; there it is:\n\tif a {\n\t\tb"},
		"first line only":         {content: "a\nif x {\nreal\n}\n", old: "if x {\nimagined\n}", new: "", says: "first line is at line 2, but what follows differs; there it is:\nif x {\nreal\n}"},
		"part of a line":          {content: "return foo(a, b)\n", old: "foo(a,  b)", new: "x", says: "part of line 1"},
		"line numbers":            {content: "a\n", old: "1\ta", new: "b", says: "line number and a tab"},
		"empty old":               {content: "a\n", old: "", new: "b", says: "old is empty"},
		"same":                    {content: "a\n", old: "a", new: "a", says: "the same"},
		"binary":                  {content: "a\x00", old: "a", new: "b", says: "binary"},
		"Latin-1":                 {content: "a\xfc", old: "a", new: "b", says: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			b.put(t, "f", tt.content)
			r := b.run(t, t.Context(), "edit_file", args{"path": "f", "old": tt.old, "new": tt.new, "replace_all": tt.all})
			want, state := tt.want, Done
			if want == "" {
				want, state = tt.content, Failed
			}
			if got := b.content(t, "f"); got != want || r.State != state || !strings.Contains(r.Output, tt.says) {
				t.Errorf("%s: %q, want %q\n%s", r.State, got, want, r.Output)
			}
			if len(b.changes) != map[State]int{Done: 1}[r.State] {
				t.Errorf("recorded %d changes", len(b.changes))
			}
		})
	}
}

func TestWriteFileKeepsTheFormOfAFile(t *testing.T) {
	for name, tt := range map[string]struct{ content, after, want, says string }{
		"plain":       {"a\n", "b\n", "b\n", "changed f: +1 -1 lines\n"},
		"CRLF":        {"a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n", "+2 -2"},
		"BOM":         {"\uFEFFa\n", "b\n", "\uFEFFb\n", "+1 -1"},
		"mixed":       {"a\r\nb\n", "c\nd\n", "c\nd\n", "+2 -2"},
		"no final nl": {"a\n", "b", "b", "No newline"},
		"to nothing":  {"a\n", "", "", "+0 -1"},
		"the same":    {"a\r\n", "a\n", "a\r\n", "already"},
		"from binary": {"\x00\xff", "text\n", "text\n", "changed f"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			b.put(t, "f", tt.content)
			r := b.run(t, t.Context(), "write_file", args{"path": "f", "content": tt.after})
			if got := b.content(t, "f"); got != tt.want || r.State != Done || !strings.Contains(r.Output, tt.says) {
				t.Errorf("%s: %q, want %q\n%s", r.State, got, tt.want, r.Output)
			}
		})
	}
}

func TestWriteFileCreates(t *testing.T) {
	b := newBench(t, "", nil)
	r := b.run(t, t.Context(), "write_file", args{"path": "new/folder/f", "content": "a\nb"})
	if r.Output != "created new/folder/f (2 lines)" || b.content(t, "new/folder/f") != "a\nb" {
		t.Errorf("%s %s", r.State, r.Output)
	}
	if c := b.changes[0]; c.Before != nil || string(c.After) != "a\nb" || c.Path != "new/folder/f" || c.Buffer {
		t.Errorf("recorded %+v", c)
	}
}

// guards C3
func TestIntentComesBeforeTheChange(t *testing.T) {
	for _, ed := range []editor{nil, {"f": "old\n"}} {
		for tool, a := range map[string]args{
			"write_file": {"path": "f", "content": "new\n"},
			"edit_file":  {"path": "f", "old": "old", "new": "new"},
		} {
			b := newBench(t, "-- f --\nold\n", ed)
			b.intent = errors.New("disk full")
			r := b.run(t, t.Context(), tool, a)
			if r.State != Failed || !strings.Contains(r.Output, "f was not changed") || !strings.Contains(r.Output, "disk full") {
				t.Errorf("%s: %s %s", tool, r.State, r.Output)
			}
			if b.content(t, "f") != "old\n" || ed != nil && ed["f"] != "old\n" {
				t.Errorf("%s changed a file it could not record", tool)
			}
			if c := b.changes; len(c) != 1 || string(c[0].Before) != "old\n" || string(c[0].After) != "new\n" || c[0].Buffer != (ed != nil) {
				t.Errorf("%s recorded %+v", tool, c)
			}
		}
	}
}

func TestAChangeToAnOpenFileGoesToTheEditor(t *testing.T) {
	ed := editor{"f": "typed\r\nmore\r\n"}
	b := newBench(t, "-- f --\ndisk\n", ed)
	r := b.run(t, t.Context(), "edit_file", args{"path": "f", "old": "typed\nmore", "new": "changed"})
	if r.State != Done || ed["f"] != "changed\r\n" || b.content(t, "f") != "disk\n" || !strings.Contains(r.Output, "not saved") {
		t.Errorf("%s: editor %q, disk %q\n%s", r.State, ed["f"], b.content(t, "f"), r.Output)
	}
}

// late is an editor that makes the change and then fails to say so.
type late struct{ editor }

func (l late) Apply(ctx context.Context, p, before, after string) error {
	return errors.Join(l.editor.Apply(ctx, p, before, after), errors.New("no answer"))
}

// guards P2
func TestAChangeIsToldByWhatIsThere(t *testing.T) {
	ed := editor{"f": "old\n"}
	b := newBench(t, "-- f --\nold\n", ed)
	w, err := workspace.Open(b.dir, late{ed})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b.w = w
	if r := b.run(t, t.Context(), "edit_file", args{"path": "f", "old": "old", "new": "new"}); r.State != Done || ed["f"] != "new\n" {
		t.Errorf("%s %s", r.State, r.Output)
	}
}

func TestAStopWhileTheIntentIsRecordedChangesNothing(t *testing.T) {
	b := newBench(t, "-- f --\nold\n", nil)
	tool, _ := Lookup("write_file")
	raw := []byte(`{"path":"f","content":"new"}`)
	ctx, cancel := context.WithCancel(t.Context())
	r := tool.Run(ctx, Env{Workspace: b.w, Permit: allow(tool, raw), Intent: func(context.Context, Change) error {
		cancel()
		return nil
	}}, raw)
	if r.State != Stopped || b.content(t, "f") != "old\n" {
		t.Errorf("%s %s", r.State, r.Output)
	}
}

func TestFilesThatMayNotBeChangedAreRefusedBeforeTheIntent(t *testing.T) {
	b := newBench(t, "-- .git/config --\n-- d/x --\n", nil)
	b.link(t, filepath.Join(t.TempDir(), "x"), filepath.Join(b.dir, "out"))
	for _, path := range []string{".git/config", ".git/hooks/pre-commit", "out", "../x", "/etc/fermata", "d", "d/x/y", ""} {
		if r := b.run(t, t.Context(), "write_file", args{"path": path, "content": "x"}); r.State != Failed {
			t.Errorf("%q: %s %s", path, r.State, r.Output)
		}
	}
	if len(b.changes) != 0 {
		t.Errorf("recorded %v", b.changes)
	}
}
