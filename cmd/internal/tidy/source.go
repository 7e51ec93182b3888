package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// source is a parsed Go file.
type source struct {
	path   string
	test   bool
	fset   *token.FileSet
	syntax *ast.File
}

// checkSource reports what is wrong in Go files. Those that the go command ignores, as under testdata, are left alone.
func checkSource(files []file) []problem {
	var problems []problem
	folders := map[string][]source{}
	for _, f := range files {
		if path.Ext(f.path) != ".go" || ignored(f.path) {
			continue
		}
		s := source{path: f.path, test: strings.HasSuffix(f.path, "_test.go"), fset: token.NewFileSet()}
		var err error
		s.syntax, err = parser.ParseFile(s.fset, f.path, f.data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, problem{f.path, "cannot be parsed: " + err.Error(), "the other checks need it"})
			continue
		}
		folder := path.Dir(s.path)
		folders[folder] = append(folders[folder], s)
		if s.test {
			problems = append(problems, checkTest(s)...)
		}
	}
	for folder, sources := range folders {
		problems = append(problems, checkPackageComment(folder, sources)...)
	}
	return byPath(problems)
}

// ignored reports whether the go command ignores a file for its name or that of a folder above it.
func ignored(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "testdata" || strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_")
	})
}

// checkPackageComment reports a folder whose package has no comment, or several. A comment above the package clause of a
// test is about that test, unless the folder has only tests.
func checkPackageComment(folder string, sources []source) []problem {
	testsOnly := !slices.ContainsFunc(sources, func(s source) bool { return !s.test })
	var commented []string
	for _, s := range sources {
		if s.test == testsOnly && !s.constrained("ignore") && strings.TrimSpace(s.syntax.Doc.Text()) != "" {
			commented = append(commented, path.Base(s.path))
		}
	}
	const why = "one comment, in one place, says what the package promises and what it does not know"
	switch len(commented) {
	case 1:
		return nil
	case 0:
		return []problem{{folder, "has no package comment", why}}
	default:
		return []problem{{folder, "has package comments in " + strings.Join(commented, ", "), why}}
	}
}

// constrained reports whether s has a build constraint that is just tag, or any one if tag is empty.
func (s source) constrained(tag string) bool {
	for _, group := range s.syntax.Comments {
		if group.Pos() > s.syntax.Package {
			break
		}
		for _, comment := range group.List {
			if !constraint.IsGoBuild(comment.Text) {
				continue
			}
			if expr, err := constraint.Parse(comment.Text); err == nil && (tag == "" || expr.String() == tag) {
				return true
			}
		}
	}
	return false
}

// skipOK is the comment that excuses a test which skips itself.
var skipOK = regexp.MustCompile(`^//\s*skip-ok: \S`)

// checkTest reports where a test sleeps, or skips itself without saying why that is right.
func checkTest(s source) []problem {
	excused := map[int]bool{} // by line: those with the comment, and the one below it
	for _, group := range s.syntax.Comments {
		if slices.ContainsFunc(group.List, func(c *ast.Comment) bool { return skipOK.MatchString(c.Text) }) {
			for line := s.line(group.Pos()); line <= s.line(group.End())+1; line++ {
				excused[line] = true
			}
		}
	}
	var problems []problem
	report := func(at ast.Node, what, why string) {
		problems = append(problems, problem{fmt.Sprintf("%s:%d", s.path, s.line(at.Pos())), what, why})
	}
	for node := range ast.Preorder(s.syntax) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		switch owner, name := nameOf(selector.X), selector.Sel.Name; {
		case owner == "time" && name == "Sleep":
			report(node, "time.Sleep in a test",
				"a sleep is too short on a slow machine and too long on a fast one; wait for what should happen, "+
					"and in a synctest bubble receive from time.After")
		case slices.Contains(testVariables, owner) && slices.Contains(skips, name) && !excused[s.line(node.Pos())]:
			report(node, owner+"."+name+" without a comment // skip-ok: reason",
				"a skipped test looks like one that passed, so each skip says why it must be")
		}
	}
	return problems
}

var (
	testVariables = []string{"t", "b", "f", "tb"}
	skips         = []string{"Skip", "Skipf", "SkipNow"}
)

func (s source) line(at token.Pos) int { return s.fset.Position(at).Line }

// nameOf returns the last name of an expression like t or s.t, else "".
func nameOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
