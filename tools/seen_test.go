package tools

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// memory remembers as the agent does.
type memory struct {
	known map[string]string
	kept  map[string][]byte
}

func (m *memory) Known(path string) (string, bool) { sum, ok := m.known[path]; return sum, ok }
func (m *memory) Content(_ context.Context, sum string) []byte {
	return m.kept[sum]
}

func (m *memory) know(seen []Seen) {
	for _, s := range seen {
		if s.SHA256 == "" {
			delete(m.known, s.Path)
			continue
		}
		m.known[s.Path] = s.SHA256
		if s.Content != nil {
			m.kept[s.SHA256] = s.Content
		}
	}
}

// remembering is a bench whose model remembers what it has read.
type remembering struct {
	*bench
	m memory
}

func newRemembering(t *testing.T, archive string, ed editor) *remembering {
	t.Helper()
	b := &remembering{bench: newBench(t, archive, ed), m: memory{map[string]string{}, map[string][]byte{}}}
	b.memory = &b.m
	return b
}

func (b *remembering) run(t *testing.T, name string, a args) Result {
	t.Helper()
	before := len(b.changes)
	r := b.bench.run(t, t.Context(), name, a)
	if r.State == Done {
		for _, c := range b.changes[before:] {
			b.m.know(See(c.Path, c.After))
		}
	}
	b.m.know(r.Seen)
	return r
}

// A change that somebody else made is never buried: the model is shown it first.
func TestAFileThatChangedSinceItWasReadIsNotChanged(t *testing.T) {
	const old, new = "one\ntwo\nthree\n", "one\n2\nthree\n"
	edit := args{"path": "f", "old": "three", "new": "3"}
	write := args{"path": "f", "content": "all new\n"}
	for name, tt := range map[string]struct {
		open   bool // in the editor, when it was read
		first  func(t *testing.T, b *remembering)
		change func(t *testing.T, b *remembering)
		tool   string
		args   args
		says   []string // of the first try; nil: it succeeds
		after  string   // of the second
	}{
		"edited on disk": {
			change: func(t *testing.T, b *remembering) { b.put(t, "f", new) },
			tool:   "edit_file", args: edit, says: []string{"f changed since you last read it; nothing was done", "-two\n", "+2\n"}, after: "one\n2\n3\n",
		},
		"edited on disk, to be written whole": {
			change: func(t *testing.T, b *remembering) { b.put(t, "f", new) },
			tool:   "write_file", args: write, says: []string{"write_file: f changed since you last read it", "-two\n", "+2\n"}, after: "all new\n",
		},
		"edited in the editor": {
			open:   true,
			change: func(_ *testing.T, b *remembering) { b.ed["f"] = new },
			tool:   "edit_file", args: edit, says: []string{"(in the editor, where it is open)", "-two\n", "+2\n"}, after: "one\n2\n3\n",
		},
		"opened and edited": {
			change: func(_ *testing.T, b *remembering) { b.ed["f"] = new },
			tool:   "edit_file", args: edit, says: []string{"-two\n", "+2\n"}, after: "one\n2\n3\n",
		},
		"closed without saving": {
			open:   true,
			change: func(t *testing.T, b *remembering) { delete(b.ed, "f"); b.put(t, "f", new) },
			tool:   "edit_file", args: edit, says: []string{"-two\n", "+2\n"}, after: "one\n2\n3\n",
		},
		"read in part, changed elsewhere": {
			first:  func(t *testing.T, b *remembering) { b.run(t, "read_file", args{"path": "f", "limit": 1}) },
			change: func(t *testing.T, b *remembering) { b.put(t, "f", new) },
			tool:   "edit_file", args: edit, says: []string{"-two\n", "+2\n"}, after: "one\n2\n3\n",
		},
		"changed by its own edit": {
			first: func(t *testing.T, b *remembering) {
				b.run(t, "read_file", args{"path": "f"})
				b.run(t, "edit_file", args{"path": "f", "old": "two", "new": "2"})
			},
			tool: "edit_file", args: edit, after: "one\n2\n3\n",
		},
		"opened as it is": {
			change: func(_ *testing.T, b *remembering) { b.ed["f"] = old },
			tool:   "edit_file", args: edit, after: "one\ntwo\n3\n",
		},
		"opened by an editor with its own line endings": {
			change: func(_ *testing.T, b *remembering) { b.ed["f"] = strings.ReplaceAll(old, "\n", "\r\n") },
			tool:   "edit_file", args: edit, after: "one\r\ntwo\r\n3\r\n",
		},
		"changed and changed back": {
			change: func(t *testing.T, b *remembering) { b.put(t, "f", new); b.put(t, "f", old) },
			tool:   "edit_file", args: edit, after: "one\ntwo\n3\n",
		},
		"deleted": {
			change: func(t *testing.T, b *remembering) {
				if err := os.Remove(filepath.Join(b.dir, "f")); err != nil {
					t.Fatal(err)
				}
			},
			tool: "write_file", args: write, says: []string{"f was deleted since you last read it; nothing was done"}, after: "all new\n",
		},
		"never read": {
			first: func(*testing.T, *remembering) {},
			tool:  "edit_file", args: edit, after: "one\ntwo\n3\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ed := editor{}
			if tt.open {
				ed["f"] = old
			}
			b := newRemembering(t, "-- f --\n"+old, ed)
			if tt.first == nil {
				tt.first = func(t *testing.T, b *remembering) { b.run(t, "read_file", args{"path": "f"}) }
			}
			tt.first(t, b)
			if tt.change != nil {
				tt.change(t, b)
			}
			now := func() string {
				if text, open := b.ed["f"]; open {
					return text
				}
				return b.content(t, "f")
			}
			if tt.says != nil {
				before := now()
				r := b.run(t, tt.tool, tt.args)
				for _, s := range tt.says {
					if r.State != Failed || !strings.Contains(r.Output, s) {
						t.Errorf("%s: %s\nwant %q", r.State, r.Output, s)
					}
				}
				if now() != before {
					t.Errorf("the file is %q now, it was %q", now(), before)
				}
			}
			if r := b.run(t, tt.tool, tt.args); r.State != Done || now() != tt.after {
				t.Errorf("the last try: %s: %s\nthe file is %q, want %q", r.State, r.Output, now(), tt.after)
			}
		})
	}
}

