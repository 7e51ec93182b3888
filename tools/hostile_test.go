package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// patience is how long what must come to an end may take on a busy machine; nothing here takes a second on an idle one.
const patience = 60 * time.Second

func TestAFileOfAGigabyteIsNotLoaded(t *testing.T) {
	b := newBench(t, "-- small --\nneedle\n", nil)
	name := filepath.Join(b.dir, "huge")
	if err := os.WriteFile(name, []byte("begins as text, needle\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1<<30); err != nil { // sparse
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, tt := range []struct {
		tool  string
		args  args
		state State
		says  string
	}{
		{"read_file", args{"path": "huge"}, Failed, "binary"},
		{"grep", args{"pattern": "needle"}, Done, "small:1:needle"},
		{"edit_file", args{"path": "huge", "old": "text", "new": "x"}, Failed, "too large"},
		{"write_file", args{"path": "huge", "content": "x"}, Failed, "huge"},
		{"delete_path", args{"path": "huge"}, Failed, "huge"},
		{"list_dir", args{}, Done, "huge\nsmall"},
	} {
		if r := b.run(t, ctx, tt.tool, tt.args); r.State != tt.state || !strings.Contains(r.Output, tt.says) {
			t.Errorf("%s: %s: %s", tt.tool, r.State, r.Output)
		}
	}
	if fi, err := os.Stat(name); err != nil || fi.Size() != 1<<30 {
		t.Errorf("afterwards: %v %v", fi, err)
	}
}

func TestALineOfTenMegabytesIsShownInPart(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "line", strings.Repeat("x", 10<<20)+"needle"+strings.Repeat("y", 100))
	for tool, a := range map[string]args{"read_file": {"path": "line"}, "grep": {"pattern": "n[e]+dle"}} {
		r := b.run(t, t.Context(), tool, a)
		if r.State != Done || len(r.Output) > 8<<10 || tool == "grep" && !strings.Contains(r.Output, "xneedley") {
			t.Errorf("%s: %s, %d bytes: %.500s", tool, r.State, len(r.Output), r.Output)
		}
	}
	r := b.run(t, t.Context(), "edit_file", args{"path": "line", "old": "needle", "new": "pin"})
	if r.State != Done || len(r.Output) > 16<<10 {
		t.Errorf("edit_file: %s, %d bytes", r.State, len(r.Output))
	}
}

// What looks small and could keep the daemon busy for years is refused, or done in no time.
func TestAPatternCannotKeepTheDaemonBusy(t *testing.T) {
	b := newBench(t, "-- a/b/c --\n", nil)
	deep := strings.Repeat("a/", 100)
	b.put(t, deep+strings.Repeat("a", 200), strings.Repeat("a", 200_000)+"\n")
	b.put(t, strings.Repeat("z", 60), "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, tt := range map[string]struct {
		tool  string
		args  args
		state State
		says  string
	}{
		"braces upon braces":       {"glob", args{"pattern": strings.Repeat("{a,b}", 40)}, Failed, "stand for more than 256 patterns"},
		"braces that are the same": {"glob", args{"pattern": strings.Repeat("{a,a}", 9) + "b"}, Failed, "stand for more than"},
		"braces within braces":     {"glob", args{"pattern": "{" + strings.Repeat("{a,{b,c}},", 90) + "d}{e,f}"}, Failed, "stand for more than"},
		"braces behind a class":    {"glob", args{"pattern": "[!{\\]]" + strings.Repeat("{z,z}", 40)}, Failed, "stand for more than"},
		"braces in a class":        {"glob", args{"pattern": strings.Repeat("[{,}]", 40)}, Done, "no file"},
		"braces that are few":      {"glob", args{"pattern": "{a,b}/{b,{c,d}}/*"}, Done, "a/b/c"},
		"braces that are none":     {"glob", args{"pattern": `\{a,b\}` + strings.Repeat(",", 400)}, Done, "no file"},
		"folders upon folders":     {"glob", args{"pattern": strings.Repeat("**/", 300) + "b"}, Done, "no file"},
		"folders between folders":  {"glob", args{"pattern": strings.Repeat("**/a/", 100) + "**/b"}, Done, "no file"},
		"stars upon stars":         {"glob", args{"pattern": strings.Repeat("*a", 100) + "b"}, Done, "no file"},
		"a long glob":              {"glob", args{"pattern": strings.Repeat("a", 2000)}, Failed, "at most 1000"},
		"a glob of a search":       {"grep", args{"pattern": "a", "glob": strings.Repeat("{a,b}", 40)}, Failed, "stand for more than"},
		"repeats upon repeats":     {"grep", args{"pattern": "((a{1000}){1000}){1000}"}, Failed, "RE2"},
		"many repeats":             {"grep", args{"pattern": strings.Repeat("[a-z]{1000}", 20)}, Failed, "too large"},
		"a long expression":        {"grep", args{"pattern": strings.Repeat("a", 10_000)}, Failed, "at most 8192"},
		"a wrong long expression":  {"grep", args{"pattern": strings.Repeat("(", 8000)}, Failed, "RE2"},
		"stars within stars":       {"grep", args{"pattern": "(a*)*(a*)*(a*)*[^a]$"}, Done, "no line"},
		"a search for everything":  {"grep", args{"pattern": "(?s).*.*.*.*.*=.*"}, Done, "no line"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := b.run(t, ctx, tt.tool, tt.args); r.State != tt.state || !strings.Contains(r.Output, tt.says) || len(r.Output) > 3000 {
				t.Errorf("%s: %.2000s", r.State, r.Output)
			}
		})
	}
}

