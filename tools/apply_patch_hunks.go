package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what a result says of hunks.
const (
	hunksExplained = 5 // that do not apply
	hunksNoted     = 5 // of a file, that were found elsewhere than they say
)

// patchedText is a text with a file's hunks applied.
type patchedText struct {
	text           string
	added, removed int      // lines
	notes          []string // hunks that were found elsewhere than they say
}

// applyHunks changes a text. Line endings are the text's, see lined.replace. A hunk is found by its old lines, white space and all: where
// its @@ line says, or else at the only place that has them. problems say of each hunk why it cannot be applied.
func applyHunks(text string, hunks []hunk) (out patchedText, problems []string) {
	l := newLined(text)
	f := &hunkFinder{lines: strings.SplitAfter(l.text, "\n"), text: l.text}
	if last := len(f.lines) - 1; f.lines[last] == "" {
		f.lines = f.lines[:last]
	}
	for _, h := range hunks {
		e, moved, why := f.find(h)
		if why != "" {
			problems = append(problems, h.String()+": "+why)
			continue
		}
		if moved != "" {
			out.notes = append(out.notes, moved)
		}
		f.edits = append(f.edits, e)
	}
	if len(problems) > 0 {
		return out, problems
	}
	// Lines that are added in front of a line that changes go first.
	slices.SortStableFunc(f.edits, func(a, b lineEdit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	offsets := make([]int, 1, len(f.lines)+1)
	for _, line := range f.lines {
		offsets = append(offsets, offsets[len(offsets)-1]+len(line))
	}
	var b strings.Builder
	done := 0
	for _, e := range f.edits {
		i, j := offsets[e.from], offsets[e.to]
		b.WriteString(l.original[done:l.at(i)])
		b.WriteString(l.replace(i, j, e.with))
		done = l.at(j)
		out.added += e.added
		out.removed += e.removed
	}
	b.WriteString(l.original[done:])
	out.text = b.String()
	return out, nil
}

// lineEdit replaces the lines [from, to) of a text.
type lineEdit struct {
	from, to       int
	with           string
	hunk           hunk
	added, removed int
}

// hunkFinder knows a text, and where hunks have been found in it.
type hunkFinder struct {
	text  string
	lines []string // with their newlines
	edits []lineEdit
	drift int // how much further down than it says the last hunk was found
}

// find is where a hunk belongs.
func (f *hunkFinder) find(h hunk) (e lineEdit, moved, why string) {
	old, new := h.old(), h.new()
	if len(f.edits) == 0 && len(old) > 0 && h.start <= 1 { // a byte order mark is no part of the text
		old[0] = strings.TrimPrefix(old[0], "\uFEFF")
		if len(new) > 0 {
			new[0] = strings.TrimPrefix(new[0], "\uFEFF")
		}
	}
	if len(old) == 0 && len(f.lines) > 0 {
		return e, "", "it has no line that stays or goes, so nothing says where it belongs; give lines around it"
	}
	expected := h.start - 1 + f.drift
	if h.start > 0 && expected >= 0 && expected+len(old) <= len(f.lines) && f.holds(old, expected, h.unended()) {
		e := f.edit(h, old, new, expected)
		if _, overlaps := f.overlap(e); !overlaps {
			return e, "", ""
		}
	}
	var places, taken []int
	var over lineEdit
	for at := 0; at+len(old) <= len(f.lines); at++ {
		if !f.holds(old, at, h.unended()) {
			continue
		}
		if with, overlaps := f.overlap(f.edit(h, old, new, at)); overlaps {
			taken, over = append(taken, at), with
			continue
		}
		if places = append(places, at); len(places) == placesCounted {
			break
		}
	}
	switch {
	case len(places) == 0 && len(taken) > 0:
		return e, "", fmt.Sprintf("its old lines are at line %d, which the hunk of line %d changes too; make one hunk of the two", taken[0]+1, over.hunk.line)
	case len(places) == 0:
		return e, "", f.why(old, new, h)
	case len(places) > 1:
		var at []int
		for _, p := range places {
			at = append(at, p+1)
		}
		return e, "", fmt.Sprintf("its old lines are in the file %d times, at lines %s, and not where it says; give more of the lines around it, or the right line in its @@",
			len(at), lineList(at))
	}
	at := places[0]
	if h.start > 0 {
		f.drift = at - (h.start - 1)
		moved = fmt.Sprintf("the hunk at line %d of the patch was found at line %d", h.line, at+1)
	}
	return f.edit(h, old, new, at), moved, ""
}

// holds reports whether old is at a line. Where the text's last line has no newline, one that has it is the same, unless the hunk
// speaks of that: models leave it out.
func (f *hunkFinder) holds(old []string, at int, unended bool) bool {
	if unended && at+len(old) != len(f.lines) {
		return false
	}
	for i, want := range old {
		have := f.lines[at+i]
		if have != want && (unended || at+i < len(f.lines)-1 || have+"\n" != want) {
			return false
		}
	}
	return true
}

// edit is what a hunk does at a line: lines at its beginning and end that stay are no part of it.
func (f *hunkFinder) edit(h hunk, old, new []string, at int) lineEdit {
	e := lineEdit{hunk: h}
	for _, l := range h.lines {
		switch l.op {
		case '+':
			e.added++
		case '-':
			e.removed++
		}
	}
	lead := 0
	for lead < len(h.lines) && h.lines[lead].op == ' ' {
		lead++
	}
	tail := 0
	for tail < len(h.lines)-lead && h.lines[len(h.lines)-1-tail].op == ' ' {
		tail++
	}
	unended := at+len(old) == len(f.lines) && len(old) > 0 && f.lines[len(f.lines)-1] != old[len(old)-1]
	if unended && tail == 0 {
		lead = min(lead, len(old)-1) // the last line gets its newline from here, when something comes behind it
	}
	e.from, e.to = at+lead, at+len(old)-tail
	e.with = strings.Join(new[lead:len(new)-tail], "")
	if unended && tail == 0 {
		e.with = strings.TrimSuffix(e.with, "\n")
	}
	return e
}

// overlap finds an edit that changes the same lines, or adds lines at the same place.
func (f *hunkFinder) overlap(e lineEdit) (with lineEdit, ok bool) {
	for _, o := range f.edits {
		if e.from < o.to && o.from < e.to || e.from == e.to && o.from == o.to && e.from == o.from {
			return o, true
		}
	}
	return lineEdit{}, false
}

// why says why a hunk's old lines are nowhere.
func (f *hunkFinder) why(old, new []string, h hunk) string {
	if len(f.lines) == 0 {
		return "the file is empty, and the hunk has lines that stay or go"
	}
	block := strings.Join(old, "")
	if h.unended() {
		last := len(f.lines) - len(old)
		for at := 0; at+len(old) <= len(f.lines); at++ {
			if !f.holds(ended(old), at, false) {
				continue
			}
			if at < last {
				return fmt.Sprintf("it says that the file ends with it, but its old lines are at line %d of %d", at+1, len(f.lines))
			}
			return "it is wrong about the newline at the end of the file: " + map[bool]string{true: "there is one", false: "there is none"}[strings.HasSuffix(f.text, "\n")]
		}
	}
	if len(new) > 0 {
		var at []int
		for i := 0; i+len(new) <= len(f.lines) && len(at) < linesNamed; i++ {
			if f.holds(ended(new), i, false) {
				at = append(at, i+1)
			}
		}
		if len(at) > 0 && len(new) > 1 {
			return "its old lines are not in the file, but its new ones are, at line " + lineList(at) + ": it may have been applied already"
		}
	}
	return "its old lines are not in the file. With them as old: " + mismatch(f.text, block)
}

// ended are lines that all have a newline.
func ended(lines []string) []string {
	out := slices.Clone(lines)
	for i, l := range out {
		out[i] = strings.TrimSuffix(l, "\n") + "\n"
	}
	return out
}
