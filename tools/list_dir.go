package tools

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"

	"fermata/tools/workspace"
)

const listNames = 500 // bound of list_dir's output

//go:embed list_dir.md
var listDirDescription string

type listDirArgs struct {
	Path string `json:"path"`
}

func listDir() Tool {
	return definition[listDirArgs]{
		name: "list_dir", description: listDirDescription, readOnly: true,
		schema:  `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace; left out, its root"}}}`,
		example: `{"path": "src"}`,
		summary: func(a listDirArgs) string { return orRoot(a.Path) },
		paths:   func(a listDirArgs) []string { return []string{orRoot(a.Path)} },
		run: func(ctx context.Context, env Env, a listDirArgs) Result {
			list, total, err := env.Workspace.ReadDir(ctx, orRoot(a.Path), listNames)
			switch {
			case ctx.Err() != nil:
				return stopped("")
			case err != nil:
				return failf("list_dir: %v", err)
			}
			return done(showEntries(list, total))
		},
	}.tool()
}

func orRoot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// showEntries shows the first of so many names.
func showEntries(list []workspace.Entry, total int) string {
	if len(list) == 0 {
		return "(the folder is empty)"
	}
	var names []string
	for _, e := range list {
		name := workspace.Show(e.Name)
		switch m := e.Mode; {
		case m.IsDir():
			name += "/"
		case m&fs.ModeSymlink != 0:
			name += " (link)"
		case !m.IsRegular():
			name += " (special file)"
		}
		names = append(names, name)
	}
	if total > len(list) {
		names = append(names, fmt.Sprintf("(%d of %d names; use glob to find others)", len(list), total))
	}
	return strings.Join(names, "\n")
}
