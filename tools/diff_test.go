package tools

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What both texts begin and end with is cut off before they are compared: the line numbers are those of the whole all the same.
func TestADiffMakesTheNewTextOfTheOld(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		before := make([]string, rng.IntN(20))
		for i := range before {
			before[i] = string(rune('a'+rng.IntN(20))) + "\n"
		}
		at := rng.IntN(len(before) + 1)
		n := rng.IntN(min(3, len(before)-at+1))
		var new []string
		for range rng.IntN(3) {
			new = append(new, string(rune('A'+rng.IntN(20)))+"\n")
		}
		a, b := strings.Join(before, ""), strings.Join(slices.Concat(before[:at], new, before[at+n:]), "")
		if rng.IntN(3) == 0 {
			a = strings.TrimSuffix(a, "\n")
		}
		if rng.IntN(3) == 0 {
			b = strings.TrimSuffix(b, "\n")
		}
		d := unified([]byte(a), []byte(b))
		if got, err := applied(a, d); err != nil || got != b {
			t.Fatalf("of %q and %q:\n%s\nit makes %q, %v", a, b, d, got, err)
		}
		if (d == "") != (a == b) {
			t.Fatalf("of %q and %q: %q", a, b, d)
		}
	}
}

// applied is a text changed as a unified diff says, at exactly the lines that it names.
func applied(text, d string) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	out := ""
	next := 0 // index of the line that is not copied yet
	var last byte
	for l := range strings.Lines(d) {
		var a, an, b, bn int
		switch n, _ := fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &a, &an, &b, &bn); {
		case n == 4:
			if an > 0 {
				a--
			}
			if a < next || a > len(lines) {
				return out, fmt.Errorf("%s: the old text has %d lines", l, len(lines))
			}
			out += strings.Join(lines[next:a], "")
			next = a
			if have := strings.Count(out, "\n"); bn > 0 && have != b-1 {
				return out, fmt.Errorf("%s: the new text has %d lines there", l, have)
			}
		case l[0] == '\\':
			if last != '-' { // what ends so is in the new text
				out = strings.TrimSuffix(out, "\n")
			}
		case l[0] == '+':
			out += l[1:]
		case next == len(lines) || strings.TrimSuffix(lines[next], "\n") != strings.TrimSuffix(l[1:], "\n"):
			return out, fmt.Errorf("%q is not line %d", l, next+1)
		default:
			if l[0] == ' ' {
				out += l[1:]
			}
			next++
		}
		last = l[0]
	}
	return out + strings.Join(lines[next:], ""), nil
}
