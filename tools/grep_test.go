package tools

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"testing"

	"fermata/tools/workspace"
)

// finders are the ways to search: always in Go alone, and with ripgrep where there is one.
func finders() map[string]func(*workspace.Workspace) (string, bool) {
	f := map[string]func(*workspace.Workspace) (string, bool){"without ripgrep": nil}
	if _, err := exec.LookPath("rg"); err == nil {
		f["with ripgrep"] = findRipgrep
	}
	return f
}

const grepTree = `
-- .gitignore --
ignored
-- ignored --
needle
-- a/one.go --
package a

func Needle() {}
// needle
x := 1
-- b/two.go --
needle first
2
3
4
needle 5
needle 6
7
8
-- c.txt --
Straße
foo bar
naïve
-- rg.conf --
--files
`

func TestGrepFindsTheSameWithAndWithoutRipgrep(t *testing.T) {
	b := newBench(t, grepTree, editor{"open.txt": "only in the editor: quark\n", "a/one.go": "package a\n\nunsaved quark\n"})
	for i := range 2 * rgFiles { // enough for ripgrep to be asked
		b.put(t, fmt.Sprintf("filler/%03d", i), "nothing\n")
	}
	b.put(t, "crlf", "end\r\nmiddle end\r\n")
	b.put(t, "bom", "\uFEFFstart here\n")
	b.put(t, "latin1", "gr\xfc\xdfe\n")
	b.put(t, "binary", "needle\x00needle\n")
	b.put(t, "late", "early needle\n"+strings.Repeat("x\n", 5000)+"\x00 needle\nneedle\n")
	b.put(t, "utf16", "\xff\xfew\x00i\x00d\x00e\x00 \x00\xfc\x00\n\x00")
	b.put(t, "utf16be", "\xfe\xff\x00w\x00i\x00d\x00e\x00 \x00\xfc\x00\r\x00\n")
	b.put(t, "gbk", "\xd6\xd6\xd6\xd6 ascii\n")
	b.put(t, "cp1252", "20 \x80\n")
	b.put(t, "-dash", "dashed\n")
	b.put(t, "k", "\u212Aelvin\n")
	b.put(t, "dotted", "d\u0130yarb\n")
	for name, tt := range map[string]struct {
		args grepArgs
		want string
	}{
		"plain":                 {grepArgs{Pattern: "needle"}, "b/two.go:1:needle first\nb/two.go:5:needle 5\nb/two.go:6:needle 6\nlate:1:early needle"},
		"open buffers":          {grepArgs{Pattern: "quark"}, "a/one.go:3:unsaved quark\nopen.txt:1:only in the editor: quark"},
		"not the disk's":        {grepArgs{Pattern: "x := 1"}, "(no line matches)"},
		"folder":                {grepArgs{Pattern: "needle", Path: "b"}, "b/two.go:1:needle first\nb/two.go:5:needle 5\nb/two.go:6:needle 6"},
		"ignored by name":       {grepArgs{Pattern: "needle", Path: "ignored"}, "ignored:1:needle"},
		"glob":                  {grepArgs{Pattern: "needle", Glob: "*.go"}, "b/two.go:1:needle first\nb/two.go:5:needle 5\nb/two.go:6:needle 6"},
		"any case":              {grepArgs{Pattern: "NEEDLE F", CaseInsensitive: true}, "b/two.go:1:needle first"},
		"dotted I":              {grepArgs{Pattern: "D\u0130YARB", CaseInsensitive: true}, "dotted:1:d\u0130yarb"},
		"Kelvin":                {grepArgs{Pattern: "kelvin", CaseInsensitive: true}, "k:1:\u212Aelvin"},
		"line starts":           {grepArgs{Pattern: "^needle \\d$"}, "b/two.go:5:needle 5\nb/two.go:6:needle 6"},
		"after a BOM":           {grepArgs{Pattern: "^start"}, "bom:1:start here"},
		"before CRLF":           {grepArgs{Pattern: "end$"}, "crlf:1:end\ncrlf:2:middle end"},
		"context":               {grepArgs{Pattern: "needle", Path: "b", Context: 1}, "b/two.go:1:needle first\nb/two.go-2-2\n--\nb/two.go-4-4\nb/two.go:5:needle 5\nb/two.go:6:needle 6\nb/two.go-7-7"},
		"context, limit":        {grepArgs{Pattern: "needle", Path: "b", Context: 1, Limit: new(1)}, "b/two.go:1:needle first\nb/two.go-2-2\n(stopped after 1 match; there may be more: narrow the pattern, the path or the glob)"},
		"limit":                 {grepArgs{Pattern: "needle", Path: "b", Limit: new(2)}, "b/two.go:1:needle first\nb/two.go:5:needle 5\n(stopped after 2 matches; there may be more: narrow the pattern, the path or the glob)"},
		"Latin-1":               {grepArgs{Pattern: "grüße"}, "latin1:1:grüße"},
		"Latin-1, any":          {grepArgs{Pattern: "^gr..e$"}, "latin1:1:grüße"},
		"Latin-1, any case":     {grepArgs{Pattern: "GRÜSSE|GRÜß", CaseInsensitive: true}, "latin1:1:grüße"},
		"Latin-1, class":        {grepArgs{Pattern: "gr[ü-ÿ]"}, "latin1:1:grüße"},
		"Windows-1252":          {grepArgs{Pattern: "20 €$"}, "cp1252:1:20 €"},
		"UTF-16":                {grepArgs{Pattern: "^wide ü$"}, "utf16:1:wide ü\nutf16be:1:wide ü"},
		"another encoding":      {grepArgs{Pattern: "ascii"}, "gbk:1:\uFFFD ascii"},
		"one binary file":       {grepArgs{Pattern: "needle", Path: "binary"}, "(no line matches)\n(not searched: binary: not text: it is binary)"},
		"negated class":         {grepArgs{Pattern: "gr[^a]+e"}, "latin1:1:grüße"},
		"ASCII words":           {grepArgs{Pattern: `\bve\b`}, "c.txt:3:naïve"},
		"ASCII digits":          {grepArgs{Pattern: `^\D+ bar`}, "c.txt:2:foo bar"},
		"Unicode class":         {grepArgs{Pattern: `Stra\p{Ll}e`}, "c.txt:1:Straße"},
		"dash":                  {grepArgs{Pattern: "-?dashed"}, "-dash:1:dashed"},
		"a pattern like a flag": {grepArgs{Pattern: "--files"}, "rg.conf:1:--files"},
		"whole text":            {grepArgs{Pattern: `\Afoo bar\z`}, "c.txt:2:foo bar"},
		"a newline":             {grepArgs{Pattern: "2\n3"}, "(no line matches)"},
		"nothing":               {grepArgs{Pattern: "no such thing"}, "(no line matches)"},
		"repeats":               {grepArgs{Pattern: `(na|ï){2}ve|fo{2,} `}, "c.txt:2:foo bar\nc.txt:3:naïve"},
	} {
		for how, find := range finders() {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Setenv("RIPGREP_CONFIG_PATH", filepath.Join(b.dir, "rg.conf"))
				r := grep(t.Context(), b.w, tt.args, find, nil)
				if r.State != Done || r.Output != tt.want {
					t.Errorf("%s:\n%s\nwant:\n%s", r.State, r.Output, tt.want)
				}
			})
		}
	}
}

