package tools

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// unified is a unified diff without its header; empty when the texts are the same. Lines that both begin or end with are not
// looked at, but for the context, so that a small change of a long text costs little.
func unified(before, after []byte) string {
	cut := 0 // lines that both begin with
	for start := 0; ; cut++ {
		n := bytes.IndexByte(before[start:], '\n') + 1
		if n == 0 || !bytes.HasPrefix(after[start:], before[start:start+n]) {
			break
		}
		start += n
	}
	cut = max(0, cut-diffContext)
	before, after = before[lineStart(before, cut):], after[lineStart(after, cut):]
	tail := 0 // bytes of whole lines that both end with
	for i := 1; i <= len(before) && i <= len(after) && before[len(before)-i] == after[len(after)-i]; i++ {
		if i < len(before) && i < len(after) && before[len(before)-i-1] == '\n' && after[len(after)-i-1] == '\n' {
			tail = i
		}
	}
	if keep := lineStart(before[len(before)-tail:], diffContext); keep < tail {
		before, after = before[:len(before)-tail+keep], after[:len(after)-tail+keep]
	}
	_, body, _ := bytes.Cut(diff.Diff("a", before, "b", after), []byte("+++ b\n"))
	if cut == 0 {
		return string(body)
	}
	var out strings.Builder
	for l := range bytes.Lines(body) {
		var a, an, b, bn int
		if n, _ := fmt.Sscanf(string(l), "@@ -%d,%d +%d,%d @@", &a, &an, &b, &bn); n == 4 {
			fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", a+cut, an, b+cut, bn)
			continue
		}
		out.Write(l)
	}
	return out.String()
}

const diffContext = 3 // lines around a change

// lineStart is the offset of the line after the first n.
func lineStart(b []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(b[at:], '\n') + 1
		if i == 0 {
			return len(b)
		}
		at += i
	}
	return at
}
