package lsp

import (
	"slices"
	"strings"
	"unicode/utf8"

	"fermata/rpc/wire"
)

// encoding is how a client counts characters: LSP's UTF-16 code units, or bytes when both sides can.
type encoding bool

const (
	utf16Units encoding = false
	utf8Bytes  encoding = true
)

// change is one content change of textDocument/didChange: of a range, or of the whole text.
type change struct {
	Range *wire.Range `json:"range"`
	Text  string      `json:"text"`
}

// apply is text after the change.
func (c change) apply(enc encoding, text string) string {
	if c.Range == nil {
		return c.Text
	}
	start, end := enc.span(text, *c.Range)
	return text[:start] + c.Text + text[end:]
}

// apply is text after changes, in their order. Those of a replacement everywhere in a long document, which editors send from
// its end to its start, are made in one pass: messages are read meanwhile by nobody, and a stop must be heard (S2).
func (enc encoding) apply(text string, changes []change) string {
	for len(changes) > 0 {
		n := backwards(changes)
		after, ok := enc.replace(text, changes[:n])
		if !ok {
			after = text
			for _, c := range changes[:n] {
				after = c.apply(enc, after)
			}
		}
		text, changes = after, changes[n:]
	}
	return text
}

// backwards is how many of the changes, at least one, go from the end to the start of the text, so that none moves what a
// later one is about. At the start of a line two may not meet: what the first leaves there may join \r and \n.
func backwards(changes []change) int {
	for i, c := range changes {
		if c.Range == nil || before(c.Range.End, c.Range.Start) {
			return max(i, 1)
		}
		if i > 0 {
			end, next := c.Range.End, changes[i-1].Range.Start
			if !before(end, next) && (end != next || end.Character == 0) {
				return i
			}
		}
	}
	return len(changes)
}

func before(a, b wire.Position) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Character < b.Character
}

// replace makes changes that go backwards in one pass; ok is false when one is not exactly at a place in the text.
func (enc encoding) replace(text string, changes []change) (after string, ok bool) {
	var b strings.Builder
	var here wire.Position
	at := 0
	to := func(p wire.Position) bool {
		for ; here.Line < p.Line; here = (wire.Position{Line: here.Line + 1}) {
			if at += lineEnd(text[at:]); at == len(text) {
				return false
			}
			at += eol(text[at:])
		}
		for here.Character < p.Character {
			r, n := utf8.DecodeRuneInString(text[at:])
			if n == 0 || r == '\n' || r == '\r' {
				return false
			}
			here.Character += uint32(enc.units(text[at:], r))
			at += n
		}
		return here == p
	}
	for _, c := range slices.Backward(changes) {
		if c.Range == nil {
			return "", false
		}
		from := at
		if !to(c.Range.Start) {
			return "", false
		}
		b.WriteString(text[from:at])
		b.WriteString(c.Text)
		if !to(c.Range.End) {
			return "", false
		}
	}
	b.WriteString(text[at:])
	return b.String(), true
}

// span is the part of text that a range names. What lies behind the end of a line is its end, as LSP says; behind the
// last line it is the end of the text. A reversed range is turned round.
func (enc encoding) span(text string, r wire.Range) (start, end int) {
	start, end = enc.offset(text, r.Start), enc.offset(text, r.End)
	return min(start, end), max(start, end)
}

// offset is the byte at a position, at the start of a character.
func (enc encoding) offset(text string, p wire.Position) int {
	at := 0
	for range p.Line {
		n := lineEnd(text[at:])
		if at+n == len(text) {
			return len(text)
		}
		at += n + eol(text[at+n:])
	}
	line := text[at : at+lineEnd(text[at:])]
	units := int(p.Character)
	for i, r := range line {
		size := enc.units(line[i:], r)
		if units < size {
			return at + i
		}
		units -= size
	}
	return at + len(line)
}

// units is the length of the character r at the beginning of s.
func (enc encoding) units(s string, r rune) int {
	switch {
	case enc == utf8Bytes && r == utf8.RuneError:
		_, n := utf8.DecodeRuneInString(s)
		return n
	case enc == utf8Bytes:
		return utf8.RuneLen(r)
	case r > 0xFFFF:
		return 2
	}
	return 1
}

// position is the position of a byte.
func (enc encoding) position(text string, offset int) wire.Position {
	var p wire.Position
	at := 0
	for {
		n := lineEnd(text[at:])
		if at+n >= offset || at+n == len(text) {
			break
		}
		next := at + n + eol(text[at+n:])
		if next > offset { // between \r and \n
			offset = at + n
			break
		}
		at = next
		p.Line++
	}
	rest := text[at:offset]
	for i, r := range rest {
		p.Character += uint32(enc.units(rest[i:], r))
	}
	return p
}

// lineEnd is where the first line of s ends. LSP's lines end with \n, \r\n or \r.
func lineEnd(s string) int {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return i
	}
	return len(s)
}

// eol is the length of the line end that s begins with.
func eol(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	return 1
}

// countLines is the number of line ends in s.
func countLines(s string) int {
	n := 0
	for {
		end := lineEnd(s)
		if end == len(s) {
			return n
		}
		s = s[end+eol(s[end:]):]
		n++
	}
}

// difference is the smallest replacement that makes before after: before[start:end] becomes with. It cuts no character
// and no \r\n in two.
func difference(before, after string) (start, end int, with string) {
	limit := min(len(before), len(after))
	for start < limit && before[start] == after[start] {
		start++
	}
	for start > 0 && (inside(before, start) || inside(after, start)) {
		start--
	}
	tail := 0
	for tail < limit-start && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	for tail > 0 && (inside(before, len(before)-tail) || inside(after, len(after)-tail)) {
		tail--
	}
	return start, len(before) - tail, after[start : len(after)-tail]
}

// inside reports whether byte i of s is not where an editor's cursor could stand.
func inside(s string, i int) bool {
	return i < len(s) && (!utf8.RuneStart(s[i]) || i > 0 && s[i] == '\n' && s[i-1] == '\r')
}

// sameButEOL reports whether two texts differ in the kind of their line ends at most: editors keep a document's own.
func sameButEOL(a, b string) bool {
	return a == b || len(a) != len(b) && toLF(a) == toLF(b)
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
