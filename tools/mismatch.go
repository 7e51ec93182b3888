package tools

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fermata/tools/workspace"
)

// Bounds of the search for what was meant.
const (
	mismatchInput = 4 << 20 // bytes of a file up to which anything is looked for
	mismatchLines = 40      // lines of the file that are shown
	alike         = 0.6     // share of two lines' letter pairs from which they are near each other
)

// mismatch says why old is not in text, as exactly as can be found out, and shows the lines that may have been meant. Both
// have plain line endings. It is for the model that gave old.
func mismatch(text, old string) string {
	if len(text) > mismatchInput {
		return "The file is too long to look for something like it; use grep to find the lines, and read_file to see them."
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, slip := range slips {
		meant := slip.mend(old)
		if meant == old || strings.TrimSpace(meant) == "" {
			continue
		}
		if at := places(text, meant, true); len(at) > 0 {
			return fmt.Sprintf("%s: without that it is at line %s.", slip.says, lineList(linesAt(text, at)))
		}
	}
	for _, f := range folds {
		meant := f.fold(old)
		if strings.TrimSpace(meant) == "" {
			continue
		}
		at := places(f.fold(text), meant, true)
		if len(at) == 0 {
			continue
		}
		found := linesAt(f.fold(text), at)
		count := strings.Count(old, "\n") + 1
		if strings.HasSuffix(old, "\n") && count > 1 {
			count--
		}
		return fmt.Sprintf("The same text with %s is at line %s: %s. There the file has:\n%s", f.says, lineList(found),
			f.differ(lines[found[0]-1:], strings.Split(old, "\n"), found[0]), numbered(lines, found[0], count))
	}
	return nearest(lines, strings.Split(strings.Trim(old, "\n"), "\n"))
}

// slips are what models add to a text that they quote.
var slips = []struct {
	says string
	mend func(string) string
}{
	{"It has the line numbers and tabs in it that read_file adds", func(s string) string {
		return eachLine(s, func(l string) string { return lineNumber.ReplaceAllString(l, "") })
	}},
	{"It has the file name and line number in it that grep adds", func(s string) string {
		return eachLine(s, func(l string) string { return grepPrefix.ReplaceAllString(l, "") })
	}},
	{"It begins or ends with an empty line or a newline that is not in the file there", func(s string) string {
		return strings.Trim(s, "\n")
	}},
	{"It is escaped once too often, with \\n, \\t or \\\" for the characters themselves", func(s string) string {
		return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(s)
	}},
	{"It has HTML entities for characters", func(s string) string {
		return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&amp;", "&").Replace(s)
	}},
}

var (
	lineNumber = regexp.MustCompile(`^ *\d+\t`)
	grepPrefix = regexp.MustCompile(`^[^\s:]+[:-]\d+[:-]`)
)

func eachLine(s string, f func(string) string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = f(l)
	}
	return strings.Join(lines, "\n")
}

// folds make texts the same that differ in one respect, from the least to the most. They keep the number of lines.
var folds = []struct {
	says   string
	fold   func(string) string
	differ func(lines, old []string, first int) string
}{
	{"other white space", func(s string) string { return eachLine(s, squeeze) }, spaceDiffers},
	{"characters in another Unicode normal form", norm.NFC.String, charDiffers},
	{"other quotes, dashes or spaces", plainChars, charDiffers},
	{"other upper and lower case", strings.ToLower, charDiffers},
	{"other white space, case and characters", func(s string) string {
		return eachLine(strings.ToLower(plainChars(norm.NFC.String(s))), squeeze)
	}, charDiffers},
}

// squeeze is a line without the white space that people and models get wrong.
func squeeze(l string) string { return strings.Join(strings.Fields(l), " ") }

