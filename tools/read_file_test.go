package tools

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFileShowsNumberedLines(t *testing.T) {
	long := strings.Repeat("é", 5000)
	thousands := strings.Repeat("line\n", 2500)
	for name, tt := range map[string]struct {
		content string
		args    args
		want    string
		fails   bool
	}{
		"plain":             {content: "a\n\tb\n", want: "1\ta\n2\t\tb\n(lines 1-2 of 2, the end)"},
		"empty":             {content: "", want: "(the file is empty)"},
		"only a newline":    {content: "\n", want: "1\t\n(lines 1-1 of 1, the end)"},
		"no final newline":  {content: "a\nb", want: "1\ta\n2\tb\n(lines 1-2 of 2, the end)\n(no newline at the end of the file)"},
		"BOM":               {content: "\uFEFFa\n", want: "1\ta\n(lines 1-1 of 1, the end)\n(the file begins with a byte order mark, which edits keep)"},
		"CRLF":              {content: "a\r\nb\r\n", want: "1\ta\n2\tb\n(lines 1-2 of 2, the end)\n(CRLF line endings)"},
		"CRLF, unended":     {content: "a\r\nb", want: "1\ta\n2\tb\n(lines 1-2 of 2, the end)\n(no newline at the end of the file)\n(CRLF line endings)"},
		"mixed":             {content: "a\r\nb\n", want: "1\ta\n2\tb\n(lines 1-2 of 2, the end)\n(mixed line endings: some lines end in CRLF)"},
		"a part":            {content: "a\nb\nc\nd\n", args: args{"offset": 2, "limit": 2}, want: "2\tb\n3\tc\n(lines 2-3 of 4; offset 4 reads on)"},
		"the last part":     {content: "a\nb\n", args: args{"offset": 2, "limit": 9}, want: "2\tb\n(lines 2-2 of 2, the end)"},
		"past the end":      {content: "a\nb\n", args: args{"offset": 3}, want: "read_file: offset 3 is past the end: f has 2 lines", fails: true},
		"a long line":       {content: long + "\nx\n", want: "1\t" + long[:4096] + "… (line cut: 5904 more bytes)\n2\tx\n(lines 1-2 of 2, the end)"},
		"many lines":        {content: thousands, args: args{"offset": 2499}, want: "2499\tline\n2500\tline\n(lines 2499-2500 of 2500, the end)"},
		"binary":            {content: "a\x00b", want: "read_file: f: not text: it is binary (3 bytes)", fails: true},
		"late NUL":          {content: strings.Repeat("a\n", 5000) + "\x00", args: args{"offset": 5001}, want: "read_file: f cannot be shown: line 5001 has a NUL byte: it is binary (10001 bytes in all)", fails: true},
		"Latin-1":           {content: "gr\xfc\xdfe\n", want: "1\tgrüße\n(lines 1-1 of 1, the end)\n(the file is Latin-1, shown as UTF-8; edits keep it Latin-1)"},
		"Latin-1, far down": {content: strings.Repeat("line\n", 20_000) + "\xfc\n", args: args{"offset": 20_001}, want: "20001\tü\n(lines 20001-20001 of 20001, the end)\n(the file is Latin-1, shown as UTF-8; edits keep it Latin-1)"},
		"Windows-1252":      {content: "\x8420 \x80\x93\n", want: "1\t„20 €“\n(lines 1-1 of 1, the end)\n(the file is Windows-1252, shown as UTF-8; edits keep it Windows-1252)"},
		"UTF-16":            {content: "\xff\xfeh\x00\r\x00\n\x00", want: "1\th\n(lines 1-1 of 1, the end)\n(CRLF line endings)\n(the file is UTF-16LE, shown as UTF-8; edits keep it UTF-16LE)"},
		"UTF-16, no mark":   {content: "h\x00\n\x00", want: "read_file: f: not text: it looks like UTF-16 without a byte order mark, by which alone that can be told; convert it to UTF-8 first (4 bytes)", fails: true},
		"GBK":               {content: "\xd6\xd0\xb9\xfa\xc8\xcb\n", want: "read_file: f: not text: it is neither UTF-8 (byte 0xD6 at offset 0) nor does it look like Latin-1; convert it to UTF-8 first (7 bytes)", fails: true},
		"control character": {content: "a\x1b[31m\n", want: "1\ta\x1b[31m\n(lines 1-1 of 1, the end)"},
		"lone CR":           {content: "a\rb\n", want: "1\ta\rb\n(lines 1-1 of 1, the end)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			b.put(t, "f", tt.content)
			a := args{"path": "f"}
			maps.Copy(a, tt.args)
			r := b.run(t, t.Context(), "read_file", a)
			if r.Output != tt.want || (r.State == Failed) != tt.fails {
				t.Errorf("%s:\n%s\nwant:\n%s", r.State, r.Output, tt.want)
			}
		})
	}
}

