package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
)

// fileModel is what the files of a workspace are to hold: on disk, and as an editor has the open ones.
type fileModel struct {
	disk map[string]string
	docs map[string]string
}

func (m *fileModel) text(name string) (text string, ok bool) {
	if text, ok = m.docs[name]; !ok {
		text, ok = m.disk[name]
	}
	return text, ok
}

func (m *fileModel) content(name string) *string {
	if text, ok := m.text(name); ok {
		return &text
	}
	return nil
}

// set is what a tool or a revert does to a file: an open document is changed in the editor, but deleted on disk.
func (m *fileModel) set(name string, text *string) {
	_, open := m.docs[name]
	switch {
	case text == nil:
		delete(m.disk, name)
	case open:
		m.docs[name] = *text
	default:
		m.disk[name] = *text
	}
}

// take makes a file what it is in another model: on disk, which an open document does not tell of, and in the editor.
func (m *fileModel) take(from *fileModel, name string) {
	for _, side := range []struct{ to, from map[string]string }{{m.disk, from.disk}, {m.docs, from.docs}} {
		if text, ok := side.from[name]; ok {
			side.to[name] = text
		} else {
			delete(side.to, name)
		}
	}
}

func (m *fileModel) clone() fileModel { return fileModel{maps.Clone(m.disk), maps.Clone(m.docs)} }

// walkNames are the files that a walk is about.
var walkNames = []string{"a.txt", "b.txt", "crlf.txt", "dir/c.txt", "dir/d.txt", "dir/sub/e.txt", "new/f.txt", "ü name.txt"}

// walkCall is a call of a tool that changes files, and what it is to come to when it is done.
type walkCall struct {
	tool  string
	args  map[string]any
	after map[string]*string // by path, as a tool sees the file; nil is no file
	disk  bool               // the disk alone is changed, whatever is open
	never bool               // it must not be done
	sure  bool               // it must be done once its files were read
}

// walker makes up what happens next. n numbers lines, so that each is unlike any other.
type walker struct {
	*rand.Rand
	n int
}

func (r *walker) chance(percent int) bool { return r.IntN(100) < percent }

func (r *walker) pick(names []string) string { return names[r.IntN(len(names))] }

func (r *walker) line() string {
	r.n++
	return fmt.Sprintf("w%d;", r.n)
}

func (r *walker) lines() string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(r.line() + "\n")
	}
	return b.String()
}

// call is one that suits the files as they are, for the most part.
func (r *walker) call(m *fileModel) walkCall {
	for {
		var c walkCall
		var ok bool
		switch n := r.IntN(20); {
		case n < 4:
			c, ok = r.write(m), true
		case n < 11:
			c, ok = r.edit(m)
		case n < 14:
			c, ok = r.patch(m)
		case n < 16:
			c, ok = r.move(m)
		case n < 18:
			c, ok = r.remove(m)
		default:
			c, ok = r.command(), true
		}
		if ok {
			return c
		}
	}
}