// plainChars has the characters of typewriters for those of typesetters, and none that cannot be seen.
func plainChars(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("‘’‚‛′´`", r):
			return '\''
		case strings.ContainsRune("“”„‟″«»", r):
			return '"'
		case strings.ContainsRune("‐‑‒–—―−", r):
			return '-'
		case r != '\n' && unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// spaceDiffers says where the white space of the file's lines is not that of old.
func spaceDiffers(lines, old []string, first int) string {
	for i, want := range old {
		if i == len(lines) {
			break
		}
		have, n := lines[i], first+i
		if i == 0 { // old can begin in the middle of a line
			if at := strings.Index(have, strings.TrimSpace(want)); at >= 0 && strings.TrimSpace(have[:at]) != "" {
				have = have[at:]
			}
		}
		if have == want || i == len(old)-1 && want == "" {
			continue
		}
		haveText, wantText := strings.TrimLeft(have, " \t"), strings.TrimLeft(want, " \t")
		haveIndent, wantIndent := have[:len(have)-len(haveText)], want[:len(want)-len(wantText)]
		if haveIndent != wantIndent && (i > 0 || want != wantText) {
			return fmt.Sprintf("line %d begins with %s, old with %s", n, blanks(haveIndent), blanks(wantIndent))
		}
		haveBody, wantBody := strings.TrimRight(haveText, " \t"), strings.TrimRight(wantText, " \t")
		if haveBody == wantBody && (i < len(old)-1 || want != wantBody) {
			return fmt.Sprintf("line %d ends with %s, old with %s", n, blanks(haveText[len(haveBody):]), blanks(wantText[len(wantBody):]))
		}
		if haveBody != wantBody && (i > 0 && i < len(old)-1 || !strings.Contains(haveBody, wantBody)) {
			return fmt.Sprintf("within line %d", n)
		}
	}
	return "see there"
}

// blanks is "2 tabs", "a tab and 3 spaces", "no white space".
func blanks(s string) string {
	var parts []string
	for len(s) > 0 {
		r, _ := utf8.DecodeRuneInString(s)
		rest := strings.TrimLeft(s, string(r))
		n := (len(s) - len(rest)) / utf8.RuneLen(r)
		switch r {
		case ' ':
			parts = append(parts, plural(n, "space"))
		case '\t':
			parts = append(parts, plural(n, "tab"))
		default:
			parts = append(parts, fmt.Sprintf("%d × %U", n, r))
		}
		s = rest
	}
	if len(parts) == 0 {
		return "no white space"
	}
	return strings.Join(parts, " and ")
}

// charDiffers says which character of the file is not that of old.
func charDiffers(lines, old []string, first int) string {
	for i, want := range old {
		if i == len(lines) || want == lines[i] {
			continue
		}
		have := lines[i]
		if i == 0 { // old can begin in the middle of a line: compare from where they are most alike
			have = from(have, want)
		}
		for len(have) > 0 && len(want) > 0 {
			h, n := utf8.DecodeRuneInString(have)
			w, m := utf8.DecodeRuneInString(want)
			if h != w {
				return fmt.Sprintf("line %d has %s where old has %s", first+i, named(have), named(want))
			}
			have, want = have[n:], want[m:]
		}
	}
	return "see there"
}

// from is the end of a line that shares the longest start with old.
func from(line, old string) string {
	best, length := line, 0
	for i := range line {
		n := 0
		for n < len(old) && i+n < len(line) && line[i+n] == old[n] {
			n++
		}
		if n > length {
			best, length = line[i:], n
		}
	}
	return best
}

// named is the character that s begins with, with those that combine with it: “ (U+201C).
func named(s string) string {
	n := max(1, norm.NFC.NextBoundaryInString(s, true))
	var codes []string
	for _, r := range s[:n] {
		codes = append(codes, fmt.Sprintf("%U", r))
	}
	return fmt.Sprintf("%s (%s)", workspace.Show(s[:n]), strings.Join(codes, " "))
}

// nearest tells of text that only resembles old.
func nearest(lines, old []string) string {
	start, offset := mostAlike(lines, old)
	if start < 0 {
		return "Nothing like it is in the file; read the file again."
	}
	first := max(0, start-offset)
	for i, want := range old {
		if first+i >= len(lines) {
			return fmt.Sprintf("The file ends at line %d, after the lines that old begins with. The nearest lines are:\n%s", len(lines), numbered(lines, first+1, len(old)))
		}
		have := squeeze(lines[first+i])
		if want = squeeze(want); have == want || i == 0 && strings.HasSuffix(have, want) || i == len(old)-1 && strings.HasPrefix(have, want) {
			continue
		}
		return fmt.Sprintf("The nearest is at line %d, and differs from line %d on, where old has %s. There the file has:\n%s",
			first+1, first+i+1, oneLine(fmt.Sprintf("%q", want), 160), numbered(lines, first+1, len(old)))
	}
	return fmt.Sprintf("The nearest is at line %d. There the file has:\n%s", first+1, numbered(lines, first+1, len(old)))
}

// mostAlike finds the line of the file that is most like one of old's, preferring the place where most of old's lines are;
// offset is the number of that line in old. start is -1 when nothing is alike.
func mostAlike(lines, old []string) (start, offset int) {
	exact := map[string][]int{} // old's lines that say something, to their numbers
	longest := 0
	for i, l := range old {
		if l = squeeze(l); len(l) > 3 {
			exact[l] = append(exact[l], i)
		}
		if len(l) > len(squeeze(old[longest])) {
			longest = i
		}
	}
	votes := map[int]int{} // the file's line at which old would begin, to the letters that speak for it
	for n, l := range lines {
		for _, i := range exact[squeeze(l)] {
			votes[n-i] += len(l)
		}
	}
	best, most := -1, 0
	for at, v := range votes {
		if v > most || v == most && at < best {
			best, most = at, v
		}
	}
	if most > 0 {
		return max(best, 0), max(-best, 0)
	}
	want := letterPairs(old[longest])
	start, score := -1, alike
	for n, l := range lines {
		if len(l) > 8<<10 {
			continue
		}
		if s := dice(want, letterPairs(l)); s > score {
			start, score = n, s
		}
	}
	return start, longest
}

// letterPairs are the pairs of neighbouring bytes of a line, ascending.
func letterPairs(l string) []uint16 {
	l = squeeze(l)
	pairs := make([]uint16, 0, len(l))
	for i := 1; i < len(l); i++ {
		pairs = append(pairs, uint16(l[i-1])<<8|uint16(l[i]))
	}
	slices.Sort(pairs)
	return pairs
}

// dice is how much two sorted lists have in common, from 0 to 1.
func dice(a, b []uint16) float64 {
	if len(a) == 0 || len(b) == 0 || len(a) > 4*len(b) || len(b) > 4*len(a) {
		return 0
	}
	same := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			same++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return 2 * float64(same) / float64(len(a)+len(b))
}

// numbered are count lines of the file from a number on, as read_file shows them.
func numbered(lines []string, first, count int) string {
	var b strings.Builder
	cut := count > mismatchLines
	for n := first; n < first+min(count, mismatchLines) && n <= len(lines); n++ {
		l, long := clip(lines[n-1], 400)
		if long {
			l += "…"
		}
		fmt.Fprintf(&b, "%d\t%s\n", n, l)
	}
	if cut {
		b.WriteString("…\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
