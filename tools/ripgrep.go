package tools

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"fermata/tools/process"
	"fermata/tools/workspace"
)

// findRipgrep finds rg on PATH. One that lies in the workspace, or is found by a relative entry of PATH, does not count:
// a repository must not choose what the daemon runs.
func findRipgrep(w *workspace.Workspace) (string, bool) {
	rg, err := exec.LookPath("rg")
	if err != nil || !filepath.IsAbs(rg) || w.Contains(rg) {
		return "", false
	}
	return rg, true
}

// ripgrepFilter drops files in which ripgrep finds nothing. It keeps too many rather than too few: the pattern it hands over
// matches at least what grep's does, files open in the editor are kept, and so are those of a batch that ripgrep fails on.
// ripgrep is told every file by name, walks nothing, and reads no configuration. Order is kept.
type ripgrepFilter struct {
	search      *search
	rg, pattern string
	job         func(*searchJob) error

	jobs        []*searchJob
	files, size int
	most        int // bytes of names after which ripgrep is asked
}

// rgFirst is how many bytes of names ripgrep gets first, so that what is found often is found soon.
const rgFirst = 32 << 10

// newRipgrepFilter is nil when ripgrep is of no use. What is left goes to job.
func newRipgrepFilter(s *search, rg string, job func(*searchJob) error) *ripgrepFilter {
	var pattern strings.Builder
	if rg == "" || !writeRust(&pattern, s.tree) {
		return nil
	}
	return &ripgrepFilter{search: s, rg: rg, pattern: pattern.String(), job: job, most: min(rgFirst, argBytes)}
}

// add takes a job of named files.
func (f *ripgrepFilter) add(ctx context.Context, j *searchJob) error {
	j.pick = nil
	f.jobs = append(f.jobs, j)
	for _, name := range j.names {
		f.files++
		f.size += len(name) + 3 + 8 // the address of an argument takes room too
	}
	if f.size < f.most {
		return nil
	}
	return f.flush(ctx)
}

// flush passes on what is left of the jobs so far.
func (f *ripgrepFilter) flush(ctx context.Context) error {
	jobs := f.jobs
	files := make([]string, 0, f.files)
	for _, j := range jobs {
		files = append(files, j.names...)
	}
	f.jobs, f.files, f.size, f.most = nil, 0, 0, argBytes
	if len(files) >= rgFiles {
		if hits, ok := ripgrep(ctx, f.search.w.Root(), f.rg, f.pattern, files); ok {
			for _, j := range jobs {
				j.names = slices.DeleteFunc(j.names, func(name string) bool { return !hits[name] && !f.search.open[name] })
			}
		}
	}
	for _, j := range jobs {
		if len(j.names)+len(j.left) == 0 {
			continue
		}
		if err := f.job(j); err != nil {
			return err
		}
	}
	return nil
}

// rgFiles is how many files make it worth while to start ripgrep.
const rgFiles = 64

// ripgrep reports which of files hold a line that matches; ok is false when it did not do its work.
func ripgrep(ctx context.Context, root, rg, pattern string, files []string) (hits map[string]bool, ok bool) {
	args := []string{"--no-config", "--no-ignore", "--no-messages", "--color=never", "--encoding=auto", "--case-sensitive",
		"--files-with-matches", "--null", "--regexp=" + pattern, "--"}
	for _, f := range files {
		args = append(args, "./"+f)
	}
	cmd := exec.CommandContext(ctx, rg, args...)
	cmd.Dir = root
	cmd.Env = []string{} // nothing of ours, in particular no RIPGREP_CONFIG_PATH
	cmd.WaitDelay = process.Grace
	out, err := process.Output(cmd)
	if err != nil {
		// 1 means that nothing matched; 2 is an error, if only about one file
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
			return nil, false
		}
	}
	hits = map[string]bool{}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		hits[strings.TrimPrefix(filepath.ToSlash(string(name)), "./")] = true
	}
	return hits, true
}

// writeRust writes e in the syntax of Rust's regex crate, so that it matches each line in which e, read as Go does,
// matches. False when that cannot be said. It differs from Go in that \b is ASCII only when asked, that a CR before the
// line's end belongs to the line, and so does a BOM, and that bytes which are no UTF-8 match neither . nor a class: since we
// read some files as Latin-1, whatever matches a character beyond ASCII is made to match any such byte. UTF-16 it
// knows by its byte order mark, as we do.
func writeRust(b *strings.Builder, e *syntax.Regexp) bool {
	switch e.Op {
	case syntax.OpEmptyMatch:
		b.WriteString("(?:)")
	case syntax.OpLiteral:
		open := "(?:"
		if e.Flags&syntax.FoldCase != 0 {
			open = "(?i:"
		}
		b.WriteString(open)
		for _, r := range e.Rune {
			if r == '\n' || r == utf8.RuneError || !utf8.ValidRune(r) {
				return false
			}
			if r < utf8.RuneSelf {
				fmt.Fprintf(b, `\x{%X}`, r)
			} else {
				fmt.Fprintf(b, `(?:\x{%X}|(?-u:[\x80-\xFF]))`, r)
			}
		}
		b.WriteString(")")
	case syntax.OpCharClass:
		return writeRustClass(b, e.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteString(`(?:.|(?-u:[\x80-\xFF]))`)
	case syntax.OpBeginLine:
		b.WriteString(`(?:^\x{FEFF}?)`)
	case syntax.OpEndLine:
		b.WriteString(`(?:\r?$)`)
	case syntax.OpWordBoundary:
		b.WriteString(`(?-u:\b)`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`(?-u:\B)`)
	case syntax.OpCapture:
		return writeRust(b, e.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		b.WriteString("(?:")
		if !writeRust(b, e.Sub[0]) {
			return false
		}
		b.WriteString(")")
		switch {
		case e.Op == syntax.OpStar:
			b.WriteString("*")
		case e.Op == syntax.OpPlus:
			b.WriteString("+")
		case e.Op == syntax.OpQuest:
			b.WriteString("?")
		case e.Max < 0:
			fmt.Fprintf(b, "{%d,}", e.Min)
		default:
			fmt.Fprintf(b, "{%d,%d}", e.Min, e.Max)
		}
	case syntax.OpConcat, syntax.OpAlternate:
		b.WriteString("(?:")
		for i, sub := range e.Sub {
			if i > 0 && e.Op == syntax.OpAlternate {
				b.WriteString("|")
			}
			if !writeRust(b, sub) {
				return false
			}
		}
		b.WriteString(")")
	default: // the beginning and end of the whole text, which is a line to us and a file to ripgrep; no match
		return false
	}
	return true
}

func writeRustClass(b *strings.Builder, ranges []rune) bool {
	high, some := false, false
	var class strings.Builder
	put := func(lo, hi rune) {
		if lo <= hi {
			fmt.Fprintf(&class, `\x{%X}-\x{%X}`, lo, hi)
			some = true
		}
	}
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if !utf8.ValidRune(lo) || !utf8.ValidRune(hi) {
			return false
		}
		high = high || hi >= utf8.RuneSelf
		if lo <= '\n' && '\n' <= hi { // never in a line
			put(lo, '\n'-1)
			lo = '\n' + 1
		}
		put(lo, hi)
	}
	if !some {
		return false
	}
	if high {
		fmt.Fprintf(b, `(?:[%s]|(?-u:[\x80-\xFF]))`, class.String())
	} else {
		fmt.Fprintf(b, `[%s]`, class.String())
	}
	return true
}
