package tools

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of the needles of an expression.
const (
	needleChoices = 8 // alternatives at most, each of which is looked for
	needleFolded  = 2 // letters that a needle in any case must have, to be rare enough
)

// needle is a text that is looked for before an expression is tried, because that is many times faster.
type needle struct {
	text   string
	folded bool // in upper or lower case; text is ASCII then, in lower case
	rare   int  // of a folded one, where its rarest letter is
}

// needlesOf are texts of which whatever e matches holds at least one; nil when none are known.
func needlesOf(e *syntax.Regexp) []needle {
	switch e.Op {
	case syntax.OpLiteral:
		return literalNeedle(e)
	case syntax.OpCapture, syntax.OpPlus:
		return needlesOf(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return needlesOf(e.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range e.Sub {
			if n := needlesOf(sub); shortest(n) > shortest(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range e.Sub {
			n := needlesOf(sub)
			if len(n) == 0 {
				return nil
			}
			all = append(all, n...)
		}
		if len(all) <= needleChoices {
			return all
		}
	}
	return nil
}

func shortest(list []needle) int {
	n := 0
	for _, d := range list {
		if n == 0 || len(d.text) < n {
			n = len(d.text)
		}
	}
	return n
}

func literalNeedle(e *syntax.Regexp) []needle {
	text := string(e.Rune)
	if e.Flags&syntax.FoldCase == 0 {
		if strings.ContainsRune(text, utf8.RuneError) { // which matches any bad byte
			return nil
		}
		return []needle{{text: text}}
	}
	// The Kelvin sign is a k too, and the long s is an s.
	best := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("KkSs", r) || r >= utf8.RuneSelf }) {
		if len(part) > len(best) {
			best = strings.ToLower(part)
		}
	}
	if len(best) < needleFolded {
		return nil
	}
	n := needle{text: best, folded: true}
	for i := range best {
		if rarity(best[i]) > rarity(best[n.rare]) {
			n.rare = i
		}
	}
	return []needle{n}
}

// rarity is higher for letters that are rarer in text and code.
func rarity(c byte) int {
	return strings.IndexByte(" etaoinsrlhdcumpfg_.ywbv-k0()x,1;j:q=2z", c) & 0xff
}

// ascii reports whether the needle looks the same in each encoding but UTF-16.
func (n needle) ascii() bool {
	for i := range len(n.text) {
		if n.text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// in reports whether b holds the needle.
func (n needle) in(b []byte) bool {
	if !n.folded {
		return bytes.Contains(b, []byte(n.text))
	}
	c := n.text[n.rare]
	return n.foldedIn(b, c) || c >= 'a' && c <= 'z' && n.foldedIn(b, c-'a'+'A')
}

// foldedIn looks wherever the rarest letter stands as c.
func (n needle) foldedIn(b []byte, c byte) bool {
	for at := n.rare; at < len(b); at++ {
		i := bytes.IndexByte(b[at:], c)
		if i < 0 {
			return false
		}
		at += i
		start := at - n.rare
		if start+len(n.text) > len(b) {
			return false
		}
		if foldedEqual(b[start:start+len(n.text)], n.text) {
			return true
		}
	}
	return false
}

func foldedEqual(b []byte, lower string) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func inAny(list []needle, b []byte) bool {
	for _, n := range list {
		if n.in(b) {
			return true
		}
	}
	return false
}

// spansText reports whether e tells the text's beginning or end, which are a line's to us, from those of the lines in it.
func spansText(e *syntax.Regexp) bool {
	switch e.Op {
	case syntax.OpBeginText, syntax.OpEndText:
		return true
	}
	return slices.ContainsFunc(e.Sub, spansText)
}
