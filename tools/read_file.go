package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"fermata/tools/workspace"
)

// Bounds of read_file's output.
const (
	readLines    = 2000
	readBytes    = 64 << 10
	readLineLen  = 4 << 10   // bytes shown of one line
	readCountMax = 256 << 20 // bytes up to which lines after the shown ones are counted
)

//go:embed read_file.md
var readFileDescription string

type readFileArgs struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

func readFile() Tool {
	return definition[readFileArgs]{
		name: "read_file", description: readFileDescription, readOnly: true,
		schema:   `{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"offset":{"type":"integer","minimum":1,"description":"first line to show, from 1"},"limit":{"type":"integer","minimum":1,"description":"how many lines to show"}},"required":["path"]}`,
		required: []string{"path"},
		example:  `{"path": "src/main.go", "offset": 1, "limit": 200}`,
		summary: func(a readFileArgs) string {
			from := given(a.Offset, 1)
			switch {
			case a.Limit != nil:
				return fmt.Sprintf("%s %d-%d", a.Path, from, from+*a.Limit-1)
			case a.Offset != nil:
				return fmt.Sprintf("%s %d-", a.Path, from)
			}
			return a.Path
		},
		paths: func(a readFileArgs) []string { return []string{a.Path} },
		run: func(ctx context.Context, env Env, a readFileArgs) Result {
			from, limit := given(a.Offset, 1), given(a.Limit, readLines)
			if from < 1 || limit < 1 {
				return failf("read_file: offset and limit start at 1; they were %d and %d", from, limit)
			}
			s, err := env.Workspace.Stream(a.Path)
			if err != nil {
				return failf("read_file: %v", err)
			}
			defer s.Close()
			if why, ok := env.mayRead(s.Path); !ok {
				return failf("read_file: %s may not be read: %s", workspace.Show(s.Path), why)
			}
			v := view{from: from, limit: min(limit, readLines)}
			g := look(s)
			return g.seen(v.read(ctx, s))
		},
	}.tool()
}

// view is a run of lines of one file as read_file shows them.
type view struct {
	from, limit int
	out         strings.Builder
	shown       int
	full        bool // limit or readBytes is reached
	total       int  // lines read so far
	crlf        int  // of these, how many end in CR LF
	unended     bool // the last line has no newline
	uncounted   bool // the file is longer than total
}

func (v *view) read(ctx context.Context, s *workspace.Stream) Result {
	name := workspace.Show(s.Path)
	text, form, err := s.Text()
	if err != nil {
		return failf("read_file: %v (%d bytes)", err, s.Size)
	}
	lines := newLineReader(text, readLineLen)
	for {
		ln, err := lines.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return v.result(name, form, s.Buffer)
		case ctx.Err() != nil:
			return stopped(v.out.String())
		case err != nil:
			return failf("read_file: %s: %v", name, err)
		}
		v.total++
		if ln.crlf {
			v.crlf++
		}
		v.unended = ln.last
		if v.total < v.from || v.full {
			if v.full && s.Size > readCountMax {
				v.uncounted = true
				return v.result(name, form, s.Buffer)
			}
			continue
		}
		text, why := showLine(ln)
		if why != "" {
			return failf("read_file: %s cannot be shown: line %d %s (%d bytes in all)", name, v.total, why, s.Size)
		}
		number := strconv.Itoa(v.total)
		if v.shown > 0 && v.out.Len()+len(number)+len(text)+2 > readBytes {
			v.full = true
			continue
		}
		v.out.WriteString(number + "\t" + text + "\n")
		v.shown++
		v.full = v.shown == v.limit
	}
}

// showLine is a line's text, cut when it is long; why says what makes it no text.
func showLine(ln line) (text, why string) {
	b := ln.text
	if int64(len(b)) < ln.size { // drop a character that the cut split
		for i := 0; i < utf8.UTFMax && len(b) > 0; i++ {
			if r, n := utf8.DecodeLastRune(b); r != utf8.RuneError || n != 1 {
				break
			}
			b = b[:len(b)-1]
		}
	}
	switch {
	case bytes.IndexByte(b, 0) >= 0:
		return "", "has a NUL byte: it is binary"
	case !utf8.Valid(b):
		return "", "is not UTF-8 (Latin-1 or another encoding)"
	}
	text = string(b)
	if rest := ln.size - int64(len(b)); rest > 0 {
		text += fmt.Sprintf("… (line cut: %d more bytes)", rest)
	}
	return text, ""
}

func (v *view) result(name string, form workspace.Form, buffer bool) Result {
	switch {
	case v.total == 0:
		v.out.WriteString("(the file is empty)\n")
	case v.shown == 0:
		return failf("read_file: offset %d is past the end: %s has %s", v.from, name, plural(v.total, "line"))
	case v.uncounted:
		fmt.Fprintf(&v.out, "(lines %d-%d of a very long file; offset %d reads on)\n", v.from, v.from+v.shown-1, v.from+v.shown)
	case v.from+v.shown-1 < v.total:
		fmt.Fprintf(&v.out, "(lines %d-%d of %d; offset %d reads on)\n", v.from, v.from+v.shown-1, v.total, v.from+v.shown)
	default:
		fmt.Fprintf(&v.out, "(lines %d-%d of %d, the end)\n", v.from, v.total, v.total)
		if v.unended {
			v.out.WriteString("(no newline at the end of the file)\n")
		}
	}
	ended := v.total
	if v.unended {
		ended--
	}
	switch {
	case v.crlf > 0 && v.crlf == ended:
		v.out.WriteString("(CRLF line endings)\n")
	case v.crlf > 0:
		v.out.WriteString("(mixed line endings: some lines end in CRLF)\n")
	}
	switch {
	case form.Encoding != workspace.UTF8:
		fmt.Fprintf(&v.out, "(the file is %s, shown as UTF-8; edits keep it %s)\n", form.Encoding, form.Encoding)
	case form.BOM:
		v.out.WriteString("(the file begins with a byte order mark, which edits keep)\n")
	}
	if buffer {
		v.out.WriteString("(text of the editor, perhaps unsaved)\n")
	}
	return done(strings.TrimSuffix(v.out.String(), "\n"))
}
