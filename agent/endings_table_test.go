package agent

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ending is a row of the table of endings in doc.go.
type ending struct {
	name   string
	rules  []string
	fields map[string]string // shown, stored, next, tests
}

var endingHead = regexp.MustCompile(`^(.+) \[([A-Z0-9 ]+)\]$`)

// parseEndings reads the section "Every ending" of a package comment.
func parseEndings(doc string) (rows []ending, err error) {
	_, table, found := strings.Cut(doc, "\n# Every ending\n")
	if !found {
		return nil, fmt.Errorf("there is no section %q", "Every ending")
	}
	table, _, _ = strings.Cut(table, "\n# ")
	field := ""
	for line := range strings.SplitSeq(table, "\n") {
		switch head := endingHead.FindStringSubmatch(line); {
		case head != nil:
			rows, field = append(rows, ending{head[1], strings.Fields(head[2]), map[string]string{}}), ""
		case strings.HasPrefix(line, "  - "):
			name, text, ok := strings.Cut(strings.TrimPrefix(line, "  - "), ": ")
			if !ok || len(rows) == 0 {
				return nil, fmt.Errorf("a field without a name: %q", line)
			}
			field = name
			rows[len(rows)-1].fields[field] = text
		case strings.HasPrefix(line, "    ") && field != "":
			rows[len(rows)-1].fields[field] += " " + strings.TrimSpace(line)
		}
	}
	return rows, nil
}

// knownTest is a test of this repository: the rules it says it guards, and the names of its cases.
type knownTest struct {
	guards map[string]bool
	cases  map[string]bool
}

var ruleID = regexp.MustCompile(`\b[PSDFCKTMX][0-9]+\b`)

// testsOf finds every test below a folder.
func testsOf(root string) (map[string]knownTest, error) {
	found := map[string]knownTest{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			k := knownTest{guards: map[string]bool{}, cases: map[string]bool{}}
			_, guards, _ := strings.Cut(f.Doc.Text(), "guards ")
			for _, id := range ruleID.FindAllString(guards, -1) {
				k.guards[id] = true
			}
			for node := range ast.Preorder(f) {
				if kv, ok := node.(*ast.KeyValueExpr); ok {
					if lit, ok := kv.Key.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						if name, err := strconv.Unquote(lit.Value); err == nil {
							k.cases[name] = true
						}
					}
				}
			}
			found[f.Name.Name] = k
		}
		return nil
	})
	return found, err
}

// rules are all of semantics.md's, by their letter and how many there are.
func rules() map[string]bool {
	all := map[string]bool{}
	for letter, n := range map[string]int{"P": 5, "S": 14, "D": 6, "F": 5, "C": 6, "K": 7, "T": 3, "M": 8, "X": 4} {
		for i := range n {
			all[letter+strconv.Itoa(i+1)] = true
		}
	}
	return all
}

const (
	stopCases = "TestWhatTheClientWasShownIsWhatTheModelSeesNext" // plays the files of testdata/stop
	everyEnd  = "TestEveryEndingEndsTheTurnOnce"
)

// The table in this package's comment is what a reader goes by: each row has its four fields, its rules exist, its tests
// exist, and together they say that they guard these rules. Each case of an ending has its row.
func TestTheTableOfEndingsNamesRulesAndTestsThatBelongTogether(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseEndings(file.Doc.Text())
	if err != nil || len(rows) < 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	tests, err := testsOf("..")
	if err != nil {
		t.Fatal(err)
	}
	known, named, names := rules(), map[string]bool{}, map[string]bool{}
	folder := filepath.Join("..", "cmd", "fermata", "testdata", "stop")
	for _, row := range rows {
		if names[row.name] {
			t.Errorf("%s: there are two such rows", row.name)
		}
		names[row.name] = true
		if got := slices.Sorted(maps.Keys(row.fields)); !slices.Equal(got, []string{"next", "shown", "stored", "tests"}) {
			t.Errorf("%s: its fields are %v", row.name, got)
		}
		guarded := map[string]bool{}
		for name := range strings.SplitSeq(row.fields["tests"], "; ") {
			named[name] = true
			function, sub, _ := strings.Cut(name, "/")
			if strings.HasSuffix(name, ".txtar") {
				if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
					t.Errorf("%s: %v", row.name, err)
				}
				function, sub = stopCases, ""
			}
			test, ok := tests[function]
			if !ok || sub != "" && !test.cases[sub] {
				t.Errorf("%s: there is no test %s", row.name, name)
			}
			maps.Copy(guarded, test.guards)
		}
		for _, rule := range row.rules {
			if !known[rule] {
				t.Errorf("%s: there is no rule %s", row.name, rule)
			}
			if !guarded[rule] {
				t.Errorf("%s: none of its tests says that it guards %s", row.name, rule)
			}
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !named[f.Name()] {
			t.Errorf("%s is in no row: name it in one, in doc.go", f.Name())
		}
	}
	for name := range tests[everyEnd].cases {
		if full := everyEnd + "/" + name; !named[full] {
			t.Errorf("%s is in no row: name it in one, in doc.go", full)
		}
	}
}
