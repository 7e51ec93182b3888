package tools

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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
	grepBatch    = 64       // files searched side by side between two looks at the limit
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
// the files worth reading, so that the result is the same without it. find may be nil: no ripgrep.
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
	flags := "(?m)" // ^ and $ mean the line's
	if a.CaseInsensitive {
		flags = "(?mi)"
	}
	tree, err := syntax.Parse(flags+a.Pattern, syntax.Perl)
	if err != nil {
		return failf("grep: the pattern %q is no RE2 regular expression: %v", a.Pattern, err)
	}
	re, err := regexp.Compile(flags + a.Pattern)
	if err != nil {
		return failf("grep: the pattern %q cannot be compiled: %v", a.Pattern, err)
	}
	files, err := grepCandidates(ctx, w, a)
	if err != nil && ctx.Err() == nil {
		return failf("grep: %v", err)
	}
	files, left := readable(files, may)
	if find != nil && len(files) > grepBatch {
		if rg, ok := find(w); ok {
			files = filterFiles(ctx, w, rg, tree, files)
		}
	}
	s := search{re: re, literal: requiredLiteral(tree), context: a.Context, limit: limit, may: may}
	r := s.run(ctx, w, files)
	if len(files) == 1 && r.State == Done {
		r.Output += unsearched(w, files[0])
	}
	return leftOut(r, left)
}

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

// readable splits off the files that may not be read without asking, nil means that all may be.
func readable(files []string, may func(path string) (why string, ok bool)) (readable, left []string) {
	if may == nil {
		return files, nil
	}
	for _, f := range files {
		if _, ok := may(f); ok {
			readable = append(readable, f)
		} else {
			left = append(left, f)
		}
	}
	return readable, left
}

// leftOut says which files were not searched because the user is to be asked before they are read.
func leftOut(r Result, left []string) Result {
	const named = 10
	if len(left) == 0 {
		return r
	}
	var names []string
	for _, f := range left[:min(len(left), named)] {
		names = append(names, workspace.Show(f))
	}
	if len(left) > named {
		names = append(names, fmt.Sprintf("and %d more", len(left)-named))
	}
	r.Output += "\n(not searched, because the user decides about reading them: " + strings.Join(names, ", ") + "; name such a file as path to ask)"
	return r
}

// grepCandidates are the files to search, sorted. A file that is named itself is searched even when it is ignored.
func grepCandidates(ctx context.Context, w *workspace.Workspace, a grepArgs) ([]string, error) {
	match := func(string) bool { return true }
	if a.Glob != "" {
		m, err := globMatcher(a.Glob)
		if err != nil {
			return nil, err
		}
		match = m
	}
	st, err := w.Stat(orRoot(a.Path))
	switch {
	case err != nil:
		return nil, err
	case !st.Mode.IsDir():
		return []string{st.Name}, nil
	}
	return matchingFiles(ctx, w, st.Name, match)
}

// search is one grep over files.
type search struct {
	re      *regexp.Regexp
	literal []byte // each matching line holds it; empty when none is known
	context int
	limit   int
	may     func(path string) (why string, ok bool) // nil: any file may be read
}

func (s *search) run(ctx context.Context, w *workspace.Workspace, files []string) Result {
	var out strings.Builder
	matches, cut := 0, false
	for len(files) > 0 && matches < s.limit && !cut && ctx.Err() == nil {
		n := min(grepBatch, len(files))
		for _, f := range s.batch(ctx, w, files[:n], s.limit-matches) {
			for _, g := range f {
				full := matches >= s.limit && (g.match || g.apart) // only the context of the last match still goes in
				if full || out.Len()+len(g.text) > grepBytes {
					cut = true
					break
				}
				if s.context > 0 && out.Len() > 0 && g.apart {
					out.WriteString("--\n")
				}
				out.WriteString(g.text)
				if g.match {
					matches++
				}
			}
		}
		files = files[n:]
	}
	switch {
	case ctx.Err() != nil:
		return stopped(out.String())
	case out.Len() == 0 && !cut:
		return done("(no line matches)")
	case cut || matches >= s.limit:
		fmt.Fprintf(&out, "(stopped after %s; there may be more: narrow the pattern, the path or the glob)\n", plural(matches, "match"))
	}
	return done(strings.TrimSuffix(out.String(), "\n"))
}

