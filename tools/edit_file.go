package tools

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

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
		target:   func(a editFileArgs) (string, string) { return "", a.Path },
		run: func(ctx context.Context, env Env, a editFileArgs) Result {
			f, err := env.Workspace.Read(a.Path)
			if err != nil {
				return failf("edit_file: %v", err)
			}
			after, err := edit(f.Content, a)
			if err != nil {
				return failf("edit_file: %s: %v", workspace.Show(f.Path), err)
			}
			return change(ctx, env, "edit_file", f, after)
		},
	}.tool()
}

// edit makes the replacement in a file's content. Its errors are for the model and say where to look.
func edit(content []byte, a editFileArgs) ([]byte, error) {
	mark, text := workspace.CutBOM(content)
	old, new := strings.TrimPrefix(a.Old, "\uFEFF"), a.New
	switch {
	case old == "":
		return nil, fmt.Errorf("old is empty; give the text to replace, or use write_file for the whole content")
	case old == new:
		return nil, fmt.Errorf("old and new are the same; nothing was changed")
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("it is binary or not UTF-8, and cannot be edited")
	}
	s := string(text)
	if allCRLF(text) || !strings.Contains(s, old) && strings.Contains(s, string(toCRLF([]byte(old)))) {
		old, new = string(toCRLF([]byte(old))), string(toCRLF([]byte(new)))
	}
	switch n := strings.Count(s, old); {
	case n == 0:
		return nil, fmt.Errorf("old is not in the file.%s", nearMisses(s, a.Old))
	case n > 1 && !a.ReplaceAll:
		return nil, fmt.Errorf("old is in the file %d times, at lines %s; give more of the text around the one you mean, or set replace_all", n, occurrences(s, old))
	}
	return append(bytes.Clone(mark), strings.ReplaceAll(s, old, new)...), nil
}

const linesNamed = 10 // lines that an error points to at most

// occurrences are the lines at which old begins: "3, 17, 40".
func occurrences(s, old string) string {
	var at []int
	n := 1
	for {
		before, after, ok := strings.Cut(s, old)
		if !ok {
			return lineList(at)
		}
		n += strings.Count(before, "\n")
		at = append(at, n)
		n += strings.Count(old, "\n")
		s = after
	}
}

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

var lineNumbers = regexp.MustCompile(`^\d+\t`)

// nearMisses says what in s may have been meant by old, which is not in it.
func nearMisses(s, old string) string {
	if lineNumbers.MatchString(old) {
		return " It begins with a line number and a tab, which read_file adds: leave them out."
	}
	var want []string
	for l := range strings.SplitSeq(strings.Trim(old, "\n\r"), "\n") {
		want = append(want, squeeze(l))
	}
	lines := strings.Split(s, "\n")
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = squeeze(l)
	}
	var same, first []int
	for i := range have {
		if want[0] == "" || have[i] != want[0] {
			continue
		}
		first = append(first, i+1)
		if i+len(want) <= len(have) && equalLines(have[i:i+len(want)], want) {
			same = append(same, i+1)
		}
	}
	switch {
	case len(same) > 0:
		n := same[0]
		return fmt.Sprintf(" The same text with other white space is at line %s; there it is:\n%s", lineList(same), quoteLines(lines[n-1:n-1+len(want)]))
	case len(first) > 0:
		n := first[0]
		return fmt.Sprintf(" Its first line is at line %s, but what follows differs; there it is:\n%s", lineList(first), quoteLines(lines[n-1:min(n-1+len(want), len(lines))]))
	}
	var parts []int
	for i := range have {
		if want[0] != "" && strings.Contains(have[i], want[0]) {
			parts = append(parts, i+1)
		}
	}
	if len(parts) > 0 {
		return fmt.Sprintf(" Its first line is part of line %s; read the file again.", lineList(parts))
	}
	return " Nothing like its first line is in the file; read the file again."
}

// squeeze is a line without the white space that people and models get wrong.
func squeeze(l string) string { return strings.Join(strings.Fields(l), " ") }

func equalLines(a, b []string) bool {
	for i := range b {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func quoteLines(lines []string) string {
	text, cut := clip(strings.ReplaceAll(strings.Join(lines, "\n"), "\r", ""), 2<<10)
	if cut {
		text += "…"
	}
	return text
}
