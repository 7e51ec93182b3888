package neovim

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen is the grid that Neovim draws, from the events of ext_linegrid. Floats and popups are drawn into it by Neovim.
type screen struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced with each flush
	rows    [][]cell
	groups  map[int64]string // the topmost highlight group of an attribute id
	shown   []string         // the rows as text at the last flush
	cells   [][]cell         // likewise
	ended   bool
}

// cell is one column. The second column of a wide character has an empty text.
type cell struct {
	text string
	attr int64
}

func newScreen() *screen {
	return &screen{changed: make(chan struct{}), groups: map[int64]string{}}
}

// redraw takes a batch of events: each a name followed by the arguments of its calls.
func (s *screen) redraw(updates ...[]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, update := range updates {
		name, _ := update[0].(string)
		for _, args := range update[1:] {
			if args, ok := args.([]any); ok {
				s.apply(name, args)
			}
		}
	}
}

func (s *screen) apply(name string, args []any) {
	switch name {
	case "grid_resize":
		width, height := number(args[1]), number(args[2])
		rows := make([][]cell, height)
		for i := range rows {
			rows[i] = make([]cell, width)
			for j := range rows[i] {
				rows[i][j].text = " "
				if i < len(s.rows) && j < len(s.rows[i]) {
					rows[i][j] = s.rows[i][j]
				}
			}
		}
		s.rows = rows
	case "grid_clear":
		for _, row := range s.rows {
			for i := range row {
				row[i] = cell{text: " "}
			}
		}
	case "grid_line":
		s.line(number(args[1]), number(args[2]), args[3].([]any))
	case "grid_scroll":
		s.scroll(number(args[1]), number(args[2]), number(args[3]), number(args[4]), number(args[5]))
	case "hl_attr_define":
		if infos, ok := args[3].([]any); ok && len(infos) > 0 {
			if info, ok := infos[len(infos)-1].(map[string]any); ok {
				s.groups[int64(number(args[0]))], _ = info["hi_name"].(string)
			}
		}
	case "flush":
		s.flush()
	}
}

// line writes cells of one row: each is a text, and if they differ from the one before an attribute and a repetition.
func (s *screen) line(row, column int, cells []any) {
	var attr int64
	for _, c := range cells {
		c := c.([]any)
		repeat := 1
		if len(c) > 1 {
			attr = int64(number(c[1]))
		}
		if len(c) > 2 {
			repeat = number(c[2])
		}
		text, _ := c[0].(string)
		for range repeat {
			s.rows[row][column] = cell{text, attr}
			column++
		}
	}
}

// scroll moves the rows of a region up, or down if by is negative.
func (s *screen) scroll(top, bottom, left, right, by int) {
	move := func(to, from int) { copy(s.rows[to][left:right], s.rows[from][left:right]) }
	if by > 0 {
		for row := top; row < bottom-by; row++ {
			move(row, row+by)
		}
	} else {
		for row := bottom - 1; row >= top-by; row-- {
			move(row, row+by)
		}
	}
}

func (s *screen) flush() {
	s.shown, s.cells = make([]string, len(s.rows)), make([][]cell, len(s.rows))
	for i, row := range s.rows {
		var b strings.Builder
		for _, c := range row {
			b.WriteString(c.text)
		}
		s.shown[i], s.cells[i] = strings.TrimRight(b.String(), " "), slices.Clone(row)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.shown, "\n")
}

// shows is called with the lock held.
func (s *screen) shows(texts []string) bool {
	all := strings.Join(s.shown, "\n")
	return !slices.ContainsFunc(texts, func(text string) bool { return !pattern(text).MatchString(all) })
}

func (s *screen) find(text string) (row, column int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place(text)
}

// place is called with the lock held.
func (s *screen) place(text string) (row, column int) {
	for row, line := range s.shown {
		before, _, found := strings.Cut(line, text)
		if !found {
			continue
		}
		for column, c := range s.cells[row] {
			if before == "" {
				return row, column
			}
			before = strings.TrimPrefix(before, c.text)
		}
	}
	return -1, -1
}

func (s *screen) group(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, column := s.place(text)
	if row < 0 {
		return ""
	}
	return s.groups[s.cells[row][column].attr]
}

// await waits until done, which is called with the lock held, is true of what was flushed.
func (s *screen) await(t testing.TB, what string, done func(*screen) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		ok, ended, changed := done(s), s.ended, s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		if ended {
			t.Fatalf("Neovim ended while waiting for %s; the screen was\n%s", what, s.text())
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waited %s for %s; the screen is\n%s", patience, what, s.text())
		}
	}
}

func number(v any) int {
	switch n := v.(type) {
	case int64:
		return int(n)
	case uint64:
		return int(n)
	case int:
		return n
	}
	return 0
}
