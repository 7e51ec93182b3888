package chat

import (
	"unicode/utf16"
	"unicode/utf8"
)

// joiner decodes JSON strings that are pieces of one text. A provider can split a character between two pieces: within
// its UTF-8 bytes, or between the halves of a surrogate pair. The first part is held until the next piece. What no later
// piece completes becomes U+FFFD, as do bytes that are no UTF-8: in the next piece, or at flush.
type joiner struct {
	bytes [utf8.UTFMax]byte // bytes[:n] begin a character
	n     int
	high  rune // a high surrogate waiting for its other half, or 0. Never together with n > 0
}

// add appends the whole characters of raw to dst. raw is a valid JSON string with its quotes.
func (j *joiner) add(dst, raw []byte) []byte {
	s := raw[1 : len(raw)-1]
	for len(s) > 0 {
		c := s[0]
		if c >= 0x20 && c < utf8.RuneSelf && c != '\\' && j.n == 0 && j.high == 0 {
			k := 1
			for k < len(s) && s[k] < utf8.RuneSelf && s[k] != '\\' {
				k++
			}
			dst = append(dst, s[:k]...)
			s = s[k:]
			continue
		}
		if c != '\\' {
			dst = j.rawByte(dst, c)
			s = s[1:]
			continue
		}
		if s[1] != 'u' {
			dst = append(j.flush(dst), unescape(s[1]))
			s = s[2:]
			continue
		}
		dst = j.unit(dst, hex4(s[2:6]))
		s = s[6:]
	}
	return dst
}

// rawByte takes one byte of UTF-8.
func (j *joiner) rawByte(dst []byte, c byte) []byte {
	if j.high != 0 || (j.n > 0 && utf8.RuneStart(c)) {
		dst = j.flush(dst)
	}
	j.bytes[j.n] = c
	j.n++
	if !utf8.FullRune(j.bytes[:j.n]) {
		return dst
	}
	r, size := utf8.DecodeRune(j.bytes[:j.n])
	if r == utf8.RuneError && size <= 1 {
		return j.flush(dst)
	}
	dst = append(dst, j.bytes[:j.n]...)
	j.n = 0
	return dst
}

// unit takes one \uXXXX escape.
func (j *joiner) unit(dst []byte, u rune) []byte {
	if j.high != 0 && u >= 0xDC00 && u < 0xE000 {
		dst = utf8.AppendRune(dst, utf16.DecodeRune(j.high, u))
		j.high = 0
		return dst
	}
	dst = j.flush(dst)
	if u >= 0xD800 && u < 0xDC00 {
		j.high = u
		return dst
	}
	return utf8.AppendRune(dst, u) // a low half alone becomes U+FFFD
}

// flush ends the text, or what is held of a character that will not be completed.
func (j *joiner) flush(dst []byte) []byte {
	if j.n > 0 || j.high != 0 {
		dst = append(dst, "\ufffd"...)
		j.n, j.high = 0, 0
	}
	return dst
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // " \ /
}

func hex4(s []byte) (r rune) {
	for _, c := range s {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
