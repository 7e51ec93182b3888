package main

import (
	"cmp"
	"os"
	"runtime"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// style is how a terminal, or what is no terminal, is written to. Its zero value is plain ASCII without escapes.
type style struct {
	color   bool // SGR escapes are understood and wanted
	unicode bool // more than ASCII is shown right
}

// styleOf finds the style for a file from what it is and from the environment.
func styleOf(f *os.File, getenv func(string) string) style {
	if !term.IsTerminal(int(f.Fd())) || getenv("TERM") == "dumb" || getenv("NO_COLOR") != "" {
		return style{}
	}
	return style{color: understandsEscapes(f), unicode: runtime.GOOS == "windows" || isUTF8(getenv)}
}

func isUTF8(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

func (s style) sgr(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string  { return s.sgr("2", text) }
func (s style) bold(text string) string { return s.sgr("1", text) }
func (s style) warn(text string) string { return s.sgr("33", text) }
func (s style) bad(text string) string  { return s.sgr("31", text) }
func (s style) good(text string) string { return s.sgr("32", text) }

// pick chooses a sign or its spelling in ASCII.
func (s style) pick(sign, ascii string) string {
	if s.unicode {
		return sign
	}
	return ascii
}

func (s style) dot() string      { return s.pick("⏺", "*") }
func (s style) ellipsis() string { return s.pick("…", "...") }
func (s style) between() string  { return s.pick(" · ", ", ") }
func (s style) bar() string      { return s.pick("│ ", "| ") }

// printable takes the control characters out of what a model, a tool or a provider said, all but line breaks and tabs:
// shown on a terminal they would act on it. So would the characters that turn the direction of others around, behind which text
// can hide. What is recorded keeps them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// oneLine is printable text on one line, at most n characters of it; 0 means all.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if n == 0 {
		return s
	}
	return clip(s, n)
}

// clip keeps at most n characters of a text and marks the cut.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}
