package tools

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"fermata/tools/workspace"
)

// filePatch is what a patch says of one file.
type filePatch struct {
	line     int    // of the patch, where it begins, from 1
	old, new string // names, "" for /dev/null
	rename   bool
	mode     workspace.Mode // of a file that is created
	hunks    []hunk
	prefixed prefixed
}

// prefixed says whether names begin with git's a/ and b/.
type prefixed int

const (
	prefixUnknown prefixed = iota
	prefixYes
	prefixNo
)

// hunk is one change of some lines.
type hunk struct {
	line   int    // of the patch
	header string // the @@ line
	start  int    // the first of its old lines in the file, from 1; 0: it does not say
	nowNew bool   // it says that there are no old lines
	lines  []hunkLine
}

// hunkLine is a line that is kept (' '), removed ('-') or added ('+'). text has its newline, except for one without.
type hunkLine struct {
	op   byte
	text string
}

// old and new are the lines before and after.
func (h hunk) old() []string { return h.side('+') }
func (h hunk) new() []string { return h.side('-') }

func (h hunk) side(without byte) (out []string) {
	for _, l := range h.lines {
		if l.op != without {
			out = append(out, l.text)
		}
	}
	return out
}

// unended reports whether one of its sides is said to have no newline at its end.
func (h hunk) unended() bool {
	for _, l := range h.lines {
		if !strings.HasSuffix(l.text, "\n") {
			return true
		}
	}
	return false
}

// String names it in a result.
func (h hunk) String() string {
	return fmt.Sprintf("line %d of the patch (%s)", h.line, oneLine(h.header, 80))
}

// patchParser reads a unified diff line by line. It takes what models and tools put around a diff, and wrong counts in @@ lines, which
// models get wrong, where the lines themselves leave no doubt. What it cannot be sure of is an error: no part of a patch is
// passed over that could have been meant.
type patchParser struct {
	lines []string // without newlines
	at    int
	files []filePatch
}

// parsePatch reads a patch. Its errors are for the model and say in which line.
func parsePatch(text string) ([]filePatch, error) {
	p := &patchParser{lines: strings.Split(strings.TrimSuffix(toLF(text), "\n"), "\n")}
	for p.at < len(p.lines) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		return nil, errors.New("there is no file in the patch: each begins with a line --- and a line +++, then @@ lines with what changes")
	}
	bare, marked := false, false
	for _, f := range p.files {
		bare, marked = bare || f.prefixed == prefixNo, marked || f.prefixed == prefixYes
	}
	for i := range p.files {
		f := &p.files[i]
		if f.prefixed == prefixYes || f.prefixed == prefixUnknown && (marked || !bare) {
			f.old, f.new = strings.TrimPrefix(f.old, "a/"), strings.TrimPrefix(f.new, "b/")
		}
		if err := f.valid(); err != nil {
			return nil, fmt.Errorf("line %d of the patch: %w", f.line, err)
		}
	}
	return p.files, nil
}

// valid says what is wrong with a file's part as a whole.
func (f *filePatch) valid() error {
	name := workspace.Show(f.name())
	switch {
	case f.old == "" && f.new == "":
		return errors.New("it is about no file: both names are /dev/null")
	case f.old != "" && f.new != "" && f.old != f.new && !f.rename:
		return fmt.Errorf("the names %s and %s differ; to rename a file, write the lines \"rename from %[1]s\" and \"rename to %[2]s\" behind the line diff --git",
			workspace.Show(f.old), workspace.Show(f.new))
	case f.rename && (f.old == "" || f.new == "" || f.old == f.new):
		return errors.New("a rename needs two names, \"rename from\" and \"rename to\"")
	case len(f.hunks) == 0 && f.old != "" && f.new != "" && !f.rename:
		return fmt.Errorf("nothing is said about what changes in %s: no @@ line follows", name)
	}
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if f.old == "" && l.op != '+' {
				return fmt.Errorf("%s is to be created, so each line of it begins with +; %q does not", name, string(l.op)+excerpt(l.text))
			}
			if f.new == "" && l.op == '+' {
				return fmt.Errorf("%s is to be deleted, so no line of it begins with +; %q does", name, string(l.op)+excerpt(l.text))
			}
		}
	}
	return nil
}

