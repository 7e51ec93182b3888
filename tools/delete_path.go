package tools

import (
	"context"
	_ "embed"
	"fmt"

	"fermata/tools/workspace"
)

//go:embed delete_path.md
var deletePathDescription string

type deletePathArgs struct {
	Path string `json:"path"`
}

func deletePath() Tool {
	return definition[deletePathArgs]{
		name: "delete_path", description: deletePathDescription,
		schema:   `{"type":"object","properties":{"path":{"type":"string","description":"file, link or folder, relative to the workspace"}},"required":["path"]}`,
		required: []string{"path"},
		example:  `{"path": "src/old.go"}`,
		summary:  func(a deletePathArgs) string { return workspace.Show(a.Path) },
		reach: func(w *workspace.Workspace, a deletePathArgs) ([]string, error) {
			t, err := treeOf(w, a.Path)
			return t.all(), err
		},
		run: func(ctx context.Context, env Env, a deletePathArgs) Result {
			t, err := treeOf(env.Workspace, a.Path)
			if err != nil {
				return failf("delete_path: %v", err)
			}
			files, bad, ok := t.read(ctx, env, "delete_path")
			if !ok {
				return bad
			}
			if err := env.Workspace.CheckClosed(t.path); err != nil {
				return failf("delete_path: nothing was changed: %v", err)
			}
			var steps []step
			for _, f := range files {
				steps = append(steps, removeStep(env.Workspace, f))
			}
			if bad, made := changeAll(ctx, env, "delete_path", steps); !made {
				return bad
			}
			return t.deleted(env.Workspace, files)
		},
	}.tool()
}

// deleted deletes the folders, which are empty now, and says what was done.
func (t tree) deleted(w *workspace.Workspace, files []workspace.File) Result {
	name := workspace.Show(t.path)
	if t.dirs == nil {
		return done(fmt.Sprintf("deleted %s (%s)", name, plural(len(files[0].Content), "byte")))
	}
	said := fmt.Sprintf("deleted %s, a folder with %s", name, plural(len(files), "file"))
	if err := w.RemoveFolders(t.dirs); err != nil {
		said += fmt.Sprintf("; its files are deleted, but the folder is still there: %v", err)
	}
	return done(said)
}