// batch searches files side by side and returns what was found in each, in order.
func (s *search) batch(ctx context.Context, w *workspace.Workspace, files []string, limit int) [][]found {
	out := make([][]found, len(files))
	next := make(chan int, len(files))
	for i := range files {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() { // ends with the batch
			for i := range next {
				out[i] = s.file(ctx, w, files[i], limit)
			}
		})
	}
	wg.Wait()
	return out
}

// found is one line of output.
type found struct {
	text  string // with its newline
	match bool   // else context
	apart bool   // does not follow the line before it in the file
}

// file finds at most limit matching lines in one file. A file that is gone, cannot be read or is binary has none; a NUL
// byte further down ends the search there.
func (s *search) file(ctx context.Context, w *workspace.Workspace, name string, limit int) (out []found) {
	st, err := w.Stream(name)
	if err != nil {
		return nil
	}
	defer st.Close()
	if st.Path != name && s.may != nil { // a link has changed since it was found
		if _, ok := s.may(st.Path); !ok {
			return nil
		}
	}
	text, _, _ := st.Text()
	if text == nil { // binary; an encoding that is not known is searched as it is
		return nil
	}
	lines := newLineReader(text, grepLineKeep)
	show := workspace.Show(name)
	var before []found               // lines that are context if a match follows
	matches, after, last := 0, 0, -1 // last is the number of the last line in out
	for n := 1; matches < limit || after > 0; n++ {
		ln, err := lines.next(ctx)
		if err != nil || bytes.IndexByte(ln.text, 0) >= 0 {
			return out
		}
		switch at, hit := s.match(ln.text); {
		case hit && matches < limit:
			for i, b := range before {
				b.apart = i == 0 && n-len(before) != last+1
				out = append(out, b)
			}
			out = append(out, found{grepLine(show, ':', n, ln, at), true, len(before) == 0 && n != last+1})
			before, last, after = before[:0], n, s.context
			matches++
		case after > 0:
			out = append(out, found{grepLine(show, '-', n, ln, 0), false, false})
			last = n
			after--
		case s.context > 0:
			if len(before) == s.context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, found{text: grepLine(show, '-', n, ln, 0)})
		}
	}
	return out
}

// match finds where in a line the expression first matches.
func (s *search) match(text []byte) (at int, ok bool) {
	if !bytes.Contains(text, s.literal) {
		return 0, false
	}
	if len(text) <= grepLineLen {
		return 0, s.re.Match(text)
	}
	loc := s.re.FindIndex(text)
	if loc == nil {
		return 0, false
	}
	return loc[0], true
}

// grepLine is one line of output. Of a long line it shows the part around at.
func grepLine(name string, sep rune, n int, ln line, at int) string {
	text := ln.text
	from := 0
	if at > grepLineLen/2 {
		from = at - grepLineLen/4
		text = text[from:]
	}
	cut := len(text) > grepLineLen
	if cut {
		text = text[:grepLineLen]
	}
	show := strings.ToValidUTF8(string(text), "\uFFFD")
	if from > 0 {
		show = "…" + strings.TrimLeft(show, "\uFFFD")
	}
	if cut || from > 0 {
		show = strings.TrimRight(show, "\uFFFD") + fmt.Sprintf("… (a line of %d bytes)", ln.size)
	}
	return fmt.Sprintf("%s%c%d%c%s\n", name, sep, n, sep, show)
}

// requiredLiteral is the longest text that is known to be in whatever e matches; empty when there is none.
func requiredLiteral(e *syntax.Regexp) (best []byte) {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase == 0 && !slices.Contains(e.Rune, utf8.RuneError) { // which matches any bad byte
			return []byte(string(e.Rune))
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiteral(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return requiredLiteral(e.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			if l := requiredLiteral(sub); len(l) > len(best) {
				best = l
			}
		}
	}
	return best
}
