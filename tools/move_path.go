package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"fermata/tools/workspace"
)

//go:embed move_path.md
var movePathDescription string

type movePathArgs struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func movePath() Tool {
	return definition[movePathArgs]{
		name: "move_path", description: movePathDescription,
		schema:   `{"type":"object","properties":{"from":{"type":"string","description":"file, link or folder, relative to the workspace"},"to":{"type":"string","description":"its new path, whole, relative to the workspace"}},"required":["from","to"]}`,
		required: []string{"from", "to"},
		example:  `{"from": "src/util.go", "to": "src/text/lines.go"}`,
		summary:  func(a movePathArgs) string { return workspace.Show(a.From) + " → " + workspace.Show(a.To) },
		reach: func(w *workspace.Workspace, a movePathArgs) ([]string, error) {
			t, to, err := movedTo(w, a)
			if err != nil {
				return nil, err
			}
			paths := t.all()
			for _, name := range t.all() {
				paths = append(paths, to+strings.TrimPrefix(name, t.path))
			}
			return paths, nil
		},
		run: func(ctx context.Context, env Env, a movePathArgs) Result {
			t, to, err := movedTo(env.Workspace, a)
			if err != nil {
				return failf("move_path: %v", err)
			}
			files, bad, ok := t.read(ctx, env, "move_path")
			if !ok {
				return bad
			}
			if bad, made := changeAll(ctx, env, "move_path", []step{moveStep(env.Workspace, t.path, to, files)}); !made {
				return bad
			}
			what := ""
			if t.dirs != nil {
				what = fmt.Sprintf(" (a folder with %s)", plural(len(files), "file"))
			}
			return done(fmt.Sprintf("moved %s to %s%s", workspace.Show(t.path), workspace.Show(to), what))
		},
	}.tool()
}

// movedTo is what is to be moved, and where to. A name that ends in a slash is still the new name itself.
func movedTo(w *workspace.Workspace, a movePathArgs) (t tree, to string, err error) {
	if t, err = treeOf(w, a.From); err != nil {
		return t, "", err
	}
	to, err = w.ResolveName(a.To)
	return t, to, err
}