// guards S7: also within one line that an expression would need minutes for.
func TestAStopEndsASearchInTheMiddleOfALine(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "line", strings.Repeat("ab", 8<<20))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan Result, 1)
	go func() {
		ended <- grep(ctx, b.w, grepArgs{Pattern: strings.Repeat("(a|b|ab)*c?", 300) + "[xz]"}, nil, nil)
	}()
	select {
	case r := <-ended:
		t.Fatalf("it was over before it was stopped: %s", r.Output)
	case <-time.After(300 * time.Millisecond): // it is in the line, or at least on the way
	}
	stop()
	select {
	case r := <-ended:
		if r.State != Stopped {
			t.Errorf("%s: %s", r.State, r.Output)
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}

// A name can hold what a terminal acts on, or what makes one line two. It is quoted wherever a tool says it.
func TestANameActsOnNobodyWhoReadsIt(t *testing.T) {
	names := []string{"turned\u202egnp.exe", "hidden\u200b.txt"}
	if filepath.Separator == '/' { // Windows has no such names
		names = append(names, "two\nlines", "red\x1b[31m", "title\x1b]0;x\x07", "back\rspace\b", "\u009b2J")
	}
	for _, name := range names {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			b := newBench(t, "-- other --\nneedle\n", nil)
			b.put(t, name, "needle\nmore\n")
			for _, c := range []struct {
				tool string
				args args
			}{
				{"list_dir", args{}}, {"glob", args{"pattern": "*"}}, {"grep", args{"pattern": "needle", "context": 1}}, {"grep", args{"pattern": "nothing", "path": name}},
				{"grep", args{"pattern": "x", "path": "none" + name}}, {"list_dir", args{"path": name}}, {"glob", args{"pattern": "*", "path": name}}, {"glob", args{"pattern": "[" + name}},
				{"read_file", args{"path": name}}, {"read_file", args{"path": name + "/below"}}, {"read_file", args{"path": "../" + name}}, {"read_file", args{"path": name, "offset": 100}},
				{"edit_file", args{"path": name, "old": "none", "new": "x"}}, {"edit_file", args{"path": name, "old": "needle", "new": "pin"}},
				{"write_file", args{"path": name, "content": "x\n"}}, {"write_file", args{"path": ".git/" + name, "content": "x\n"}},
				{"move_path", args{"from": name, "to": name + "2"}}, {"move_path", args{"from": name, "to": "x"}}, {"delete_path", args{"path": name}}, {"delete_path", args{"path": name + "2"}},
				{"apply_patch", args{"patch": "--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"}},
			} {
				raw, err := json.Marshal(c.args)
				if err != nil {
					t.Fatal(err)
				}
				tool, ok := Lookup(c.tool)
				if !ok {
					t.Fatalf("no tool %s", c.tool)
				}
				for what, text := range map[string]string{"result": b.run(t, t.Context(), c.tool, string(raw)).Output, "summary": tool.Summary(raw)} {
					for line := range strings.SplitSeq(text, "\n") {
						if line == "lines" || strings.HasPrefix(line, "lines:") || strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
							t.Errorf("%s %v: the %s is %q", c.tool, c.args, what, text)
						}
					}
				}
			}
		})
	}
}

