package tools

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"fermata/tools/workspace"
)

const globNames = 500 // bound of glob's output

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
			names, err := matchingFiles(ctx, env.Workspace, orRoot(a.Path), match)
			if err != nil && ctx.Err() == nil {
				return failf("glob: %v", err)
			}
			out := showNames(names)
			if ctx.Err() != nil {
				return stopped(out)
			}
			return done(out)
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
	if !strings.Contains(p, "/") {
		return func(name string) bool { return doublestar.MatchUnvalidated(p, path.Base(name)) }, nil
	}
	return func(name string) bool { return doublestar.MatchUnvalidated(p, name) }, nil
}

// matchingFiles are the files under dir that match, sorted, as paths from the root.
func matchingFiles(ctx context.Context, w *workspace.Workspace, dir string, match func(string) bool) ([]string, error) {
	st, err := w.Stat(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	err = w.WalkFiles(ctx, dir, func(name string) error {
		rel := name
		if st.Name != "." {
			rel = strings.TrimPrefix(name, st.Name+"/")
		}
		if match(rel) {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func showNames(names []string) string {
	if len(names) == 0 {
		return "(no file matches)"
	}
	var b strings.Builder
	for _, n := range names[:min(len(names), globNames)] {
		b.WriteString(workspace.Show(n) + "\n")
	}
	if len(names) > globNames {
		fmt.Fprintf(&b, "(%d of %d files; narrow the pattern to see others)\n", globNames, len(names))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
