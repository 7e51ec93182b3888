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
		run: func(_ context.Context, env Env, a listDirArgs) Result {
			list, err := env.Workspace.ReadDir(orRoot(a.Path))
			if err != nil {
				return failf("list_dir: %v", err)
			}
			return done(showEntries(list))
		},
	}.tool()
}

func orRoot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func showEntries(list []workspace.Entry) string {
	var folders, files []string
	for _, e := range list {
		name := workspace.Show(e.Name)
		switch m := e.Mode; {
		case m.IsDir():
			folders = append(folders, name+"/")
		case m&fs.ModeSymlink != 0:
			files = append(files, name+" (link)")
		case !m.IsRegular():
			files = append(files, name+" (special file)")
		default:
			files = append(files, name)
		}
	}
	names := append(folders, files...)
	if len(names) == 0 {
		return "(the folder is empty)"
	}
	note := ""
	if n := len(names); n > listNames {
		names = names[:listNames]
		note = fmt.Sprintf("\n(%d of %d names; use glob to find others)", listNames, n)
	}
	return strings.Join(names, "\n") + note
}