func TestAFileThatWasNotReadIsNotReplacedWhole(t *testing.T) {
	b := newRemembering(t, "-- f --\nold\n-- empty --\n", nil)
	r := b.run(t, "write_file", args{"path": "f", "content": "x\n"})
	if r.State != Failed || !strings.Contains(r.Output, "f exists, and you have not read it; nothing was done. Read it first with read_file") || b.content(t, "f") != "old\n" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	for _, name := range []string{"empty", "new"} {
		if r := b.run(t, "write_file", args{"path": name, "content": "x\n"}); r.State != Done {
			t.Errorf("%s: %s: %s", name, r.State, r.Output)
		}
	}
	b.run(t, "read_file", args{"path": "f", "limit": 1})
	if r := b.run(t, "write_file", args{"path": "f", "content": "x\n"}); r.State != Done || b.content(t, "f") != "x\n" {
		t.Errorf("read: %s: %s", r.State, r.Output)
	}
}

// What the model was not shown whole it has not read: it must read the file, and is told so each time.
func TestAChangeThatIsTooMuchToShowIsNoRead(t *testing.T) {
	long := strings.Repeat("a line of some length\n", newsSize/10)
	for name, tt := range map[string]struct{ before, after, says string }{
		"the diff is long": {"x\n", "x\n" + long, "What changed begins with:\n"},
		"too long to keep": {strings.Repeat(long, 10), strings.Repeat(long, 10) + "x\n", "Read it again first"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRemembering(t, "", nil)
			b.put(t, "f", tt.before)
			b.run(t, "read_file", args{"path": "f"})
			b.put(t, "f", tt.after)
			for range 2 {
				r := b.run(t, "write_file", args{"path": "f", "content": "y\n"})
				if r.State != Failed || !strings.Contains(r.Output, tt.says) || len(r.Output) > newsSize+1000 {
					t.Fatalf("%s: %.300s", r.State, r.Output)
				}
			}
			b.run(t, "read_file", args{"path": "f"})
			if r := b.run(t, "write_file", args{"path": "f", "content": "y\n"}); r.State != Done {
				t.Errorf("%s: %.300s", r.State, r.Output)
			}
		})
	}
}

