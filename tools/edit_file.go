package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"fermata/tools/workspace"
)

//go:embed edit_file.md
var editFileDescription string

type editFileArgs struct {
	Path       string `json:"path"`
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all"`
}

func editFile() Tool {
	return definition[editFileArgs]{
		name: "edit_file", description: editFileDescription,
		schema:   `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"old":{"type":"string","description":"text to replace, exact"},"new":{"type":"string","description":"text to put there"},"replace_all":{"type":"boolean","description":"replace every occurrence"}},"required":["path","old","new"]}`,
		required: []string{"path", "old", "new"},
		example:  `{"path": "src/main.go", "old": "retries := 3", "new": "retries := 5"}`,
		summary:  func(a editFileArgs) string { return a.Path },
		paths:    func(a editFileArgs) []string { return []string{a.Path} },
		run: func(ctx context.Context, env Env, a editFileArgs) Result {
			f, err := env.Workspace.Read(a.Path)
			if err != nil {
				return failf("edit_file: %v", err)
			}
			if bad, ok := current(ctx, env, "edit_file", f); !ok {
				return bad
			}
			after, err := edit(f, a)
			if err != nil {
				return failf("edit_file: %v", err)
			}
			return change(ctx, env, "edit_file", f, after)
		},
	}.tool()
}

// mark is a byte order mark.
const mark = "\uFEFF"

// edit makes the replacement in a file. Its errors are for the model and say where to look.
func edit(f workspace.File, a editFileArgs) ([]byte, error) {
	text, form, err := f.Text()
	if err != nil {
		return nil, err
	}
	old, new := a.Old, a.New
	if rest, marked := strings.CutPrefix(old, mark); marked { // the mark is no part of the text, nor of what takes its place
		old, new = rest, strings.TrimPrefix(new, mark)
	}
	after, err := replace(text, old, new, a.ReplaceAll)
	if err == nil {
		if form.BOM && !strings.HasPrefix(text, mark) { // the file has one already
			after = strings.TrimPrefix(after, mark)
		}
		var b []byte
		if b, err = form.Bytes(after); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", workspace.Show(f.Path), err)
}

// replace puts new in the place of old, once or everywhere. Line endings are the file's, see lined.replace: old may be given
// with any. Only where the file has plain newlines, or old names a CR LF that is there, is each CR LF of new taken as meant.
func replace(text, old, new string, everywhere bool) (string, error) {
	switch {
	case old == "" && text == "":
		return "", errors.New("the file is empty; use write_file for the whole content")
	case old == "":
		return "", errors.New("old is empty; give the text to replace, or use write_file for the whole content")
	case old == new:
		return "", errors.New("old and new are the same; nothing was changed")
	}
	l := newLined(text)
	exact := !allCRLF(text) && strings.Contains(old+new, "\r\n") && strings.Contains(text, old) &&
		(len(l.crlf) == 0 || strings.Contains(old, "\r\n"))
	if exact {
		l = lined{original: text, text: text}
	} else {
		old, new = toLF(old), toLF(new)
		if old == new {
			return "", errors.New("old and new differ only in line endings, which edit_file keeps; nothing was changed")
		}
	}
	at := places(l.text, old, everywhere)
	switch {
	case len(at) == 0:
		return "", fmt.Errorf("old is not in the file. %s", mismatch(l.text, old))
	case len(at) > 1 && !everywhere:
		return "", fmt.Errorf("old is in the file %d times, at lines %s; give more of the text around the one you mean, or set replace_all",
			len(at), lineList(linesAt(l.text, at)))
	}
	var out strings.Builder
	done := 0
	for _, i := range at {
		out.WriteString(l.original[done:l.at(i)])
		out.WriteString(l.replace(i, i+len(old), new))
		done = l.at(i + len(old))
	}
	out.WriteString(l.original[done:])
	if out.String() == text {
		return "", errors.New("with new in the place of old the file is the same; nothing was changed")
	}
	return out.String(), nil
}

// places are the offsets at which old is in text, ascending. They overlap only when they are not all to be replaced.
func places(text, old string, everywhere bool) (at []int) {
	step := 1
	if everywhere {
		step = len(old)
	}
	for i := 0; ; {
		n := strings.Index(text[i:], old)
		if n < 0 || !everywhere && len(at) == placesCounted {
			return at
		}
		at = append(at, i+n)
		i += n + step
	}
}

const placesCounted = 10_000 // places that are counted when there should be one

// linesAt are the numbers of the lines at ascending offsets, each once.
func linesAt(text string, at []int) (lines []int) {
	n, from := 1, 0
	for _, i := range at {
		n += strings.Count(text[from:i], "\n")
		from = i
		if len(lines) == 0 || lines[len(lines)-1] != n {
			lines = append(lines, n)
		}
	}
	return lines
}

const linesNamed = 10 // lines that an error points to at most

// lineList is "3, 17, 40".
func lineList(at []int) string {
	var b strings.Builder
	for i, n := range at {
		if i == linesNamed {
			return b.String() + ", …"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
