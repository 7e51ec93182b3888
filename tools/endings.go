package tools

import (
	"slices"
	"strings"
)

// allCRLF reports whether text has line endings and all of them are CR LF.
func allCRLF(text string) bool {
	n := strings.Count(text, "\n")
	return n > 0 && n == strings.Count(text, "\r\n")
}

func toLF(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// lined is a text whose line endings were all made plain newlines. A CR that no newline follows is a character like others.
type lined struct {
	original string
	text     string
	crlf     []int // offsets in text of the newlines that are CR LF in original, ascending
	all      bool  // there are newlines, and all of them are CR LF; known beforehand, because replace is called for each place
}

func newLined(original string) lined {
	l := lined{original: original, text: toLF(original)}
	if len(l.text) == len(original) {
		return l
	}
	for i := 0; ; {
		n := strings.Index(original[i:], "\r\n")
		if n < 0 {
			l.all = len(l.crlf) == strings.Count(l.text, "\n")
			return l
		}
		i += n
		l.crlf = append(l.crlf, i-len(l.crlf))
		i += 2
	}
}

// at is where an offset of text is in original: in front of a CR rather than after it.
func (l lined) at(i int) int {
	n, _ := slices.BinarySearch(l.crlf, i)
	return i + n
}

// ends tells of each newline in text[i:j] whether it is CR LF.
func (l lined) ends(i, j int) (crlf []bool) {
	for n := i; ; n++ {
		k := strings.IndexByte(l.text[n:j], '\n')
		if k < 0 {
			return crlf
		}
		n += k
		_, is := slices.BinarySearch(l.crlf, n)
		crlf = append(crlf, is)
	}
}

// replace is the text with text[i:j] replaced by with, whose line endings are plain, in the endings of original: a line that
// stays keeps its own, one that takes the place of another takes that one's, and one that is added ends as the line before it.
func (l lined) replace(i, j int, with string) string {
	if len(l.crlf) == 0 {
		return with
	}
	if l.all {
		return strings.ReplaceAll(with, "\n", "\r\n")
	}
	ends := l.ends(i, j)
	if after := strings.IndexByte(l.text[j:], '\n'); after >= 0 { // the line in which the text that is replaced ends
		ends = append(ends, l.ends(j+after, j+after+1)...)
	}
	last := false // how the line before ends
	if len(ends) > 0 {
		last = ends[0]
	} else if before := strings.LastIndexByte(l.text[:i], '\n'); before >= 0 {
		last = l.ends(before, before+1)[0]
	}
	var out strings.Builder
	lines := strings.SplitAfter(with, "\n")
	from := align(strings.SplitAfter(l.text[i:j], "\n"), lines)
	for k, line := range lines {
		line, ended := strings.CutSuffix(line, "\n")
		out.WriteString(line)
		if !ended {
			break // the last one
		}
		if was := from[k]; was >= 0 && was < len(ends) {
			last = ends[was]
		}
		if last {
			out.WriteByte('\r')
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// alignCells bounds the work of align, and its memory to twice as many bytes.
const alignCells = 4 << 20

// align tells of each new line which old line it is, or takes the place of; -1 for one that was added.
func align(old, new []string) []int {
	from := make([]int, len(new))
	start := 0
	for start < len(old) && start < len(new) && old[start] == new[start] {
		from[start] = start
		start++
	}
	tail := 0
	for tail < len(old)-start && tail < len(new)-start && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
		from[len(new)-tail] = len(old) - tail
	}
	a, b := old[start:len(old)-tail], new[start:len(new)-tail]
	place := func(i, j, toI, toJ int) { // lines between two that stay
		for k := j; k < toJ; k++ {
			from[start+k] = -1
			if i+k-j < toI {
				from[start+k] = start + i + k - j
			}
		}
	}
	if len(a) >= 1<<16 || len(b) >= 1<<16 || (len(a)+1)*(len(b)+1) > alignCells {
		place(0, 0, len(a), len(b))
		return from
	}
	// common[i][j] is the number of lines that a[i:] and b[j:] have in common, in order
	width := len(b) + 1
	common := make([]uint16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	gapI, gapJ := 0, 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			place(gapI, gapJ, i, j)
			from[start+j] = start + i
			i++
			j++
			gapI, gapJ = i, j
		case common[(i+1)*width+j] >= common[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	place(gapI, gapJ, len(a), len(b))
	return from
}