func (r *walker) write(m *fileModel) walkCall {
	name, text := r.pick(walkNames), r.lines()
	after := text
	if was, _ := m.text(name); strings.Contains(was, "\r\n") {
		after = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return walkCall{tool: "write_file", args: map[string]any{"path": name, "content": text}, after: map[string]*string{name: &after}, sure: true}
}

// someLine is the text of a line of a file that has any.
func (r *walker) someLine(text string) (line string, ok bool) {
	lines := strings.Fields(text)
	if len(lines) == 0 {
		return "", false
	}
	return r.pick(lines), true
}

func (r *walker) edit(m *fileModel) (walkCall, bool) {
	name := r.pick(walkNames)
	text, _ := m.text(name)
	old, ok := r.someLine(text)
	if !ok {
		return walkCall{}, false
	}
	changed := r.line()
	after := strings.Replace(text, old, changed, 1)
	c := walkCall{tool: "edit_file", args: map[string]any{"path": name, "old": old, "new": changed}, after: map[string]*string{name: &after}, sure: true}
	if r.chance(10) {
		c.args["old"], c.never = "no such text", true
	}
	return c, true
}

// patch changes two files, or creates one too; of some patches a hunk does not apply.
func (r *walker) patch(m *fileModel) (walkCall, bool) {
	var b strings.Builder
	c := walkCall{tool: "apply_patch", after: map[string]*string{}, sure: true}
	for range 2 {
		name := r.pick(walkNames)
		text, exists := m.text(name)
		old, ok := r.someLine(text)
		if _, twice := c.after[name]; twice || strings.Contains(text, "\r") || exists && !ok {
			continue
		}
		changed := r.line()
		after := changed + "\n"
		if !exists {
			fmt.Fprintf(&b, "--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+%s\n", name, changed)
		} else {
			after = strings.Replace(text, old, changed, 1)
			fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n@@\n-%s\n+%s\n", name, name, old, changed)
		}
		c.after[name] = &after
	}
	if len(c.after) == 0 {
		return c, false
	}
	if r.chance(15) {
		c.never = true
		fmt.Fprintf(&b, "--- a/a.txt\n+++ b/a.txt\n@@\n-no such line\n+x\n")
	}
	c.args = map[string]any{"patch": b.String()}
	return c, true
}

func (r *walker) move(m *fileModel) (walkCall, bool) {
	from, to := r.pick(walkNames), r.pick(walkNames)
	text := m.content(from)
	if text == nil || from == to {
		return walkCall{}, false
	}
	c := walkCall{tool: "move_path", args: map[string]any{"from": from, "to": to}, after: map[string]*string{from: nil, to: text}}
	_, open := m.docs[from]
	_, opened := m.docs[to]
	c.never = m.content(to) != nil || open || opened
	c.sure = !c.never
	return c, true
}

func (r *walker) remove(m *fileModel) (walkCall, bool) {
	name := r.pick(walkNames)
	if m.content(name) == nil {
		return walkCall{}, false
	}
	_, open := m.docs[name]
	return walkCall{tool: "delete_path", args: map[string]any{"path": name}, after: map[string]*string{name: nil}, never: open, sure: !open}, true
}

func (r *walker) command() walkCall {
	name := r.pick(walkNames)
	if r.chance(30) {
		return walkCall{tool: "run", args: map[string]any{"command": "rm -f '" + name + "'"}, after: map[string]*string{name: nil}, disk: true, sure: true}
	}
	text := r.line() + "\n"
	command := fmt.Sprintf("mkdir -p '%s' && echo '%s' > '%s'", path.Dir(name), strings.TrimSpace(text), name)
	return walkCall{tool: "run", args: map[string]any{"command": command}, after: map[string]*string{name: &text}, disk: true, sure: true}
}

// make is what a call that is done makes of the files.
func (c *walkCall) make(m *fileModel) {
	for name, text := range c.after {
		switch {
		case !c.disk:
			m.set(name, text)
		case text == nil:
			delete(m.disk, name)
		default:
			m.disk[name] = *text
		}
	}
}

// walkStep is what a call or a revert did to a file; nil is no file.
type walkStep struct {
	turn          string // "" of a revert
	name          string
	before, after *string
}

// walkChange is what steps came to for a file. It is sure to be undone as long as the file holds what was left, and nobody else has
// changed it in between.
type walkChange struct {
	before, after *string
	foreign       bool
	known         map[string]bool
}

func changesOf(steps []walkStep) map[string]*walkChange {
	out := map[string]*walkChange{}
	for _, s := range steps {
		c := out[s.name]
		if c == nil {
			c = &walkChange{before: s.before, known: map[string]bool{shownText(s.before): true}}
			out[s.name] = c
		}
		c.foreign = c.foreign || !c.known[shownText(s.before)]
		c.known[shownText(s.before)], c.known[shownText(s.after)] = true, true
		c.after = s.after
	}
	return out
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func shownText(s *string) string {
	if s == nil {
		return "no file"
	}
	return fmt.Sprintf("%q", *s)
}

func object(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
