package lsp

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fermata/rpc/wire"
)

func at(line, char uint32) wire.Position { return wire.Position{Line: line, Character: char} }

func TestAnEditIsAppliedWhereTheClientMeansIt(t *testing.T) {
	for name, tt := range map[string]struct {
		text       string
		start, end wire.Position
		with       string
		want       string
		enc        encoding
	}{
		"insert at the start":              {"abc", at(0, 0), at(0, 0), "x", "xabc", utf16Units},
		"insert at the end":                {"abc", at(0, 3), at(0, 3), "x", "abcx", utf16Units},
		"into an empty text":               {"", at(0, 0), at(0, 0), "x", "x", utf16Units},
		"behind the end of a line":         {"ab\ncd", at(0, 9), at(0, 99), "x", "abx\ncd", utf16Units},
		"behind the last line":             {"ab\ncd", at(9, 0), at(9, 9), "x", "ab\ncdx", utf16Units},
		"on the line after the last break": {"ab\n", at(1, 0), at(1, 0), "x", "ab\nx", utf16Units},
		"over several lines":               {"ab\ncd\nef", at(0, 1), at(2, 1), "x", "axf", utf16Units},
		"a whole line":                     {"ab\ncd\nef", at(1, 0), at(2, 0), "", "ab\nef", utf16Units},
		"lines that end with CRLF":         {"ab\r\ncd\r\nef", at(1, 1), at(2, 0), "x", "ab\r\ncxef", utf16Units},
		"lines that end with CR":           {"ab\rcd\ref", at(1, 1), at(2, 0), "x", "ab\rcxef", utf16Units},
		"behind an umlaut":                 {"äb", at(0, 1), at(0, 2), "x", "äx", utf16Units},
		"behind three-byte characters":     {"日本語", at(0, 1), at(0, 2), "x", "日x語", utf16Units},
		"behind a surrogate pair":          {"a😀b", at(0, 3), at(0, 4), "x", "a😀x", utf16Units},
		"a surrogate pair":                 {"a😀b", at(0, 1), at(0, 3), "", "ab", utf16Units},
		"in the middle of a pair":          {"a😀b", at(0, 2), at(0, 2), "x", "ax😀b", utf16Units},
		"combining characters":             {"e\u0301x", at(0, 1), at(0, 2), "", "ex", utf16Units},
		"a family":                         {"👨‍👩‍👧!", at(0, 8), at(0, 9), "?", "👨‍👩‍👧?", utf16Units},
		"a reversed range":                 {"abcd", at(0, 3), at(0, 1), "x", "axd", utf16Units},
		"bytes behind an umlaut":           {"äb", at(0, 2), at(0, 3), "x", "äx", utf8Bytes},
		"bytes behind an emoji":            {"a😀b", at(0, 5), at(0, 6), "x", "a😀x", utf8Bytes},
		"bytes in the middle of an emoji":  {"a😀b", at(0, 3), at(0, 5), "x", "axb", utf8Bytes},
	} {
		t.Run(name, func(t *testing.T) {
			c := change{Range: &wire.Range{Start: tt.start, End: tt.end}, Text: tt.with}
			if got := c.apply(tt.enc, tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := (change{Text: "new"}).apply(utf16Units, "old"); got != "new" {
		t.Errorf("a change without a range: %q", got)
	}
}

// Whatever the changes are, and wherever they meet, many at a time come to what one after the other does.
func TestChangesInOnePassMakeTheTextThatTheyMakeOneByOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "\n", "\r", "\r\n", "ä", "😀", "cd", "\ufffd"}
	random := func(n int) string {
		var b strings.Builder
		for range rnd.IntN(n) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	together := 0
	for range 20000 {
		text, enc := random(12), encoding(rnd.IntN(2) == 0)
		places := make([]wire.Position, 2*(1+rnd.IntN(4)))
		for i := range places {
			places[i] = enc.position(text, rnd.IntN(len(text)+1))
			if rnd.IntN(20) == 0 {
				places[i].Character += uint32(rnd.IntN(3)) // may be nowhere
			}
		}
		if rnd.IntN(8) > 0 {
			slices.SortFunc(places, func(a, b wire.Position) int {
				return cmp.Or(cmp.Compare(b.Line, a.Line), cmp.Compare(b.Character, a.Character))
			})
		}
		var changes []change
		want := text
		for i := 0; i < len(places); i += 2 {
			c := change{Range: &wire.Range{Start: places[i+1], End: places[i]}, Text: random(4)}
			changes = append(changes, c)
			want = c.apply(enc, want)
		}
		if backwards(changes) > 1 {
			together++
		}
		if got := enc.apply(text, changes); got != want {
			t.Fatalf("%q, changed by %+v: %q, want %q", text, changes, got, want)
		}
	}
	if together < 5000 {
		t.Errorf("only %d were made in one pass", together)
	}
}

// Messages are read by nobody meanwhile: one by one it took 12 seconds, in which no stop was heard.
//
// guards S2
func TestAReplacementEverywhereInALongDocumentIsMadeInOnePass(t *testing.T) {
	text := strings.Repeat("here is a foo and another foo\n", 20000)
	var changes []change
	for line := 19999; line >= 0; line-- {
		for _, char := range []uint32{26, 10} {
			changes = append(changes, change{Range: &wire.Range{Start: at(uint32(line), char), End: at(uint32(line), char+3)}, Text: "barbar"})
		}
	}
	got, ok := utf16Units.replace(text, changes)
	if n := backwards(changes); n != len(changes) || !ok || got != strings.ReplaceAll(text, "foo", "barbar") {
		t.Errorf("%d of %d, %v", n, len(changes), ok)
	}
	if got != utf16Units.apply(text, changes) {
		t.Error("a didChange makes another text")
	}
}

// Whatever the texts are, the minimal change turns one into the other, by way of positions, in both encodings.
func TestTheSmallestChangeMakesTheWantedText(t *testing.T) {
	alphabet := []string{"a", "b", "ä", "日", "😀", "\n", "\r\n", "e\u0301"}
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 20000 {
		before, after := text(), text()
		start, end, with := difference(before, after)
		for _, enc := range []encoding{utf16Units, utf8Bytes} {
			c := change{Range: &wire.Range{Start: enc.position(before, start), End: enc.position(before, end)}, Text: with}
			if got := c.apply(enc, before); got != after {
				t.Fatalf("%q to %q by %+v %q: got %q", before, after, *c.Range, with, got)
			}
		}
	}
	if start, end, with := difference("one two three", "one 2 three"); start != 4 || end != 7 || with != "2" {
		t.Errorf("%d %d %q", start, end, with)
	}
}

func TestAnchorsMoveWithTheTextAboveThem(t *testing.T) {
	for _, tt := range []struct {
		c    change
		want uint32
	}{
		{change{Range: &wire.Range{Start: at(0, 0), End: at(0, 0)}, Text: "x\ny\n"}, 7},
		{change{Range: &wire.Range{Start: at(1, 0), End: at(3, 0)}}, 3},
		{change{Range: &wire.Range{Start: at(9, 0), End: at(9, 0)}, Text: "\n\n"}, 5},
		{change{Range: &wire.Range{Start: at(5, 3), End: at(5, 3)}, Text: "\n"}, 5},
		{change{Range: &wire.Range{Start: at(5, 0), End: at(5, 0)}, Text: "\n"}, 6},
		{change{Text: "all\n"}, 5},
	} {
		v := views{turns: []*view{{key: "k", anchor: wire.Anchor{Range: wire.Range{Start: at(5, 0), End: at(6, 0)}}}}}
		v.shift("k", tt.c)
		if got := v.turns[0].anchor.Range.Start.Line; got != tt.want {
			t.Errorf("%+v: line %d, want %d", tt.c, got, tt.want)
		}
	}
}

func TestWordsAreCountedAcrossDeltas(t *testing.T) {
	var v view
	for _, s := range []string{"He", "llo wor", "ld", " and", " ", " more\n"} {
		v.count(1, s)
	}
	if v.words != 4 {
		t.Errorf("%d words", v.words)
	}
	v.count(2, "next")
	if v.words != 5 || v.before != 4 {
		t.Errorf("%+v", v)
	}
}