func TestReadFileIsBounded(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "lines", strings.Repeat("line\n", 100_000))
	b.put(t, "wide", strings.Repeat(strings.Repeat("x", 4000)+"\n", 100))
	b.put(t, "single", strings.Repeat("x", 5<<20))
	f, err := os.Create(filepath.Join(b.dir, "sparse"))
	if err == nil {
		_, err = f.WriteString("text at first\n" + strings.Repeat("more\n", 2000))
	}
	if err == nil {
		err = f.Truncate(200 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for name, want := range map[string]string{
		"lines":  "(lines 1-2000 of 100000; offset 2001 reads on)",
		"wide":   "(lines 1-16 of 100; offset 17 reads on)",
		"single": "… (line cut: 5238784 more bytes)\n(lines 1-1 of 1, the end)\n(no newline",
	} {
		r := b.run(t, t.Context(), "read_file", args{"path": name})
		if r.State != Done || !strings.Contains(r.Output, want) || len(r.Output) > readBytes+200 {
			t.Errorf("%s: %s, %d bytes, ends %q", name, r.State, len(r.Output), r.Output[max(0, len(r.Output)-120):])
		}
	}
	if r := b.run(t, t.Context(), "read_file", args{"path": "sparse", "limit": 2}); r.State != Done || !strings.Contains(r.Output, "1\ttext at first\n2\tmore\n(lines 1-2 of 2002;") {
		t.Errorf("sparse: %s %s", r.State, r.Output)
	}
}

func TestReadFileShowsUnsavedText(t *testing.T) {
	b := newBench(t, "-- f --\ndisk\n", editor{"f": "typed\n"})
	if r := b.run(t, t.Context(), "read_file", args{"path": "./f"}); !strings.HasPrefix(r.Output, "1\ttyped\n") || !strings.Contains(r.Output, "perhaps unsaved") {
		t.Errorf("%s %s", r.State, r.Output)
	}
}

func TestListDirShowsFoldersFirst(t *testing.T) {
	b := newBench(t, "-- b --\n-- a/x --\n-- c/y --\n-- .gitignore --\nb\n", editor{"new": ""})
	if err := os.Symlink("a", filepath.Join(b.dir, "l")); err != nil {
		t.Fatal(err)
	}
	b.put(t, "odd\nname", "")
	if r := b.run(t, t.Context(), "list_dir", ""); r.Output != "a/\nc/\n.gitignore\nb\nl (link)\nnew\n\"odd\\nname\"" {
		t.Errorf("%s", r.Output)
	}
	if r := b.run(t, t.Context(), "list_dir", args{"path": "b"}); r.State != Failed || !strings.Contains(r.Output, "read_file") {
		t.Errorf("a file: %s %s", r.State, r.Output)
	}
	for i := range 600 {
		b.put(t, "many/"+strings.Repeat("n", i%7)+string(rune('a'+i%26))+strings.Repeat("z", i/26), "")
	}
	if r := b.run(t, t.Context(), "list_dir", args{"path": "many"}); strings.Count(r.Output, "\n") != listNames || !strings.Contains(r.Output, "(500 of ") {
		t.Errorf("not bounded: %d lines", strings.Count(r.Output, "\n"))
	}
}

func TestGlobFindsFiles(t *testing.T) {
	b := newBench(t, "-- a.go --\n-- src/b.go --\n-- src/deep/c.go --\n-- src/d.ts --\n-- out/e.go --\n-- .gitignore --\nout/\n", nil)
	for name, tt := range map[string]struct {
		args args
		want string
	}{
		"a name in any folder": {args{"pattern": "*.go"}, "a.go\nsrc/b.go\nsrc/deep/c.go"},
		"at the root":          {args{"pattern": "./*.go"}, "a.go\nsrc/b.go\nsrc/deep/c.go"},
		"any depth":            {args{"pattern": "**/*.go"}, "a.go\nsrc/b.go\nsrc/deep/c.go"},
		"one level":            {args{"pattern": "src/*.go"}, "src/b.go"},
		"alternatives":         {args{"pattern": "src/**/*.{go,ts}"}, "src/b.go\nsrc/d.ts\nsrc/deep/c.go"},
		"in a folder":          {args{"pattern": "deep/*.go", "path": "src"}, "src/deep/c.go"},
		"in an ignored folder": {args{"pattern": "*.go", "path": "out"}, "out/e.go"},
		"nothing":              {args{"pattern": "*.rs"}, "(no file matches)"},
	} {
		if r := b.run(t, t.Context(), "glob", tt.args); r.Output != tt.want || r.State != Done {
			t.Errorf("%s: %s\n%s", name, r.State, r.Output)
		}
	}
	if r := b.run(t, t.Context(), "glob", args{"pattern": "*", "path": "../x"}); r.State != Failed {
		t.Errorf("outside: %s", r.Output)
	}
}
