package tools

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

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
		paths:    func(a writeFileArgs) []string { return []string{a.Path} },
		run: func(ctx context.Context, env Env, a writeFileArgs) Result {
			old, err := env.Workspace.ReadOrNew(a.Path)
			if err != nil {
				return failf("write_file: %v", err)
			}
			after := []byte(a.Content)
			if old.Exists() {
				if after, err = likeBefore(old, a.Content); err != nil {
					return failf("write_file: %v", err)
				}
				if bytes.Equal(old.Content, after) {
					return done(workspace.Show(old.Path) + " has this content already; nothing was changed")
				}
			}
			if bad, ok := haveRead(ctx, env, "write_file", old); !ok {
				return bad
			}
			return change(ctx, env, "write_file", old, after)
		},
	}.tool()
}

// likeBefore is a file's new content in the form of the old: its encoding and byte order mark, and its line endings where
// the new text has plain newlines. A text asks otherwise by beginning with a byte order mark, or by having CR LF in it; but a
// file that has nothing else keeps its CR LF. A file that is no text is an error, and so is a text that cannot be put in its
// encoding.
func likeBefore(old workspace.File, content string) ([]byte, error) {
	before, form, err := old.Text()
	if err != nil {
		return nil, fmt.Errorf("%w; write_file replaces only text", err)
	}
	after, marked := strings.CutPrefix(content, "\uFEFF")
	form.BOM = form.BOM || marked
	if l := newLined(before); len(l.crlf) > 0 && (allCRLF(before) || !strings.Contains(after, "\r\n")) {
		after = l.replace(0, len(l.text), toLF(after))
	}
	b, err := form.Bytes(after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", workspace.Show(old.Path), err)
	}
	return b, nil
}
