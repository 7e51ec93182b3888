package main

import (
	"bufio"
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestThisRepositoryIsTidy(t *testing.T) {
	problems, err := tidy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestProblemsAreFoundAndNothingElse checks each archive in testdata as if it were the repository. Its file "want" has
// the problems, as "path: what"; its file "imports" has lines like "fermata/agent: time fermata/transcript", where
// "fermata/agent tests:" stands for the tests of a package.
func TestProblemsAreFoundAndNothingElse(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range c.repo.check() {
				got = append(got, p.path+": "+p.what)
			}
			if g, w := strings.Join(got, "\n"), strings.Join(c.want, "\n"); g != w {
				t.Errorf("got:\n%s\n\nwant:\n%s", g, w)
			}
		})
	}
}

// A rule that no archive breaks could be misspelled, and would then hold nothing.
func TestEachLayerIsBrokenBySomeArchive(t *testing.T) {
	broken := map[string]bool{}
	for _, c := range readCases(t) {
		for _, p := range c.repo.check() {
			broken[p.why] = true
		}
	}
	for _, l := range layers {
		if !broken[l.why] {
			t.Errorf("no archive breaks the rule about %v: %s", l.from, l.why)
		}
	}
}

func TestWordsOfTheWorkplaceAreFoundInAnyFile(t *testing.T) {
	root := "/wo" + "rk/"
	for text, want := range map[string]string{
		"cd " + root + "main":               root,
		`{"uri": "file://` + root + `x"}`:   root,
		root + "x":                          root,
		"~" + root + "x, ." + root + "x":    "",
		"/home/runner" + root + "x":         "",
		"$HOME" + root + "x ${D}" + root:    "",
		"the farm" + "-bench tool":          "farm" + "-bench",
		"ls .lib" + "rary/env":              ".lib" + "rary",
		"see ../sha" + "red/design":         "../sha" + "red",
		"a shared library is at work / now": "",
	} {
		problems := checkText([]file{{path: "README.md", data: []byte("# fermata\n" + text + "\n")}})
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%q: got %v", text, problems)
		case want != "" && (len(problems) != 1 || problems[0].path != "README.md:2" || !strings.Contains(problems[0].what, want)):
			t.Errorf("%q: got %v, want one about %q", text, problems, want)
		}
	}
}

func TestWithoutGitAllFilesButThoseOfToolsAreOurs(t *testing.T) {
	paths, err := walkFiles("testdata/..")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"main.go", "testdata/layers.txtar"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is missing in %v", want, paths)
		}
	}
}

// testCase is an archive that stands for a repository.
type testCase struct {
	name string
	repo repo
	want []string
}

func readCases(t *testing.T) []testCase {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	var cases []testCase
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c := testCase{name: strings.TrimSuffix(filepath.Base(name), ".txtar")}
		for _, f := range archive.Files {
			switch f.Name {
			case "want":
				c.want = lines(f.Data)
			case "imports":
				c.repo.packages = parseImports(t, f.Data)
			default:
				c.repo.files = append(c.repo.files, file{path: f.Name, data: f.Data})
			}
		}
		cases = append(cases, c)
	}
	return cases
}

func parseImports(t *testing.T, data []byte) []pkg {
	t.Helper()
	var packages []pkg
	for _, line := range lines(data) {
		who, imports, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("imports: %q has no colon", line)
		}
		path, tests := strings.CutSuffix(who, " tests")
		i := slices.IndexFunc(packages, func(p pkg) bool { return p.path == path })
		if i < 0 {
			i = len(packages)
			packages = append(packages, pkg{path: path})
		}
		if tests {
			packages[i].tests = strings.Fields(imports)
		} else {
			packages[i].imports = strings.Fields(imports)
		}
	}
	return packages
}

// lines returns the lines that are neither empty nor comments.
func lines(data []byte) []string {
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
