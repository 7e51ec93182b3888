package tools

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"fermata/tools/workspace"
)

// Bounds of what the model is shown of a change.
const (
	diffInput = 1 << 20 // bytes of a file up to which a diff is made
	diffBytes = 4 << 10 // of the diff shown
)

// change replaces old by after: the one way in which a tool changes a file, as changeAll is for several. Invariant: Intent has succeeded before the
// file is touched (C3). Tested by TestIntentComesBeforeTheChange.
func change(ctx context.Context, env Env, tool string, old workspace.File, after []byte) Result {
	name := workspace.Show(old.Path)
	if bad, ok := current(ctx, env, tool, old); !ok {
		return bad
	}
	if err := env.Workspace.CheckWrite(old); err != nil {
		return failf("%s: %v", tool, err)
	}
	c := Change{Path: old.Path, Before: old.Content, After: after, Buffer: old.Buffer}
	if env.preview != nil {
		env.preview(c)
		return done("")
	}
	if !env.Permit.Covers(old.Path) { // a link has changed since the decision
		return failf("%s: permission denied: it was given for another file than %s", tool, name)
	}
	if err := env.Intent(ctx, c); err != nil {
		if ctx.Err() != nil {
			return Result{State: Stopped, Output: "stopped before " + name + " was changed"}
		}
		return failf("%s: %s was not changed, because the change could not be recorded first: %v", tool, name, err)
	}
	err := env.Workspace.Write(ctx, old, after)
	if err == nil {
		return done(describeChange(old, after))
	}
	// What was changed is told by what is there now, not by the error: an editor can fail after it acted.
	now, readErr := env.Workspace.ReadOrNew(old.Path)
	switch {
	case readErr == nil && now.Exists() && bytes.Equal(now.Content, after):
		return done(describeChange(old, after))
	case ctx.Err() != nil && readErr == nil && bytes.Equal(now.Content, old.Content) && now.Exists() == old.Exists():
		return Result{State: Stopped, Output: "stopped before " + name + " was changed"}
	}
	return failf("%s: %v", tool, err)
}

// describeChange is what the model reads of a change that was made.
func describeChange(old workspace.File, after []byte) string {
	name := workspace.Show(old.Path)
	where := ""
	if old.Buffer {
		where = " in the editor, where it is open; it is not saved to disk yet"
	}
	if !old.Exists() {
		return fmt.Sprintf("created %s (%s)%s", name, plural(countLines(after), "line"), where)
	}
	links := ""
	if old.Links > 1 {
		links = fmt.Sprintf(" (on disk it had %d names, hard links: this one now has a content of its own, the others keep the old)", old.Links)
	}
	if len(old.Content) > diffInput || len(after) > diffInput {
		return fmt.Sprintf("changed %s%s: %d bytes before, %d after%s", name, where, len(old.Content), len(after), links)
	}
	text, added, removed := lineDiff(old.Content, after)
	head := fmt.Sprintf("changed %s%s: +%d -%d lines%s", name, where, added, removed, links)
	if text == "" {
		return head + " (only line endings or the byte order mark differ)"
	}
	return head + "\n" + text
}

// lineDiff is a unified diff without its header, bounded, and the numbers of lines it adds and removes.
func lineDiff(before, after []byte) (text string, added, removed int) {
	text, added, removed, _ = boundedDiff(before, after, diffBytes)
	return text, added, removed
}

// boundedDiff is lineDiff with a bound of its own, in bytes; whole says that nothing was cut.
func boundedDiff(before, after []byte, limit int) (text string, added, removed int, whole bool) {
	plain := func(b []byte) []byte {
		b, ok := textOf(b)
		if !ok {
			b = bytes.ReplaceAll(b, []byte{0}, []byte("\uFFFD"))
		}
		if !bytes.Contains(b, []byte("\r\n")) {
			return b
		}
		return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	d := unified(plain(before), plain(after))
	var out strings.Builder
	cut := false
	for l := range strings.SplitAfterSeq(d, "\n") {
		switch {
		case l == "":
			continue
		case l[0] == '+':
			added++
		case l[0] == '-':
			removed++
		}
		if cut = cut || out.Len()+len(l) > limit; !cut {
			out.WriteString(l)
		}
	}
	text = strings.TrimSuffix(out.String(), "\n")
	if cut {
		text += "\n(the diff goes on)"
	}
	return text, added, removed, !cut
}

// textOf is a content as text that can be shown, for reading only; ok is false when it is none, and what can be shown of it is.
func textOf(content []byte) (text []byte, ok bool) {
	if utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 { // what most are
		_, rest := workspace.CutBOM(content)
		return rest, true
	}
	s, _, err := workspace.File{Content: content}.Text()
	if err != nil {
		return bytes.ToValidUTF8(content, []byte("\uFFFD")), false
	}
	return []byte(s), true
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		n++
	}
	return n
}
