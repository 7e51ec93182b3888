package lsp

import (
	"strings"
	"testing"
)

// A client that shows a transcript live asks for what is new of it, and for the turn of each line.
func TestARenderingSinceAnEntryIsTheRestOfTheWhole(t *testing.T) {
	e := start(t, "reply\nsay First answer.\nreply\nsay Second answer.\n")
	e.initialize(fermataClient)
	session := e.session()
	var turns [2]struct{ Turn string }
	e.call("fermata/turn/start", obj{"session": session, "prompt": text("one?")}, &turns[0])
	e.call("fermata/turn/start", obj{"session": session, "prompt": text("two?")}, &turns[1])
	type rendering struct {
		Since int64
		Text  string
		Lines []struct {
			Line, Seq int
			Turn      string
		}
	}
	var all rendering
	e.call("fermata/transcript/render", obj{"session": session}, &all)
	var whole, end rendering
	e.call("fermata/transcript/render", obj{"session": session, "since": -1000}, &whole)
	e.call("fermata/transcript/render", obj{"session": session, "since": -4}, &end)
	if whole.Text != all.Text || end.Text != all.Text[strings.Index(all.Text, "Second answer."):] {
		t.Errorf("the newest entries are\n%s\nand all of them\n%s", end.Text, whole.Text)
	}
	var before rendering
	e.call("fermata/transcript/render", obj{"session": session, "until": end.Since + 1}, &before)
	if before.Text+end.Text != all.Text || before.Since != 0 {
		t.Errorf("until entry %d it is, since %d,\n%s\nof\n%s", end.Since+1, before.Since, before.Text, all.Text)
	}
	var page rendering
	e.call("fermata/transcript/render", obj{"session": session, "since": -3, "until": end.Since + 1}, &page)
	if page.Since != end.Since-3 || page.Text == "" || !strings.HasSuffix(before.Text, page.Text) {
		t.Errorf("the three entries until %d are, since %d,\n%s\nof\n%s", end.Since+1, page.Since, page.Text, before.Text)
	}
	for i, ref := range all.Lines {
		var seen []string
		for _, r := range all.Lines[:i+1] {
			if r.Turn != "" {
				seen = append(seen, r.Turn)
			}
		}
		want := turns[0].Turn
		if len(seen) == 2 {
			want = turns[1].Turn
		}
		if seen[len(seen)-1] != want {
			t.Errorf("line %d is of turn %s, want %s", ref.Line, seen[len(seen)-1], want)
		}
		lines := strings.Split(all.Text, "\n")
		for _, format := range []string{"markdown", "json"} {
			var rest rendering
			e.call("fermata/transcript/render", obj{"session": session, "since": ref.Seq - 1, "format": format}, &rest)
			if format == "markdown" && rest.Text != strings.Join(lines[ref.Line-1:], "\n") {
				t.Errorf("since %d it is\n%s\nwant the whole from line %d", ref.Seq-1, rest.Text, ref.Line)
			}
			if len(rest.Lines) == 0 || rest.Lines[0].Line != 1 || rest.Lines[0].Seq != ref.Seq || rest.Lines[0].Turn != want {
				t.Errorf("%s since %d begins at %+v, want turn %s", format, ref.Seq-1, rest.Lines, want)
			}
		}
	}
}