func TestGrepShowsTheMatchInALongLine(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "min.js", strings.Repeat("é", 2<<20)+"needle"+strings.Repeat("y", 1<<20)+"\n")
	r := b.run(t, t.Context(), "grep", args{"pattern": "needle"})
	if !strings.HasPrefix(r.Output, "min.js:1:…é") || !strings.Contains(r.Output, "needle") || !strings.Contains(r.Output, "(a line of 5242886 bytes)") || len(r.Output) > 600 {
		t.Errorf("%d bytes: %.700s", len(r.Output), r.Output)
	}
}

// What lay beyond the part of a line that is kept was not searched, and the result said that no line matches.
func TestGrepSaysWhichLinesItDoesNotSearchToTheirEnd(t *testing.T) {
	b := newBench(t, grepTree, nil)
	b.put(t, "d.json", "early "+strings.Repeat("x", grepLineKeep)+" needle\r\n")
	b.put(t, "e.json", strings.Repeat("x", grepLineKeep-len(" needle"))+" needle\r\n") // just as long as is searched
	const note = "(not searched: what lies beyond the first 16 MiB of a line, in d.json)"
	for name, tt := range map[string]struct {
		args grepArgs
		want string
	}{
		"in a folder":           {grepArgs{Pattern: "^needle|^early needle", Glob: "*.json"}, "(no line matches)\n" + note},
		"in a file":             {grepArgs{Pattern: "needle", Path: "d.json"}, "(no line matches)\n" + note},
		"among others":          {grepArgs{Pattern: "^needle first"}, "b/two.go:1:needle first\n" + note},
		"in a line as long":     {grepArgs{Pattern: "yy", Path: "e.json"}, "(no line matches)"},
		"where it is found":     {grepArgs{Pattern: "^early", Glob: "d.*", Limit: new(2)}, "d.json:1:early " + strings.Repeat("x", grepLineLen-len("early ")) + "… (a line of 16777229 bytes)"},
		"with an any character": {grepArgs{Pattern: "y.y", Path: "d.json"}, "(no line matches)\n" + note},
	} {
		t.Run(name, func(t *testing.T) {
			r := grep(t.Context(), b.w, tt.args, nil, nil)
			if r.State != Done || r.Output != tt.want {
				t.Errorf("grep: %s %.600q, want %.600q", r.State, r.Output, tt.want)
			}
		})
	}
}

