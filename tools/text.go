package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"fermata/tools/workspace"
)

// oneLine is s fit for one line before people: at most max bytes, with what a terminal would act on made visible.
func oneLine(s string, max int) string {
	s, cut := clip(s, max)
	s = workspace.Show(s)
	if cut {
		s += "…"
	}
	return s
}

// clip is the longest start of s of at most max bytes that does not split a character.
func clip(s string, max int) (start string, cut bool) {
	if len(s) <= max {
		return s, false
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max], true
}

// plural is "1 line", "2 lines".
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lineReader reads a text line by line, whatever their length, in memory bounded by keep.
type lineReader struct {
	r    *bufio.Reader
	keep int // bytes of a line that are kept
	buf  []byte
}

// line is one line of a file, less its ending. text is valid until the next one is read.
type line struct {
	text []byte // its first bytes, at most keep
	size int64  // its whole length in bytes
	crlf bool   // ended by CR LF
	last bool   // not ended at all: the file's last line without a final newline
}

func newLineReader(r io.Reader, keep int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// next returns io.EOF after the last line, the context's cause when it is cancelled, or the reader's error.
func (l *lineReader) next(ctx context.Context) (line, error) {
	l.buf = l.buf[:0]
	var ln line
	var end byte // the byte before the newline
	for {
		if ctx.Err() != nil {
			return line{}, context.Cause(ctx)
		}
		chunk, err := l.r.ReadSlice('\n')
		whole := err == nil
		if whole {
			chunk = chunk[:len(chunk)-1]
		}
		ln.size += int64(len(chunk))
		if n := len(chunk); n > 0 {
			end = chunk[n-1]
		}
		if whole && len(l.buf) == 0 && len(chunk) <= l.keep {
			ln.text = chunk
		} else {
			l.buf = append(l.buf, chunk[:min(len(chunk), l.keep-len(l.buf))]...)
			ln.text = l.buf
		}
		switch {
		case whole && ln.size > 0 && end == '\r':
			ln.crlf = true
			ln.size--
			ln.text = ln.text[:min(int64(len(ln.text)), ln.size)]
			return ln, nil
		case whole:
			return ln, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && ln.size == 0:
			return line{}, io.EOF
		case errors.Is(err, io.EOF):
			ln.last = true
			return ln, nil
		default:
			return line{}, err
		}
	}
}