func excerpt(line string) string {
	s, _ := clip(strings.TrimSuffix(line, "\n"), 80)
	return s
}

// name is the file's name in the end, of a deleted one the one it had.
func (f *filePatch) name() string {
	if f.new == "" {
		return f.old
	}
	return f.new
}

// next reads a file's part, or passes over one line that belongs to none.
func (p *patchParser) next() error {
	l := p.lines[p.at]
	switch {
	case strings.HasPrefix(l, "diff --git "):
		return p.gitFile()
	case p.header(p.at):
		f := filePatch{line: p.at + 1}
		if err := p.names(&f); err != nil {
			return err
		}
		return p.hunks(f)
	case strings.HasPrefix(l, "@@@"):
		return p.errorf("this is a combined diff, of a merge; give a plain one")
	case strings.HasPrefix(l, "@@"):
		return p.errorf("the hunk %s stands behind no file's --- and +++ lines", oneLine(l, 80))
	case strings.HasPrefix(l, "*** Begin Patch"), strings.HasPrefix(l, "*** Update File:"), strings.HasPrefix(l, "*** Add File:"):
		return p.errorf("%q is another format; give a unified diff, as diff -u and git diff write it", oneLine(l, 80))
	case strings.HasPrefix(l, "<<<<<<< "):
		return p.errorf("%q is another format; give a unified diff, as diff -u and git diff write it, or use edit_file", oneLine(l, 80))
	case strings.HasPrefix(l, "Binary files ") && strings.HasSuffix(l, " differ"), l == "GIT binary patch":
		return p.errorf("%s: binary files cannot be patched", oneLine(l, 120))
	case strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "):
		return p.errorf("%q stands alone: a file begins with a line --- and then a line +++", oneLine(l, 80))
	}
	p.at++
	return nil
}

// header reports whether the lines --- and +++ begin at i.
func (p *patchParser) header(i int) bool {
	return i+1 < len(p.lines) && strings.HasPrefix(p.lines[i], "--- ") && strings.HasPrefix(p.lines[i+1], "+++ ")
}

func (p *patchParser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", p.at+1, fmt.Sprintf(format, args...))
}

