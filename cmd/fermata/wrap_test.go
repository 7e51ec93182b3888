package main

import (
	"strings"
	"testing"
)

func TestTextBreaksBetweenWordsHoweverItComes(t *testing.T) {
	cases := map[string]struct {
		width      int
		text, want string
	}{
		"words that fit":            {20, "one two three", "one two three"},
		"a word at the edge":        {9, "one two three four", "one two \nthree \nfour"},
		"exactly the width":         {7, "one two three", "one two\nthree"},
		"a word longer than a line": {4, "abcdefghij kl", "abcd\nefgh\nij \nkl"},
		"lines of its own":          {8, "one\ntwo three\n\nfour", "one\ntwo \nthree\n\nfour"},
		"wide characters":           {6, "停止是对话", "停止是\n对话"},
		"tabs of code":              {20, "if x {\n\treturn\n\t\ty\n}", "if x {\n\treturn\n\t\ty\n}"},
		"a word behind tabs":        {20, "\t\tone two", "\t\tone \ntwo"},
		"a tab at the edge":         {12, "one two\tthree\tfour", "one two\t\nthree\tfour"},
		"a tab beyond the edge":     {10, "\t\tone", "\t\none"},
		"no width known":            {0, "one two three", "one two three"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.text); size++ {
				w := wrapper{width: c.width}
				var got strings.Builder
				for runes := []rune(c.text); len(runes) > 0; {
					n := min(size, len(runes))
					got.WriteString(w.add(string(runes[:n])))
					runes = runes[n:]
				}
				if got.WriteString(w.flush()); got.String() != c.want {
					t.Fatalf("in pieces of %d: %q, want %q", size, got.String(), c.want)
				}
			}
		})
	}
}

func TestTextBreaksBetweenWordsAlsoWhenTheTerminalIsResized(t *testing.T) {
	w := wrapper{width: 20}
	got := w.add("one two three four fi")
	w.resize(8) // the line is wrapped there as "one two " and "three"
	got += w.add("ve sixteen ")
	w.resize(0)
	w.resize(8) // at the edge
	got += w.add("seven ")
	w.resize(12)
	got += w.add("eight nine") + w.flush()
	if want := "one two three four five \nsixteen \nseven eight \nnine"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
