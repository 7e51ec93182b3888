package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"fermata/tools/workspace"
)

// Bounds of glob.
const (
	globNames   = 500  // of its output
	globPattern = 1000 // bytes of a pattern
	globChoices = 256  // ways in which the braces of a pattern can be read
)

//go:embed glob.md
var globDescription string

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func globFiles() Tool {
	return definition[globArgs]{
		name: "glob", description: globDescription, readOnly: true,
		schema:   `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder to look in, relative to the workspace; left out, its root"}},"required":["pattern"]}`,
		required: []string{"pattern"},
		example:  `{"pattern": "**/*_test.go", "path": "src"}`,
		summary:  func(a globArgs) string { return strings.TrimSpace(a.Pattern + " " + a.Path) },
		paths:    func(a globArgs) []string { return []string{orRoot(a.Path)} },
		run: func(ctx context.Context, env Env, a globArgs) Result {
			match, err := globMatcher(a.Pattern)
			if err != nil {
				return failf("glob: %v", err)
			}
			names, total, err := matchingFiles(ctx, env.Workspace, orRoot(a.Path), match)
			cut, _ := errors.AsType[*workspace.CutError](err)
			if err != nil && cut == nil && ctx.Err() == nil {
				return failf("glob: %v", err)
			}
			out := showNames(names, total)
			if ctx.Err() != nil {
				return stopped(out)
			}
			return leftOfTree(done(out), cut)
		},
	}.tool()
}

// globMatcher reads a pattern; the function it returns takes a path from the folder that is looked in.
func globMatcher(pattern string) (func(name string) bool, error) {
	p := strings.TrimPrefix(pattern, "./")
	switch {
	case p == "":
		return nil, fmt.Errorf(`the pattern is empty; give one such as %q`, "**/*.go")
	case strings.HasPrefix(p, "/"):
		return nil, fmt.Errorf("the pattern %q is absolute; give one relative to the folder, and the folder as path", pattern)
	case slices.Contains(strings.Split(p, "/"), ".."):
		return nil, fmt.Errorf("the pattern %q leads out of the folder; leave out its dots", pattern)
	case !doublestar.ValidatePattern(p):
		return nil, fmt.Errorf("the pattern %q is malformed: a bracket or brace is not closed, or it ends in a backslash", pattern)
	}
	if len(p) > globPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, and at most %d are allowed; search for less at a time", len(p), globPattern)
	}
	if n := choices(p); n > globChoices {
		return nil, fmt.Errorf("the braces of the pattern stand for more than %d patterns; search for less at a time", globChoices)
	}
	for strings.Contains(p, "**/**/") {
		p = strings.ReplaceAll(p, "**/**/", "**/")
	}
	if !strings.Contains(p, "/") {
		return func(name string) bool { return doublestar.MatchUnvalidated(p, path.Base(name)) }, nil
	}
	if name, ok := strings.CutPrefix(p, "**/"); ok && !strings.ContainsAny(name, "/{") {
		return func(path string) bool {
			return doublestar.MatchUnvalidated(name, path[strings.LastIndexByte(path, '/')+1:])
		}, nil
	}
	return func(name string) bool { return doublestar.MatchUnvalidated(p, name) }, nil
}

// choices is how many patterns without braces a pattern stands for, or a number above globChoices. The matcher tries them one by
// one, so that a short pattern could keep it busy for years.
func choices(p string) int {
	n := []int{1}   // of the alternatives that are open, each as far as it was read
	sum := []int{0} // of the finished alternatives of the same braces
	for i := 0; i < len(p); i++ {
		top := len(n) - 1
		switch p[i] {
		case '\\':
			i++
		case '[': // braces in a class are characters
			for i++; i < len(p) && p[i] != ']'; i++ {
				if p[i] == '\\' {
					i++
				}
			}
		case '{':
			n, sum = append(n, 1), append(sum, 0)
		case ',':
			if top > 0 {
				sum[top] += n[top]
				n[top] = 1
			}
		case '}':
			if top > 0 {
				all := sum[top] + n[top]
				n, sum = n[:top], sum[:top]
				n[top-1] = min(n[top-1]*all, globChoices+1)
			}
		}
	}
	return n[0]
}

// matchingFiles are the first files under dir that match, by path from the root, and how many there are.
func matchingFiles(ctx context.Context, w *workspace.Workspace, dir string, match func(string) bool) (names []string, total int, err error) {
	st, err := w.Stat(dir)
	if err != nil {
		return nil, 0, err
	}
	err = w.WalkFiles(ctx, dir, func(name string) error {
		if match(below(st.Name, name)) {
			if total++; total <= globNames {
				names = append(names, name)
			}
		}
		return nil
	})
	slices.Sort(names) // documents that are not on disk come last in a walk
	return names, total, err
}

// below is a path from the root as one from dir, which it lies in.
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// leftOfTree says what was not walked; nil is nothing.
func leftOfTree(r Result, cut *workspace.CutError) Result {
	if cut != nil {
		r.Output += "\n(" + cut.Error() + ")"
	}
	return r
}

func showNames(names []string, total int) string {
	if total == 0 {
		return "(no file matches)"
	}
	var b strings.Builder
	for _, n := range names {
		b.WriteString(workspace.Show(n) + "\n")
	}
	if total > len(names) {
		fmt.Fprintf(&b, "(%d of %d files; narrow the pattern to see others)\n", len(names), total)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
