package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		"BOM given twice":         {content: "\uFEFFa\n", old: "\uFEFFa", new: "\uFEFFb", want: "\uFEFFb\n"},
		"BOM only in new":         {content: "\uFEFFa\n", old: "a", new: "\uFEFFb", want: "\uFEFFb\n"},
		"BOM added":               {content: "a\n", old: "a", new: "\uFEFFb", want: "\uFEFFb\n"},
		"CR before CRLF":          {content: "a\r\r\nb\r\n", old: "a", new: "A", want: "A\r\r\nb\r\n"},
		"CR before CRLF, added":   {content: "a\r\nb\r\n", old: "a", new: "a\r\r\nx", want: "a\r\r\nx\r\nb\r\n"},
		"mixed, in the LF part 2": {content: "a\r\nb\nc\r\n", old: "b", new: "x\ny", want: "a\r\nx\ny\nc\r\n"},
		"mixed, middle stays":     {content: "a\r\nb\nc\r\n", old: "a\nb\nc", new: "x\nb\ny", want: "x\r\nb\ny\r\n"},
		"mixed, lines added":      {content: "a\nb\r\nc\n", old: "b\nc", new: "b\n1\n2\nc", want: "a\nb\r\n1\r\n2\r\nc\n"},
		"mixed, lines taken":      {content: "a\nb\r\nc\nd\r\n", old: "a\nb\nc\n", new: "c\n", want: "c\nd\r\n"},
		"mixed, all":              {content: "a\r\na\n", old: "a\n", new: "b\nc\n", all: true, want: "b\r\nc\r\nb\nc\n"},
		"mixed, CRLF named":       {content: "a\r\nb\n", old: "a\r\n", new: "a\n", want: "a\nb\n"},
		"LF, CRLF meant":          {content: "a\nb\n", old: "a", new: "a\r\nx", want: "a\r\nx\nb\n"},
		"LF, old given as CRLF":   {content: "a\nb\n", old: "a\r\nb", new: "x\r\ny", want: "x\ny\n"},
		"only endings":            {content: "a\r\nb\r\n", old: "a\r\nb", new: "a\nb", says: "only in line endings"},
		"no pattern":              {content: "a.c abc\n", old: "a.c", new: "$1", want: "$1 abc\n"},
		"ambiguous":               {content: "x\na\nb\na\n", old: "a", new: "c", says: "2 times, at lines 2, 4; give more"},
		"ambiguous, many":         {content: strings.Repeat("a\n", 30), old: "a", new: "c", says: "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"},
		"not found":               {content: "a\n", old: "zebra", new: "c", says: "Nothing like it is in the file"},
		"other indentation":       {content: "f {\n\tif a {\n\t\tb\n", old: "  if a {\n    b", new: "", says: "other white space is at line 2: line 2 begins with 1 tab, old with 2 spaces. There the file has:\n2\t\tif a {\n3\t\t\tb"},
		"first line only":         {content: "a\nif x {\nreal\n}\n", old: "if x {\nimagined\n}", new: "", says: "nearest is at line 2, and differs from line 3 on, where old has \"imagined\". There the file has:\n2\tif x {\n3\treal\n4\t}"},
		"part of a line":          {content: "return foo(a, b)\n", old: "foo(a,  b)", new: "x", says: "other white space is at line 1: within line 1"},
		"line numbers":            {content: "a\n", old: "1\ta", new: "b", says: "line numbers and tabs in it that read_file adds: without that it is at line 1."},
		"several numbered lines":  {content: "x\na\nb\n", old: "2\ta\n3\tb", new: "", says: "without that it is at line 2."},
		"grep's prefix":           {content: "x\na b\n", old: "dir/f.go:2:a b", new: "", says: "file name and line number in it that grep adds: without that it is at line 2."},
		"escaped":                 {content: "a\n\tb\n", old: `a\n\tb`, new: "", says: "escaped once too often"},
		"entities":                {content: "a < b\n", old: "a &lt; b", new: "", says: "HTML entities"},
		"newline too many":        {content: "a\nb", old: "b\n", new: "", says: "newline that is not in the file there: without that it is at line 2."},
		"trailing space":          {content: "x\na  \nb\n", old: "a\nb\n", new: "", says: "at line 2: line 2 ends with 2 spaces, old with no white space. There the file has:\n2\ta  \n3\tb"},
		"tabs for spaces":         {content: "if x:\n    y\n", old: "if x:\n\ty", new: "", says: "line 2 begins with 4 spaces, old with 1 tab"},
		"other quotes":            {content: "x\nsay “hi” – now\n", old: `say "hi" - now`, new: "", says: "other quotes, dashes or spaces is at line 2: line 2 has “ (U+201C) where old has \" (U+0022)"},
		"no-break space":          {content: "10\u00a0km far\n", old: "10 km far", new: "", says: "other white space is at line 1"},
		"another normal form":     {content: "cafe\u0301\n", old: "café", new: "", says: "normal form is at line 1: line 1 has e\u0301 (U+0065 U+0301) where old has é (U+00E9)"},
		"other case":              {content: "x\nfunc readall()\n", old: "func ReadAll()", new: "", says: "case is at line 2: line 2 has r (U+0072) where old has R (U+0052)"},
		"near":                    {content: "a\nb\n\treturn strconv.Atoi(name, 10)\nc\n", old: "return strconv.Itoa(name, 16)", new: "", says: "nearest is at line 3"},
		"changed at the end":      {content: "one line\nanother line\n", old: "one line\nanother line\nthird line", new: "", says: "The file ends at line"},
		"empty old":               {content: "a\n", old: "", new: "b", says: "old is empty"},
		"same":                    {content: "a\n", old: "a", new: "a", says: "the same"},
		"binary":                  {content: "a\x00", old: "a", new: "b", says: "binary"},
		"Latin-1":                 {content: "a\xfc\n", old: "ü", new: "öß", want: "a\xf6\xdf\n", says: "-aü\n+aöß"},
		"not in Latin-1":          {content: "a\xfc\n", old: "a", new: "漢", says: "f: the file is Latin-1, which has no 漢 (U+6F22, in line 1)"},
		"not in Latin-1, a quote": {content: "a\xfc\n", old: "a", new: "“", says: "Latin-1, which has no “"},
		"Windows-1252":            {content: "\x93a\x94\n", old: "a", new: "€", want: "\x93\x80\x94\n"},
		"no longer Latin-1":       {content: "\xfc \xfc\n", old: "ü ü", new: "Ã¼", says: "could no longer be told to be Latin-1"},
		"UTF-16":                  {content: "\xff\xfea\x00\n\x00", old: "a", new: "𝄞", want: "\xff\xfe\x34\xd8\x1e\xdd\n\x00"},
		"damaged UTF-16":          {content: "\xff\xfea\x00\x00\xd8", old: "a", new: "b", says: "damaged UTF-16LE"},
		"damaged UTF-8":           {content: "漢字a\xff", old: "a", new: "b", says: "damaged UTF-8 (byte 0xFF at offset 7)"},
		"overlapping":             {content: "x aaa\n", old: "aa", new: "b", says: "2 times, at lines 1"},
		"old in an empty file":    {content: "", old: "", new: "b", says: "the file is empty"},
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
		"mixed":       {"a\r\nb\n", "c\nd\n", "c\r\nd\n", "+2 -2"},
		"mixed, more": {"a\r\nb\nc\r\n", "a\nb\nx\ny\nc\n", "a\r\nb\nx\ny\nc\r\n", "+2 -0"},
		"CRLF meant":  {"a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n", "only line endings"},
		"BOM meant":   {"a\n", "\uFEFFa\n", "\uFEFFa\n", "byte order mark"},
		"CRLF stays":  {"a\r\nb\r\n", "a\r\nc\n", "a\r\nc\r\n", "+1 -1"},
		"Latin-1":     {"\xfc\n", "ö\n", "\xf6\n", "-ü\n+ö"},
		"UTF-16BE":    {"\xfe\xff\x00a\x00\n", "b\n", "\xfe\xff\x00b\x00\n", "-a\n+b"},
		"no final nl": {"a\n", "b", "b", "No newline"},
		"to nothing":  {"a\n", "", "", "+0 -1"},
		"the same":    {"a\r\n", "a\n", "a\r\n", "already"},
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
	r := tool.Run(ctx, Env{Workspace: b.w, Permit: allow(b.w, tool, raw), Intent: func(context.Context, Change) error {
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

func TestAnEditSaysThatItPartsHardLinks(t *testing.T) {
	b := newBench(t, "-- f --\na\n", nil)
	if err := os.Link(filepath.Join(b.dir, "f"), filepath.Join(b.dir, "other")); err != nil {
		t.Fatal(err)
	}
	r := b.run(t, t.Context(), "edit_file", args{"path": "f", "old": "a", "new": "b"})
	if r.State != Done || !strings.HasPrefix(r.Output, "changed f: +1 -1 lines (on disk it had 2 names, hard links: this one now has") || b.content(t, "other") != "a\n" {
		t.Errorf("%s %s", r.State, r.Output)
	}
	if r := b.run(t, t.Context(), "edit_file", args{"path": "f", "old": "b", "new": "c"}); strings.Contains(r.Output, "hard link") {
		t.Errorf("again: %s", r.Output)
	}
}

func TestAFileThatIsNoTextIsNotReplaced(t *testing.T) {
	for content, says := range map[string]string{
		"\x00\xff\x01":             "f: not text: it is binary; write_file replaces only text",
		"\xd6\xd0\xb9\xfa\xc8\xcb": "nor does it look like Latin-1",
	} {
		b := newBench(t, "", nil)
		b.put(t, "f", content)
		r := b.run(t, t.Context(), "write_file", args{"path": "f", "content": "text\n"})
		if r.State != Failed || !strings.Contains(r.Output, says) || b.content(t, "f") != content || len(b.changes) != 0 {
			t.Errorf("%s %s", r.State, r.Output)
		}
	}
}

// Each place costs what lies around it, and not the whole file: a tool that counts the file's lines for each could not be stopped.
func TestReplacingVeryManyPlacesWithCRLFTakesNoMinutes(t *testing.T) {
	before := strings.Repeat("x,12345678\r\n", 80_000)
	done := make(chan string, 1)
	go func() {
		after, _ := replace(before, "x", "y", true)
		done <- after
	}()
	select {
	case after := <-done:
		if after != strings.ReplaceAll(before, "x", "y") {
			t.Error("it became something else")
		}
	case <-time.After(20 * time.Second): // of minutes that it took
		t.Fatal("it goes on")
	}
}
