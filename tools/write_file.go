package tools

import (
	"bytes"
	"context"
	_ "embed"

	"fermata/tools/workspace"
)

//go:embed write_file.md
var writeFileDescription string

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFile() Tool {
	return definition[writeFileArgs]{
		name: "write_file", description: writeFileDescription,
		schema:   `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"content":{"type":"string","description":"the whole new content"}},"required":["path","content"]}`,
		required: []string{"path", "content"},
		example:  `{"path": "notes/todo.md", "content": "# Todo\n"}`,
		summary:  func(a writeFileArgs) string { return a.Path },
		target:   func(a writeFileArgs) (string, string) { return "", a.Path },
		run: func(ctx context.Context, env Env, a writeFileArgs) Result {
			old, err := env.Workspace.ReadOrNew(a.Path)
			if err != nil {
				return failf("write_file: %v", err)
			}
			after := []byte(a.Content)
			if old.Exists() {
				after = likeBefore(old.Content, after)
				if bytes.Equal(old.Content, after) {
					return done(workspace.Show(old.Path) + " has this content already; nothing was changed")
				}
			}
			return change(ctx, env, "write_file", old, after)
		},
	}.tool()
}

// likeBefore gives new content the byte order mark and the line endings of the old.
func likeBefore(before, after []byte) []byte {
	mark, before := workspace.CutBOM(before)
	_, after = workspace.CutBOM(after)
	if allCRLF(before) {
		after = toCRLF(after)
	}
	return append(bytes.Clone(mark), after...)
}

// allCRLF reports whether text has line endings and all of them are CR LF.
func allCRLF(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

func toCRLF(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}
