package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"fermata/tools/workspace"
)

// Bounds of grep.
const (
	grepLimit    = 100 // matching lines shown when the model names no limit
	grepLimitMax = 1000
	grepContext  = 20       // lines of context at most
	grepBytes    = 64 << 10 // of output
	grepLineLen  = 400      // bytes shown of one line
	grepLineKeep = 16 << 20 // bytes of one line that are searched
	grepPattern  = 8 << 10  // bytes of a pattern
	grepProgram  = 10_000   // instructions of a compiled pattern
)

//go:embed grep.md
var grepDescription string

type grepArgs struct {
	Pattern         string `json:"pattern"`
	Path            string `json:"path"`
	Glob            string `json:"glob"`
	CaseInsensitive bool   `json:"case_insensitive"`
	Context         int    `json:"context"`
	Limit           *int   `json:"limit"`
}

func grepFiles() Tool {
	return definition[grepArgs]{
		name: "grep", description: grepDescription, readOnly: true,
		schema:   `{"type":"object","properties":{"pattern":{"type":"string","description":"RE2 regular expression"},"path":{"type":"string","description":"folder or file, relative to the workspace; left out, its root"},"glob":{"type":"string","description":"only files whose name matches, e.g. *.go or src/**/*.ts"},"case_insensitive":{"type":"boolean"},"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines to show before and after each match"},"limit":{"type":"integer","minimum":1,"maximum":1000}},"required":["pattern"]}`,
		required: []string{"pattern"},
		example:  `{"pattern": "func \\w+Stop\\(", "path": "agent", "glob": "*.go", "context": 2}`,
		summary: func(a grepArgs) string {
			return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", a.Pattern, a.Path, a.Glob)), " ")
		},
		paths: func(a grepArgs) []string { return []string{orRoot(a.Path)} },
		run: func(ctx context.Context, env Env, a grepArgs) Result {
			return grep(ctx, env.Workspace, a, findRipgrep, env.mayRead)
		},
	}.tool()
}

// grep searches. The lines it shows are always found and read by this process, through the workspace: ripgrep only names
// the files worth reading, so that they are the same without it. find may be nil: no ripgrep.
func grep(ctx context.Context, w *workspace.Workspace, a grepArgs, find func(*workspace.Workspace) (string, bool), may func(path string) (why string, ok bool)) Result {
	limit := given(a.Limit, grepLimit)
	switch {
	case a.Pattern == "":
		return failf("grep: the pattern is empty; to list files use glob")
	case limit < 1 || limit > grepLimitMax:
		return failf("grep: limit is %d; it must be from 1 to %d", limit, grepLimitMax)
	case a.Context < 0 || a.Context > grepContext:
		return failf("grep: context is %d; it must be from 0 to %d", a.Context, grepContext)
	}
	p, err := readPattern(a.Pattern, a.CaseInsensitive)
	if err != nil {
		return failf("grep: %v", err)
	}
	match := func(string) bool { return true }
	if a.Glob != "" {
		if match, err = globMatcher(a.Glob); err != nil {
			return failf("grep: %v", err)
		}
	}
	st, err := w.Stat(orRoot(a.Path))
	if err != nil {
		return failf("grep: %v", err)
	}
	s := search{pattern: p, w: w, context: a.Context, limit: limit, may: may, open: map[string]bool{}}
	for _, path := range w.OpenPaths() {
		s.open[path] = true
	}
	if !st.Mode.IsDir() { // searched even when it is ignored
		r := s.run(ctx, func(_ context.Context, job func(*searchJob) error) error { return job(s.single(st.Name)) })
		if _, ok := s.mayRead(st.Name); ok && r.State == Done {
			r.Output += unsearched(w, st.Name)
		}
		return r
	}
	rg := ""
	if find != nil && p.slow() {
		rg, _ = find(w)
	}
	return s.run(ctx, func(ctx context.Context, job func(*searchJob) error) error {
		return s.walk(ctx, st.Name, match, rg, job)
	})
}

// pattern is what grep looks for.
type pattern struct {
	tree    *syntax.Regexp
	re      *regexp.Regexp
	size    int      // instructions of the compiled expression: what each byte costs at most
	needles []needle // whatever matches holds one of them; empty: nothing is known
	apart   bool     // cannot be looked for in several lines at once
}

func readPattern(text string, anyCase bool) (*pattern, error) {
	flags := "(?m)" // ^ and $ mean the line's
	if anyCase {
		flags = "(?mi)"
	}
	if len(text) > grepPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, and at most %d are allowed; search for less at a time", len(text), grepPattern)
	}
	tree, err := syntax.Parse(flags+text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern %q is no RE2 regular expression: %v", patternShown(text), errors.New(patternShown(err.Error())))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("the pattern %q cannot be compiled: %v", patternShown(text), err)
	}
	if len(prog.Inst) > grepProgram {
		return nil, fmt.Errorf("the pattern %q is too large: its repetitions make %d steps of it, and at most %d are allowed; repeat less", patternShown(text), len(prog.Inst), grepProgram)
	}
	re, err := regexp.Compile(flags + text)
	if err != nil {
		return nil, fmt.Errorf("the pattern %q cannot be compiled: %v", patternShown(text), err)
	}
	return &pattern{tree: tree, re: re, size: len(prog.Inst), needles: needlesOf(tree), apart: spansText(tree)}, nil
}

func patternShown(s string) string {
	start, cut := clip(s, 200)
	if cut {
		start += "…"
	}
	return start
}

// slow reports whether each byte has to go through the expression.
func (p *pattern) slow() bool { return len(p.needles) == 0 }

// unsearched says why nothing can be found in a file, or not all; else it is empty.
func unsearched(w *workspace.Workspace, name string) string {
	st, err := w.Stream(name)
	if err != nil {
		return ""
	}
	defer st.Close()
	text, _, err := st.Text()
	switch {
	case err == nil:
		return ""
	case text == nil:
		return fmt.Sprintf("\n(not searched: %v)", err)
	}
	return fmt.Sprintf("\n(only ASCII can be found: %v)", err)
}

// leftOut says which files were not searched because the user is to be asked before they are read.
func leftOut(r Result, left []string) Result {
	if len(left) > 0 {
		r.Output += "\n(not searched, because the user decides about reading them: " + fileNames(left) + "; name such a file as path to ask)"
	}
	return r
}

// denied says which files could not be searched.
func denied(r Result, files []string) Result {
	if len(files) > 0 {
		r.Output += "\n(not searched, because this process may not read them: " + fileNames(files) + ")"
	}
	return r
}

// leftOfLines says in which files a line was not searched to its end.
func leftOfLines(r Result, long []string) Result {
	if len(long) > 0 {
		r.Output += fmt.Sprintf("\n(not searched: what lies beyond the first %d MiB of a line, in %s)", grepLineKeep>>20, fileNames(long))
	}
	return r
}

// fileNames are the first of some files, and how many more there are.
func fileNames(files []string) string {
	const named = 10
	var names []string
	for _, f := range files[:min(len(files), named)] {
		names = append(names, workspace.Show(f))
	}
	if len(files) > named {
		names = append(names, fmt.Sprintf("and %d more", len(files)-named))
	}
	return strings.Join(names, ", ")
}