// hunks reads what changes in a file, and adds the file.
func (p *patchParser) hunks(f filePatch) error {
	for p.at < len(p.lines) {
		l := p.lines[p.at]
		if strings.TrimSpace(l) == "" {
			p.at++
			continue
		}
		if !strings.HasPrefix(l, "@@") || strings.HasPrefix(l, "@@@") {
			break
		}
		h, err := p.hunk()
		if err != nil {
			return err
		}
		f.hunks = append(f.hunks, h)
	}
	p.files = append(p.files, f)
	if p.at < len(p.lines) && len(f.hunks) == 0 {
		if l := p.lines[p.at]; strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") && !p.header(p.at) {
			return p.errorf("%q belongs to no hunk: a line @@ -12,7 +12,8 @@ goes first, or only @@", excerpt(l))
		}
	}
	return nil
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@`)

// hunk reads one, from its @@ line.
func (p *patchParser) hunk() (hunk, error) {
	h := hunk{line: p.at + 1, header: p.lines[p.at]}
	m := hunkHeader.FindStringSubmatch(h.header)
	p.at++
	if m != nil {
		count := func(s string) int {
			if s == "" {
				return 1
			}
			n, _ := strconv.Atoi(s)
			return n
		}
		h.start, _ = strconv.Atoi(m[1])
		h.nowNew = count(m[2]) == 0
		if h.nowNew {
			h.start++ // it names the line before
		}
		if lines, next, ok := p.counted(count(m[2]), count(m[3])); ok {
			h.lines, p.at = lines, next
			return h, h.valid()
		}
	}
	if err := p.uncounted(&h); err != nil {
		return h, err
	}
	return h, h.valid()
}

// valid says what is wrong with a hunk's lines.
func (h hunk) valid() error {
	changes := false
	for _, l := range h.lines {
		changes = changes || l.op != ' '
	}
	if !changes {
		return fmt.Errorf("%s: it changes nothing: no line begins with + or -", h)
	}
	for _, side := range [][]string{h.old(), h.new()} {
		for i, text := range side {
			if !strings.HasSuffix(text, "\n") && i < len(side)-1 {
				return fmt.Errorf("%s: \"No newline at end of file\" stands behind a line that is not the last", h)
			}
		}
	}
	return nil
}

// counted reads as many lines as the @@ line says; ok is false when that does not come out.
func (p *patchParser) counted(old, new int) (lines []hunkLine, next int, ok bool) {
	i := p.at
	for ; old > 0 || new > 0; i++ {
		if i == len(p.lines) {
			return nil, 0, false
		}
		l, isLine := hunkLineOf(p.lines[i])
		switch {
		case strings.HasPrefix(p.lines[i], `\`) && len(lines) > 0:
			unend(lines)
			continue
		case !isLine:
			return nil, 0, false
		}
		if l.op != '+' {
			old--
		}
		if l.op != '-' {
			new--
		}
		lines = append(lines, l)
	}
	if old < 0 || new < 0 {
		return nil, 0, false
	}
	if i < len(p.lines) && strings.HasPrefix(p.lines[i], `\`) && len(lines) > 0 {
		unend(lines)
		i++
	}
	for k := i; k < len(p.lines); k++ { // what follows must not look as if it belonged to it
		switch l := p.lines[k]; {
		case l == "":
			continue
		case p.signature(k), p.header(k), endsHunk(l), commit.MatchString(l), l == "-- " && k+1 == len(p.lines):
		case l[0] == '+', l[0] == '-', l[0] == ' ' && k == i, !p.onlyText(k):
			return nil, 0, false
		}
		break
	}
	return lines, i, true
}

// uncounted reads the lines up to where something else begins, whatever the @@ line says.
func (p *patchParser) uncounted(h *hunk) error {
	blank := 0 // empty lines at the end
	for ; p.at < len(p.lines); p.at++ {
		text := p.lines[p.at]
		if p.header(p.at) || p.signature(p.at) || endsHunk(text) {
			break
		}
		l, isLine := hunkLineOf(text)
		switch {
		case strings.HasPrefix(text, `\`) && len(h.lines) > 0:
			unend(h.lines)
			continue
		case !isLine && blank > 0 && p.onlyText(p.at):
			h.lines = h.lines[:len(h.lines)-blank]
			return nil
		case !isLine:
			return p.errorf("%q stands in the hunk of line %d, and begins with none of: a space for a line that stays, + or -", excerpt(text), h.line)
		}
		if blank++; text != "" {
			blank = 0
		}
		h.lines = append(h.lines, l)
	}
	h.lines = h.lines[:len(h.lines)-blank]
	return nil
}

// onlyText reports whether nothing from i up to the next file looks like a line of a hunk.
func (p *patchParser) onlyText(i int) bool {
	for ; i < len(p.lines); i++ {
		l := p.lines[i]
		if p.header(i) || strings.HasPrefix(l, "diff ") {
			break
		}
		if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") || strings.HasPrefix(l, "@@") {
			return false
		}
	}
	return true
}

// hunkLineOf reads a line of a hunk. An empty one is an empty line that stays: editors and models drop the space.
func hunkLineOf(l string) (hunkLine, bool) {
	if l == "" {
		return hunkLine{' ', "\n"}, true
	}
	return hunkLine{l[0], l[1:] + "\n"}, l[0] == ' ' || l[0] == '+' || l[0] == '-'
}

// unend takes the newline from the last line.
func unend(lines []hunkLine) {
	last := &lines[len(lines)-1]
	last.text = strings.TrimSuffix(last.text, "\n")
}

// endsHunk reports whether a line cannot belong to a hunk.
func endsHunk(l string) bool {
	for _, start := range []string{"@@", "diff ", "Index: ", "```", "*** "} {
		if strings.HasPrefix(l, start) {
			return true
		}
	}
	return false
}

var (
	version = regexp.MustCompile(`^\d+\.\d+`)
	commit  = regexp.MustCompile(`^(From|commit) [0-9a-f]{7,}`) // begins the next mail, or the next commit of a log
)

// signature reports whether the end of a mail from git begins at i. Without the version it may as well take a dash away.
func (p *patchParser) signature(i int) bool {
	return (p.lines[i] == "-- " || p.lines[i] == "--") && i+1 < len(p.lines) && version.MatchString(p.lines[i+1])
}
