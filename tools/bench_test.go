package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tools/workspace"
)

// megabyte is a file of code of about 1 MB, with one line that can be told from the others.
func megabyte() string {
	line := "\tif err := step(ctx, state); err != nil { return fmt.Errorf(\"step: %w\", err) } // ü\n"
	n := 1_000_000 / len(line)
	return strings.Repeat(line, n/2) + "\tthe one line\n" + strings.Repeat(line, n/2)
}

func benchFile(b *testing.B, content string) *workspace.Workspace {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o666); err != nil {
		b.Fatal(err)
	}
	w, err := workspace.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close() })
	return w
}

// Target: at most 5 ms each.
func BenchmarkReadFile1MB(b *testing.B) {
	utf8 := megabyte()
	for name, content := range map[string]string{
		"UTF-8": utf8, "Latin-1": latin1(utf8), "UTF-16": "\xff\xfe" + units(0, 8)(utf8), "mixed endings": strings.Replace(utf8, "\n", "\r\n", 100),
	} {
		b.Run(name, func(b *testing.B) {
			w := benchFile(b, content)
			tool, _ := Lookup("read_file")
			for b.Loop() {
				if r := tool.Run(b.Context(), Env{Workspace: w}, json.RawMessage(`{"path":"f"}`)); r.State != Done {
					b.Fatal(r.Output)
				}
			}
		})
	}
}

// Target: at most 10 ms each, the disk's own time for a durable file included.
func BenchmarkEditFile1MB(b *testing.B) {
	utf8 := megabyte()
	for name, content := range map[string]string{
		"UTF-8": utf8, "Latin-1": latin1(utf8), "UTF-16": "\xff\xfe" + units(0, 8)(utf8), "mixed endings": strings.Replace(utf8, "\n", "\r\n", 100),
	} {
		b.Run(name, func(b *testing.B) {
			w := benchFile(b, content)
			tool, _ := Lookup("edit_file")
			edits := [2]json.RawMessage{
				json.RawMessage(`{"path":"f","old":"the one line\n","new":"another line\nand more\n"}`),
				json.RawMessage(`{"path":"f","old":"another line\nand more\n","new":"the one line\n"}`),
			}
			i := 0
			for b.Loop() {
				raw := edits[i%2]
				i++
				env := Env{Workspace: w, Permit: allow(w, tool, raw), Intent: func(context.Context, Change) error { return nil }}
				if r := tool.Run(b.Context(), env, raw); r.State != Done {
					b.Fatal(r.Output)
				}
			}
		})
	}
}

// What is told of an edit that does not match is looked for in all of the file.
func BenchmarkMismatch1MB(b *testing.B) {
	text := megabyte()
	for b.Loop() {
		if s := mismatch(text, "\tif err := stop(ctx, state); err != nil {\n\t\treturn err\n"); s == "" {
			b.Fatal("nothing was said")
		}
	}
}
