package tools

import (
	"strings"
	"unicode/utf8"
)

// cleaner makes a stream of bytes from a program readable text: terminal escapes (ECMA-48) and control characters are
// taken out, CR LF and CR become newlines, and a NUL or a byte that is no UTF-8 becomes U+FFFD. Characters and escapes may
// be split between writes.
type cleaner struct {
	state   escape
	cr      bool   // the last character was a CR
	partial []byte // the start of a character
}

type escape int

const (
	plain    escape = iota
	escaped         // after ESC
	sequence        // in CSI …: ends with a byte from @ to ~
	text            // in OSC, DCS, SOS, PM or APC …: ends with BEL or ESC \
	textEnd         // after ESC in one of these
	charset         // after ESC and an intermediate: one more byte
)

func (c *cleaner) write(b []byte) string {
	if len(c.partial) > 0 {
		b = append(c.partial, b...)
		c.partial = nil
	}
	var out strings.Builder
	for len(b) > 0 {
		if len(b) < utf8.UTFMax && !utf8.FullRune(b) {
			c.partial = append([]byte(nil), b...)
			break
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		c.rune(&out, r)
	}
	return out.String()
}

// end is what is left when no more comes.
func (c *cleaner) end() string {
	var out strings.Builder
	for range c.partial {
		c.rune(&out, utf8.RuneError)
	}
	c.partial = nil
	if c.cr {
		out.WriteByte('\n')
		c.cr = false
	}
	return out.String()
}

func (c *cleaner) rune(out *strings.Builder, r rune) {
	switch c.state {
	case escaped:
		switch {
		case r == '[':
			c.state = sequence
		case strings.ContainsRune("]P^_X", r):
			c.state = text
		case r >= ' ' && r <= '/':
			c.state = charset
		default:
			c.state = plain
		}
		return
	case sequence:
		if r >= '@' && r <= '~' {
			c.state = plain
		}
		if r != '\n' && r != 0x1b { // a newline is in no sequence: this one was broken off
			return
		}
		c.state = plain
	case charset:
		c.state = plain
		return
	case text, textEnd:
		switch {
		case r == 7, r == 0x9c, c.state == textEnd && r == '\\':
			c.state = plain
			return
		case r == 0x1b:
			c.state = textEnd
			return
		case r != '\n':
			c.state = text
			return
		}
		c.state = plain
	}
	if c.cr {
		c.cr = false
		out.WriteByte('\n')
		if r == '\n' {
			return
		}
	}
	switch {
	case r == 0x1b:
		c.state = escaped
	case r == 0x9b:
		c.state = sequence
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		c.state = text
	case r == '\r':
		c.cr = true
	case r == 0:
		out.WriteRune(utf8.RuneError)
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f || r >= 0xa0:
		out.WriteRune(r)
	}
}