// The folders of a tree that has no end are looked at as deep as any real one goes, and the result says so.
func TestATreeOfTenThousandFoldersWithinEachOtherIsCut(t *testing.T) {
	t.Parallel()
	b := newBench(t, "-- top --\nneedle\n-- d/near --\nneedle\n", nil)
	top, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	at := top
	for i := range 10_000 {
		if i > 0 {
			err = at.Mkdir("d", 0o777)
		}
		next, openErr := at.OpenRoot("d")
		at.Close()
		if err != nil || openErr != nil {
			t.Fatal(err, openErr)
		}
		at = next
	}
	if err := at.WriteFile("deep", []byte("needle\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	at.Close()
	t.Cleanup(func() { // os.RemoveAll would hold ten thousand folders open
		for {
			if os.Rename(filepath.Join(b.dir, "d", "d"), filepath.Join(b.dir, "e")) != nil {
				return
			}
			if os.RemoveAll(filepath.Join(b.dir, "d")) != nil || os.Rename(filepath.Join(b.dir, "e"), filepath.Join(b.dir, "d")) != nil {
				return
			}
		}
	})
	for tool, tt := range map[string]struct {
		args args
		want string
	}{
		"glob":     {args{"pattern": "**/*"}, "d/near\ntop\n(not looked at: d/d/"},
		"grep":     {args{"pattern": "needle"}, "d/near:1:needle\ntop:1:needle\n(not looked at: d/d/"},
		"list_dir": {args{"path": "d/d/d"}, "d/"},
	} {
		if r := b.run(t, t.Context(), tool, tt.args); r.State != Done || !strings.HasPrefix(r.Output, tt.want) || strings.Contains(r.Output, "deep:") {
			t.Errorf("%s: %s: %.300s", tool, r.State, r.Output)
		}
	}
	deep := strings.Repeat("d/", 10_000)
	for tool, a := range map[string]args{"read_file": {"path": deep + "deep"}, "list_dir": {"path": deep}, "write_file": {"path": deep + "new", "content": "x"}, "grep": {"pattern": "x", "path": deep},
		"move_path": {"from": deep + "deep", "to": "up"}} {
		if r := b.run(t, t.Context(), tool, a); r.State != Failed || !strings.Contains(r.Output, "256 folders deep") || len(r.Output) > 400 {
			t.Errorf("%s: %s: %.300s", tool, r.State, r.Output)
		}
	}
	if r := b.run(t, t.Context(), "delete_path", args{"path": "d"}); r.State != Failed || len(r.Output) > 2000 {
		t.Errorf("delete_path: %s: %.300s", r.State, r.Output)
	}
	if got := b.content(t, "d/near"); got != "needle\n" {
		t.Errorf("after a refused delete: %q", got)
	}
}

func TestAFolderOfTwoHundredThousandNamesIsShownInPart(t *testing.T) {
	t.Parallel()
	b := newBench(t, "-- sub/last --\n", nil)
	const many = 200_000
	first := filepath.Join(b.dir, "n000000")
	b.put(t, "n000000", "needle\n")
	for i := 1; i < many; i++ { // links to one file are made faster than files
		name := filepath.Join(b.dir, fmt.Sprintf("n%06d", i))
		if os.Link(first, name) == nil {
			continue
		}
		first = name // it has as many names as the file system lets it have, or there are no hard links
		if err := os.WriteFile(name, []byte("needle\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for tool, tt := range map[string]struct {
		args  args
		parts []string
	}{
		"list_dir": {args{}, []string{"sub/\nn000000\n", "n000498\n(500 of 200001 names; use glob to find others)"}},
		"glob":     {args{"pattern": "n*"}, []string{"n000000\n", "n000499\n(500 of 200000 files; narrow the pattern"}},
		"grep":     {args{"pattern": "needle"}, []string{"n000000:1:needle\n", "n000099:1:needle\n(stopped after 100 matches"}},
	} {
		r := b.run(t, t.Context(), tool, tt.args)
		for _, part := range tt.parts {
			if !strings.Contains(r.Output, part) {
				t.Errorf("%s lacks %q: %.100s … %s", tool, part, r.Output, r.Output[max(0, len(r.Output)-100):])
			}
		}
	}
}

// guards the order of results: with and without ripgrep, however the work was shared out.
func TestASearchOfManyFilesIsInTheOrderOfTheirPaths(t *testing.T) {
	b := newBench(t, "", nil)
	var want []string
	for i := range 60 {
		for _, name := range []string{fmt.Sprintf("d%02d/f", i), fmt.Sprintf("d%02d.x", i), fmt.Sprintf("d%02d/sub/f", i), fmt.Sprintf("d%02d-y", i)} {
			b.put(t, name, strings.Repeat("nothing\n", i*3)+"the Needle\n")
			want = append(want, fmt.Sprintf("%s:%d:the Needle", name, i*3+1))
		}
	}
	slices.SortFunc(want, func(a, c string) int {
		a, _, _ = strings.Cut(a, ":")
		c, _, _ = strings.Cut(c, ":")
		return strings.Compare(a, c)
	})
	for how, find := range finders() {
		for _, pattern := range []string{"Needle", "[A-Z].*"} {
			for _, limit := range []int{1000, 50} {
				r := grep(t.Context(), b.w, grepArgs{Pattern: pattern, Limit: &limit}, find, nil)
				lines := strings.Split(r.Output, "\n")
				n := min(limit, len(want))
				if !slices.Equal(lines[:min(n, len(lines))], want[:n]) {
					t.Errorf("%s, %s, limit %d:\n%s", how, pattern, limit, r.Output)
				}
			}
		}
	}
}

// guards the user's say about secret files: those that a search passes over are named, however it ends.
func TestASearchNamesTheSecretFilesUpToWhereItEnded(t *testing.T) {
	b := newBench(t, "-- a/.env --\nneedle\n-- b/f --\nneedle\n-- c/.env --\nneedle\n", nil)
	may := func(path string) (string, bool) { return "secret", filepath.Base(path) != ".env" }
	for limit, want := range map[int]string{10: "a/.env, c/.env", 1: "a/.env"} {
		for how, find := range finders() {
			r := grep(t.Context(), b.w, grepArgs{Pattern: "needle", Limit: &limit}, find, may)
			if !strings.HasPrefix(r.Output, "b/f:1:needle") || !strings.Contains(r.Output, "decides about reading them: "+want+";") {
				t.Errorf("%s, limit %d: %s", how, limit, r.Output)
			}
		}
	}
}

// guards the promise that nothing in a repository runs a program: no tool but run starts any, but for the user's own ripgrep.
func TestWhatARepositoryTellsGitToRunIsNotRun(t *testing.T) {
	if filepath.Separator != '/' {
		return // the traps are shell scripts
	}
	const trap = "#!/bin/sh\necho ran >> \"$(dirname \"$0\")/../ran\"\n"
	b := newBench(t, "-- a.txt --\none\n-- bin/.keep --\n-- .gitattributes --\n* filter=evil diff=evil\n", nil)
	b.put(t, ".git/config", "[core]\n\tpager = ./bin/trap\n\tfsmonitor = ./bin/trap\n\thooksPath = bin\n\tsshCommand = ./bin/trap\n\teditor = ./bin/trap\n"+
		"[filter \"evil\"]\n\tclean = ./bin/trap\n\tsmudge = ./bin/trap\n\trequired = true\n[diff \"evil\"]\n\ttextconv = ./bin/trap\n[alias]\n\tstatus = !./bin/trap\n")
	path := t.TempDir()
	for _, name := range []string{"bin/trap", "bin/git", "bin/pre-commit", "bin/post-checkout", "bin/sh", ".git/hooks/pre-commit", ".git/hooks/post-index-change"} {
		b.put(t, name, trap)
		b.chmod(t, name)
	}
	b.link(t, filepath.Join(b.dir, "bin", "git"), filepath.Join(path, "git")) // whoever calls git runs the trap
	t.Setenv("PATH", path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	calls := map[string]args{
		"read_file": {"path": "a.txt"}, "list_dir": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "[o]ne"},
		"write_file": {"path": "b.txt", "content": "x\n"}, "edit_file": {"path": "a.txt", "old": "one", "new": "two"},
		"apply_patch": {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n"},
		"move_path":   {"from": "b.txt", "to": "c.txt"}, "delete_path": {"path": "c.txt"},
		"run": {"command": "cat a.txt"},
	}
	var names []string
	for _, tool := range All() {
		a, ok := calls[tool.Name]
		if !ok {
			t.Errorf("%s is not tried here", tool.Name)
		}
		if r := b.run(t, t.Context(), tool.Name, a); r.State != Done && tool.Name != "delete_path" && tool.Name != "move_path" && tool.Name != "apply_patch" {
			t.Errorf("%s: %s", tool.Name, r.Output)
		}
		names = append(names, tool.Name)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Errorf("a program of the repository was run by one of %v", names)
	}
	if len(names) < len(slices.Collect(maps.Keys(calls))) {
		t.Errorf("only %v were tried", names)
	}
}

// guards C3: a file that another program writes all the time is read to where it was, and not edited on a moving ground.
func TestAFileThatGrowsWhileItIsReadComesToAnEnd(t *testing.T) {
	b := newBench(t, "", nil)
	b.put(t, "log", "first\n")
	f, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		defer f.Close()
		line := []byte(strings.Repeat("grows and grows ", 256) + "\n")
		for size := 0; size < 256<<20; size += len(line) { // faster than anybody reads
			select {
			case <-quit:
				return
			default:
				if _, err := f.Write(line); err != nil {
					return
				}
			}
		}
	}()
	defer func() { close(quit); <-gone }()
	for tool, a := range map[string]args{"read_file": {"path": "log", "limit": 1}, "grep": {"pattern": "no such text"}, "edit_file": {"path": "log", "old": "first", "new": "1st"}} {
		done := make(chan Result, 1)
		go func() { done <- b.run(t, t.Context(), tool, a) }()
		select {
		case r := <-done:
			t.Logf("%s: %.100s", tool, r.Output)
		case <-time.After(patience):
			t.Fatalf("%s does not come to an end", tool)
		}
	}
}