// An editor has its own view of line endings, also of a file that is too long to be kept.
func TestALongFileThatWasOnlyOpenedSinceItWasReadIsEdited(t *testing.T) {
	b := newRemembering(t, "", editor{})
	text := strings.Repeat("line\n", MaxKept/5) + "last\n"
	b.put(t, "f", strings.ReplaceAll(text, "\n", "\r\n"))
	b.run(t, "read_file", args{"path": "f"})
	b.ed["f"] = text
	if r := b.run(t, "edit_file", args{"path": "f", "old": "last", "new": "end"}); r.State != Done {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	b.put(t, "f", "saved by another\n")
	b.ed["f"] = text
	b.run(t, "read_file", args{"path": "f"})
	b.ed["f"] = text + "typed\n"
	if r := b.run(t, "edit_file", args{"path": "f", "old": "last", "new": "end"}); r.State != Failed || !strings.Contains(r.Output, "changed since") {
		t.Errorf("edited since: %s: %s", r.State, r.Output)
	}
}

func TestReadingRemembersTheWholeFile(t *testing.T) {
	lines := strings.Repeat("line\n", readLines*2)
	for name, tt := range map[string]struct {
		content string
		open    string // its text in the editor
		args    args
		kept    bool
		nothing bool
	}{
		"whole":               {content: "a\nb\n", args: args{"path": "f"}, kept: true},
		"a part":              {content: "a\nb\nc\n", args: args{"path": "f", "offset": 2, "limit": 1}, kept: true},
		"more than is shown":  {content: lines, args: args{"path": "f"}, kept: true},
		"empty":               {content: "", args: args{"path": "f"}, kept: true},
		"of the editor":       {content: "a\n", open: "unsaved\n", args: args{"path": "f"}, kept: true},
		"too long to be kept": {content: strings.Repeat(lines, 20), args: args{"path": "f"}},
		"binary":              {content: "\x00\x01\x02", args: args{"path": "f"}, nothing: true},
		"past the end":        {content: "a\n", args: args{"path": "f", "offset": 9}, nothing: true},
		"too long for that":   {content: strings.Repeat(lines, MaxSeen/len(lines)+1), args: args{"path": "f"}, nothing: true},
	} {
		t.Run(name, func(t *testing.T) {
			ed := editor{}
			if tt.open != "" {
				ed["f"] = tt.open
			}
			b := newBench(t, "", ed)
			b.put(t, "f", tt.content)
			content := []byte(tt.content)
			if tt.open != "" {
				content = []byte(tt.open)
			}
			r := b.run(t, t.Context(), "read_file", tt.args)
			if tt.nothing {
				if r.Seen != nil {
					t.Errorf("%+v is remembered", r.Seen[0].Path)
				}
				return
			}
			if len(r.Seen) != 1 || r.Seen[0].Path != "f" || r.Seen[0].SHA256 != Digest(content) {
				t.Fatalf("remembered is %d of %+v", len(r.Seen), r.Output)
			}
			if kept := r.Seen[0].Content; tt.kept != (kept != nil) || tt.kept && !bytes.Equal(kept, content) {
				t.Errorf("kept are %d bytes of %d", len(kept), len(content))
			}
		})
	}
}

// A link is another name: the file is known by the one it has.
func TestAFileIsKnownByItsOwnName(t *testing.T) {
	b := newRemembering(t, "-- real --\na\n", nil)
	if err := os.Symlink("real", filepath.Join(b.dir, "link")); err != nil {
		return // not every user of Windows may make links
	}
	r := b.run(t, "read_file", args{"path": "link"})
	if !slices.ContainsFunc(r.Seen, func(s Seen) bool { return s.Path == "real" }) {
		t.Errorf("seen: %+v", r.Seen)
	}
	b.put(t, "real", "b\n")
	if r := b.run(t, "edit_file", args{"path": "real", "old": "b", "new": "c"}); r.State != Failed {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}
