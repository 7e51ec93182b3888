package main

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// tabStop is how many columns lie between the stops of a terminal's tabs.
const tabStop = 8

// wrapper breaks a text that comes in pieces between words, where a terminal would break it anywhere. It holds back the
// last word until it knows where that ends; flush gives it out. Its zero value breaks nothing.
type wrapper struct {
	width int // columns; 0: as many as come
	col   int // where the cursor is
	word  strings.Builder
	size  int // columns of word
}

// resize is told how wide the terminal is now; 0 is not known, and changes nothing. What a narrower terminal does to the line that
// the cursor is in is to wrap it.
func (w *wrapper) resize(width int) {
	if w.width <= 0 || width <= 0 || width == w.width {
		return
	}
	if w.width = width; w.col > width {
		w.col = (w.col-1)%width + 1 // it stays behind the last character
	}
}

// add takes a piece and returns what can be shown now.
func (w *wrapper) add(text string) string {
	if w.width <= 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			w.place(&out)
			out.WriteByte('\n')
			w.col = 0
		case r == ' ' || r == '\t':
			w.place(&out)
			to := w.col + 1
			if r == '\t' {
				to = w.col - w.col%tabStop + tabStop
			}
			if to <= w.width { // at the edge the break stands for it
				out.WriteRune(r)
			}
			w.col = min(to, w.width)
		default:
			n := runewidth.RuneWidth(r)
			if n > 1 || w.size+n > w.width { // a wide character may stand at a line's start, and a word may be too long
				w.place(&out)
			}
			w.word.WriteRune(r)
			w.size += n
			if n > 1 {
				w.place(&out)
			}
		}
	}
	return out.String()
}

// flush returns the word that was held back.
func (w *wrapper) flush() string {
	var out strings.Builder
	w.place(&out)
	return out.String()
}

func (w *wrapper) place(out *strings.Builder) {
	if w.word.Len() == 0 {
		return
	}
	if w.col > 0 && w.col+w.size > w.width {
		out.WriteByte('\n')
		w.col = 0
	}
	out.WriteString(w.word.String())
	w.col += w.size
	w.word.Reset()
	w.size = 0
}
