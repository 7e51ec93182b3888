package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func walk(t *testing.T, w *Workspace, dir string) (names []string) {
	t.Helper()
	err := w.WalkFiles(t.Context(), dir, func(name string) error {
		names = append(names, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const ignoring = `
-- .gitignore --
# a comment
*.log
!keep.log
/build
node_modules/
docs/*.html
**/tmp/**
a/**/z
\#odd
spaced\ 
curly{x}
[Tt]humbs.db
-- .git/config --
-- .github/ci.yml --
-- x.log --
-- keep.log --
-- build/out --
-- sub/build/out --
-- node_modules/m/index.js --
-- sub/node_modules/m.js --
-- sub/deep/node_modules --
-- docs/a.html --
-- docs/sub/a.html --
-- q/tmp/x --
-- a/z --
-- a/b/c/z --
-- #odd --
-- curly{x} --
-- curlyx --
-- thumbs.db --
-- sub/.gitignore --
!x.log
/only-here
keep.log
-- sub/x.log --
-- sub/keep.log --
-- sub/only-here --
-- sub/deep/only-here --
-- sub/deep/.gitignore --
!keep.log
-- sub/deep/keep.log --
`

func TestAWalkHonoursGitignore(t *testing.T) {
	w := tree(t, ignoring, nil)
	for dir, want := range map[string][]string{
		".": {".github/ci.yml", ".gitignore", "curlyx", "docs/sub/a.html", "keep.log",
			"sub/.gitignore", "sub/build/out", "sub/deep/.gitignore", "sub/deep/keep.log", "sub/deep/node_modules",
			"sub/deep/only-here", "sub/x.log"},
		"sub":            {"sub/.gitignore", "sub/build/out", "sub/deep/.gitignore", "sub/deep/keep.log", "sub/deep/node_modules", "sub/deep/only-here", "sub/x.log"},
		"sub/deep":       {"sub/deep/.gitignore", "sub/deep/keep.log", "sub/deep/node_modules", "sub/deep/only-here"},
		"node_modules":   {"node_modules/m/index.js"}, // asked for by name
		"./node_modules": {"node_modules/m/index.js"},
	} {
		if got := walk(t, w, dir); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", dir, got, want)
		}
	}
}

func TestAWalkLeavesOutLinksAndStrangeNames(t *testing.T) {
	w := tree(t, "-- d/f --\n", nil)
	link(t, "d", filepath.Join(w.Root(), "dirlink"))
	link(t, "d/f", filepath.Join(w.Root(), "filelink"))
	link(t, "..", filepath.Join(w.Root(), "d", "up"))
	if err := os.WriteFile(filepath.Join(w.Root(), "bad\xff"), nil, 0o666); err != nil {
		t.Logf("this file system takes only UTF-8 names: %v", err)
	}
	if got := walk(t, w, "."); !slices.Equal(got, []string{"d/f"}) {
		t.Errorf("got %q", got)
	}
}

func TestAWalkEndsWhenAsked(t *testing.T) {
	w := tree(t, "-- a --\n-- b --\n-- c --\n", nil)
	n := 0
	count := func(err error) func(string) error {
		return func(string) error { n++; return err }
	}
	if err := w.WalkFiles(t.Context(), ".", count(fs.SkipAll)); err != nil || n != 1 {
		t.Errorf("SkipAll: %v after %d", err, n)
	}
	broken := errors.New("broken")
	if err := w.WalkFiles(t.Context(), ".", count(broken)); !errors.Is(err, broken) {
		t.Errorf("an error of f: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if err := w.WalkFiles(ctx, ".", count(nil)); !errors.Is(err, broken) {
		t.Errorf("cancelled: %v", err)
	}
}

// What a repository excludes by itself counts less than its .gitignore files, as it does for git; a repository within another
// has its own.
func TestAWalkHonoursWhatARepositoryExcludes(t *testing.T) {
	w := tree(t, `
-- .git/info/exclude --
*.mine
/notes
sub/deep/private
-- .gitignore --
!kept.mine
-- a.mine --
-- kept.mine --
-- notes/x --
-- sub/notes --
-- sub/b.mine --
-- sub/deep/private --
-- sub/deep/public --
-- module/.git/info/exclude --
/own
-- module/own --
-- module/deep/own --
-- module/c.mine --
-- worktree/.git --
gitdir: /elsewhere
-- worktree/d --
-- .GIT/config --
-- g --
`, nil)
	for dir, want := range map[string][]string{
		".":        {".gitignore", "g", "kept.mine", "module/deep/own", "sub/deep/public", "sub/notes", "worktree/d"},
		"sub/deep": {"sub/deep/public"},
	} {
		if got := walk(t, w, dir); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", dir, got, want)
		}
	}
}

func TestAnIgnoreFileThatIsOpenIsReadAsTheEditorHasIt(t *testing.T) {
	w := tree(t, "-- .gitignore --\n/a\n-- a --\n-- b --\n-- sub/c --\n", editor{".gitignore": "/b\n", "sub/.gitignore": "c\n"})
	if got, want := walk(t, w, "."), []string{".gitignore", "a", "sub/.gitignore"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An ignore file that is none, is a link out of the workspace or is made to cost time excludes nothing, or in bounds.
func TestAHostileIgnoreFileIsHarmless(t *testing.T) {
	w := tree(t, "-- a/f --\n-- b/.gitignore/x --\n-- b/f --\n-- c/f --\n-- c/.gitignore --\n/f\n", nil)
	link(t, "/etc/passwd", filepath.Join(w.Root(), "a", ".gitignore"))
	var long strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&long, "*a*a*a*a*a*a*b%d\n", i)
	}
	long.WriteString("f\n")
	put(t, filepath.Join(w.Root(), ".gitignore"), long.String())
	if got, want := walk(t, w, "."), []string{".gitignore", "a/f", "b/.gitignore/x", "b/f", "c/.gitignore", "c/f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each of these is what git 2.39 does.
func TestAnIgnoreRuleMeansWhatItMeansToGit(t *testing.T) {
	for rule, tt := range map[string]struct{ ignores, keeps string }{
		`\{`:             {"{ a/{", "x"},
		`x{a,b}`:         {"x{a,b}", "xa"},
		"a\\ ":           {"'a '", "a"},
		"a\\\\ ":         {`a\`, "'a\\ '"},
		"a  ":            {"a", "'a  '"},
		"a\\  ":          {"'a '", "a"},
		`[]a]`:           {"] a", "x"},
		`[!]a]`:          {"x", "] a"},
		`[]-]`:           {"] -", "a"},
		`[a-]`:           {"a -", "b"},
		`[\]a]`:          {"] a", `\`},
		`[[:digit:]_]x`:  {"1x _x", "ax :x"},
		`[[:nothing:]]`:  {"", "n :"},
		`[a`:             {"", "[a a"},
		`[a/b]`:          {"a b", "x x/a"}, // the slash ties it to the folder
		`a[!x]b`:         {"a.b", "axb a/b"},
		`/a?b`:           {"a.b", "a/b"},
		`??`:             {"é ab", "a ü?"}, // a letter that takes two bytes is two to git
		`/a*b`:           {"ab axxb", "a/b"},
		`a**b/c`:         {"axxb/c", "a/b/c"},
		`a/**`:           {"a/b a/b/c", "a b/a"},
		`a/**/b`:         {"a/b a/x/y/b", "ab x/a/b"},
		`**/a/b`:         {"a/b x/y/a/b", "xa/b"},
		`a//`:            {"", "a a/b"},
		`*a*b*a*b*c`:     {"xaxbxaxbxc", "ababab"},
		`**/x/*/**/y/*z`: {"x/1/y/z a/x/x/1/2/y/zz", "x/y/z x/1/y/z/q"},
	} {
		rules := ignoreRules(nil).with(".", rule)
		for names, want := range map[string]bool{tt.ignores: true, tt.keeps: false} {
			if n := strings.Trim(names, "'"); n != names {
				names = strings.ReplaceAll(n, " ", "\x00")
			}
			for p := range strings.FieldsSeq(names) {
				p = strings.ReplaceAll(p, "\x00", " ")
				dir, name := path.Split(p)
				if got := rules.ignored(path.Clean(dir), name, false); got != want {
					t.Errorf("%q, %q: ignored is %v", rule, p, got)
				}
			}
		}
	}
}