func TestGrepIsBounded(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "f", strings.Repeat(strings.Repeat("x", 300)+"\n", 2000))
	r := b.run(t, t.Context(), "grep", args{"pattern": "x", "limit": 1000})
	if len(r.Output) > grepBytes+200 || !strings.Contains(r.Output, "there may be more") {
		t.Errorf("%d bytes", len(r.Output))
	}
}

// What is found ahead of what is shown is held in memory: no more of it than could be shown.
func TestASearchHoldsNoMoreThanItShows(t *testing.T) {
	b := newBench(t, "", nil)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("f%02d", i))
		b.put(t, names[i], strings.Repeat(strings.Repeat(strings.Repeat("x", 300)+"\n", 40)+"needle\n", 50))
	}
	for pattern, s := range map[string]search{"x": {limit: 1000}, "needle": {limit: 1000, context: grepContext}, "e+": {limit: 1}} {
		p, err := readPattern(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		s.pattern, s.w = p, b.w
		j := &searchJob{names: names}
		s.do(t.Context(), j, nil)
		size := 0
		for _, f := range j.found {
			for _, g := range f {
				size += len(g.text)
			}
		}
		if size > 2*grepBytes || len(j.found) != 1 {
			t.Errorf("%s: %d bytes of %d files are held", pattern, size, len(j.found))
		}
		o := output{search: &s}
		if o.add(j); !o.full && o.matches < s.limit {
			t.Errorf("%s: it does not show that there is more", pattern)
		}
	}
}

func TestARipgrepInTheWorkspaceIsNotRun(t *testing.T) {
	b := newBench(t, "-- bin/rg --\n#!/bin/sh\ntouch ran\n-- bin/rg.bat --\necho >ran\n", nil)
	b.chmod(t, "bin/rg")
	outside := t.TempDir()
	for name, path := range map[string]string{
		"by its path":      filepath.Join(b.dir, "bin"),
		"by a relative":    "bin",
		"by the empty one": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(b.dir)
			if path == "" {
				t.Chdir(filepath.Join(b.dir, "bin"))
			}
			t.Setenv("PATH", path)
			if rg, ok := findRipgrep(b.w); ok {
				t.Errorf("%s would be run", rg)
			}
		})
	}
	t.Run("by a link from outside", func(t *testing.T) {
		b.link(t, filepath.Join(b.dir, "bin", "rg"), filepath.Join(outside, "rg"))
		t.Setenv("PATH", outside)
		if rg, ok := findRipgrep(b.w); ok {
			t.Errorf("%s would be run", rg)
		}
	})
}

func TestOneOfTheNeedlesIsInWhateverMatches(t *testing.T) {
	for pattern, want := range map[string]string{
		"needle":            "needle",
		"a(needle)+b":       "needle",
		"needle|other":      "needle other",
		"(?i)needle":        "needle",
		"(?i)Kelvins":       "elvin",
		"(?i)k":             "",
		"(?i)straße":        "tra",
		"(?i)xx\u0130yyy":   "yyy",
		"foo(bar|baz)?":     "foo",
		"x*needle?":         "needl",
		"(needle){2,3}":     "needle",
		"(needle){0,3}":     "",
		"a*|needle":         "",
		"bad\uFFFD":         "",
		`func \w+Stopped\(`: "Stopped(",
		"":                  "",
		"^\\s*import \\(":   "import (",
	} {
		e, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range needlesOf(e) {
			got = append(got, n.text)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestANeedleInAnyCaseIsFoundWhereverItStands(t *testing.T) {
	e, err := syntax.Parse("(?i)quartz!", syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	n := needlesOf(e)[0]
	for text, want := range map[string]bool{
		"quartz!": true, "QUARTZ!": true, "  qUaRtZ!": true, "quartz": false, "": false, "zzzzquartz!zz": true, "qq quarts! Quart z!": false, "z": false, "ZQUARTZ": false, "\xffQuartz!\xff": true,
	} {
		if got := n.in([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A bug in a goroutine that a search starts ended the whole daemon, with the turns of all other sessions.
func TestABugInAGoroutineOfASearchPanicsWhereTheToolRuns(t *testing.T) {
	for name, produce := range map[string]func(context.Context, func(*searchJob) error) error{
		"where files are found": func(context.Context, func(*searchJob) error) error { panic("a bug") },
		"where files are searched": func(_ context.Context, job func(*searchJob) error) error {
			return job(&searchJob{names: []string{"f"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, "search.go") {
					t.Errorf("recovered from %s", p)
				}
			}()
			s := search{limit: 1} // it has no workspace
			t.Errorf("a result: %v", s.run(t.Context(), produce))
		})
	}
}
