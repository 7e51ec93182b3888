package transcript

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var updateGolden = flag.Bool("update-markdown", false, "write testdata/render.md anew")

// renderedSession is a conversation with all that a rendering must show.
func renderedSession() (SessionInfo, []Entry) {
	prompt := func(text string) []PromptPart { return []PromptPart{{Type: "text", Text: text}} }
	exit := 143
	bodies := []Body{
		&SessionOpened{Workspace: "/home/me/app", Parent: "s_parent", ParentSeq: 12},
		&TurnStarted{Turn: "t_1", Prompt: append(prompt("Explain *this*:\n\n```go\nfunc main() {"), PromptPart{
			Type: "selection", Path: "main.go", Start: 3, End: 4, Text: "a ``` b\n~~~\n"})},
		&EpochOpened{Epoch: 1, Reason: "first", Provider: "deepseek", Model: "deepseek-chat", Dialect: "chat/1"},
		&RequestSent{Request: "r_1", Turn: "t_1", Step: 1, Try: 1, Epoch: 1, N: 1, Route: "deepseek https://api.deepseek.com/v1"},
		&RequestEnded{Request: "r_1", Outcome: "broken", Status: 200, Error: "truncated: the stream ended"},
		&Answer{Turn: "t_1", Step: 1, Request: "r_1", State: Broken, Cause: "truncated", Parts: []Part{{Type: PartText, Text: "It be"}}},
		&Admission{Turn: "t_1", Step: 1, Answer: 6, By: "rule"},
		&RequestSent{Request: "r_2", Turn: "t_1", Step: 1, Try: 2, Epoch: 1, N: 1, Route: "deepseek https://api.deepseek.com/v1"},
		&RequestEnded{Request: "r_2", Outcome: "complete", Status: 200, Usage: &Usage{Input: 900, Cached: 640, Output: 30}},
		&Answer{Turn: "t_1", Step: 1, Request: "r_2", State: Complete, Parts: []Part{
			{Type: PartReasoning, Text: "Look\r\nfirst."}, {Type: PartText, Text: "I will "}, {Type: PartText, Text: "look."},
			{Type: PartCall, Call: &Call{ID: "c1", Name: "read_file", Args: `{"path":"go.mod"}`}},
			{Type: PartCall, Call: &Call{ID: "c2", Name: "run_command", Args: `{}`}},
			{Type: PartCall, Call: &Call{ID: "c3", Name: "write_file", Args: `{}`}}}},
		&Admission{Turn: "t_1", Step: 1, Answer: 10, Admitted: true, By: "rule"},
		&ToolStarted{Turn: "t_1", Step: 1, Call: "c1", Name: "read_file", ReadOnly: true, Summary: "read_file go.mod"},
		&ToolSettled{Turn: "t_1", Step: 1, Call: "c1", Name: "read_file", State: ToolDone, Output: "module app", Millis: 12},
		&ToolStarted{Turn: "t_1", Step: 1, Call: "c2", Name: "run_command", Summary: "run_command echo `date`"},
		&ToolSettled{Turn: "t_1", Step: 1, Call: "c2", Name: "run_command", State: ToolStopped, Output: "…", Exit: &exit, Millis: 1500},
		&ToolSettled{Turn: "t_1", Step: 1, Call: "c3", Name: "write_file", State: ToolNotStarted, Cause: CauseStoppedByUser, Output: "[…]"},
		&TurnEnded{Turn: "t_1", Outcome: TurnStopped, Cause: "user"},
		&TurnStarted{Turn: "t_2", Redirects: "t_1", Notice: "[The user redirects you. Treat it as a *first* attempt.]", Prompt: prompt("Only the imports.")},
		&RequestSent{Request: "r_3", Turn: "t_2", Step: 1, Try: 1, Epoch: 1, N: 5, Route: "deepseek https://api.deepseek.com/v1"},
		&RequestEnded{Request: "r_3", Outcome: "stopped", Status: 200},
		&Answer{Turn: "t_2", Step: 1, Request: "r_3", State: Stopped, Parts: []Part{{Type: PartText, Text: "The imports are:\n\n```go\nimport (\n\t\"fmt\""}}},
		&Admission{Turn: "t_2", Step: 1, Answer: 21, Admitted: true, By: "rule"},
		&TurnEnded{Turn: "t_2", Outcome: TurnStopped, Cause: "user", Kept: &Kept{Bytes: 40, Words: 7}},
		&TurnStarted{Turn: "t_3", Redirects: "t_2", Prompt: prompt("In one line.")},
		nil,
		&RequestSent{Request: "r_4", Turn: "t_3", Step: 1, Try: 1, Epoch: 1, N: 7, Route: "deepseek https://api.deepseek.com/v1"},
		&RequestEnded{Request: "r_4", Outcome: "complete", Status: 200},
		&Answer{Turn: "t_3", Step: 1, Request: "r_4", State: Complete, Parts: []Part{{Type: PartText, Text: "fmt alone.\n<!-- and"}}},
		&Admission{Turn: "t_3", Step: 1, Answer: 28, Admitted: true, By: "rule"},
		&ToolSettled{Turn: "t_1", Step: 1, Call: "c2", Name: "run_command", State: ToolDone, Late: true},
		&TurnEnded{Turn: "t_3", Outcome: TurnCompleted},
		&TurnStarted{Turn: "t_4", Prompt: prompt("And now?")},
		&Answer{Turn: "t_4", Step: 1, Request: "r_5", State: Broken, Cause: "idle", Parts: []Part{{Type: PartText, Text: "Now"}}},
		&Admission{Turn: "t_4", Step: 1, Answer: 33, Admitted: true, By: "user"},
		&TurnEnded{Turn: "t_4", Outcome: TurnFailed, Cause: "idle", Error: "nothing came for 2m0s"},
		&TurnStarted{Turn: "t_5", Prompt: prompt("Hello?")},
		&TurnEnded{Turn: "t_5", Outcome: TurnStopped, Cause: "user", Silent: true},
		&TurnStarted{Turn: "t_6", Prompt: prompt("Still there?")},
		&TurnEnded{Turn: "t_6", Outcome: TurnAbandoned},
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var entries []Entry
	for i, b := range bodies {
		e := Entry{Session: "s_1", Seq: int64(i + 1), At: at.Add(time.Duration(i) * time.Second), Body: b}
		if b == nil {
			e.Damaged = "unexpected end of JSON input"
		}
		entries = append(entries, e)
	}
	return SessionInfo{ID: "s_1", Workspace: "/home/me/app", Title: "Explain *this*"}, entries
}

// guards D2, D5, S6, C5: run with -update-markdown to write the file anew, and read what changed.
func TestASessionReadsAsOneThreadForEachQuestion(t *testing.T) {
	info, entries := renderedSession()
	var got bytes.Buffer
	if _, err := Markdown(&got, info, entries); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "render.md")
	if *updateGolden {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the rendering is not %s; it is\n%s", golden, got.Bytes())
	}
}

func TestALineReferenceNamesTheEntryShownThere(t *testing.T) {
	info, entries := renderedSession()
	var out bytes.Buffer
	refs, err := Markdown(&out, info, entries)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	shown := map[int64]string{}
	last := 0
	for _, r := range refs {
		if r.Line <= last || r.Line > len(lines) {
			t.Fatalf("reference %+v after line %d of %d", r, last, len(lines))
		}
		last = r.Line
		shown[r.Seq] = lines[r.Line-1]
	}
	for seq, begins := range map[int64]string{
		1: "*Forked", 2: "## You,", 4: "<sub>Request `r_1`", 6: "**Attempt", 10: "> *Reasoning*", 13: "+ `read_file go.mod`",
		15: "+ ``", 16: "+ `write_file`", 17: "*Stopped here*", 18: "### You redirect,", 21: "The imports are:",
		24: "### You redirect,", 25: "**Entry 25 is damaged", 30: "*The result of run\\_command came after all", 32: "## You,", 37: "*Stopped before",
	} {
		if !strings.HasPrefix(shown[seq], begins) {
			t.Errorf("entry %d is said to be at the line %q, want one that begins %q", seq, shown[seq], begins)
		}
	}
}

func TestOneWordThatWasKeptIsOneWord(t *testing.T) {
	var got bytes.Buffer
	body := &TurnEnded{Turn: "t_1", Outcome: TurnStopped, Kept: &Kept{Bytes: 3, Words: 1}}
	if _, err := MarkdownPage(&got, SessionInfo{}, []Entry{{Seq: 2, Body: body}}, 1, 0); err != nil {
		t.Fatal(err)
	}
	if want := "*Stopped here* · 1 word kept\n\n"; got.String() != want {
		t.Errorf("it is %q, want %q", got.String(), want)
	}
}

func TestWhatAnAnswerLeavesOpenIsClosedBehindIt(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain", "a\nb", "a\nb"},
		{"closed fence", "```go\nx\n```", "```go\nx\n```"},
		{"open fence", "a\n```go\nx", "a\n```go\nx\n```"},
		{"longer fence", "````\n```\nx", "````\n```\nx\n````"},
		{"fence closed by a longer one", "```\nx\n`````", "```\nx\n`````"},
		{"tildes hold backticks", "~~~\n```", "~~~\n```\n~~~"},
		{"a fence with words does not close", "```\n``` go", "```\n``` go\n```"},
		{"inline backticks are no fence", "``` a ``` b", "``` a ``` b"},
		{"indented code is no fence", "    ```", "    ```"},
		{"open comment", "<!-- a\nb", "<!-- a\nb\n-->"},
		{"closed comment", "<!-- a\n--> b", "<!-- a\n--> b"},
		{"open script", "<script>\nx", "<script>\nx\n</script>"},
		{"open pre", "<PRE class=x>\nx", "<PRE class=x>\nx\n</pre>"},
		{"comment in a fence", "```\n<!--\n```", "```\n<!--\n```"},
		{"fence in a comment", "<!--\n```\n-->", "<!--\n```\n-->"},
		{"carriage returns end lines", "a\r```\rx\r\ny", "a\n```\nx\ny\n```"},
		{"declaration", "<!doctype html", "<!doctype html\n>"},
		{"trailing line ends go", "a\n\n", "a"},
	} {
		if got := closed(test.text); got != test.want {
			t.Errorf("%s: closed(%q) = %q, want %q", test.name, test.text, got, test.want)
		}
		if again := closed(closed(test.text)); again != closed(test.text) {
			t.Errorf("%s: what was closed is closed again: %q", test.name, again)
		}
	}
}

func TestCodeSpansHoldAnyBackticks(t *testing.T) {
	for text, want := range map[string]string{
		"a":      "`a`",
		"a`b":    "`` a`b ``",
		"``":     "``` `` ```",
		"":       "`  `",
		"a\n\tb": "`a b`",
	} {
		if got := codeSpan(text); got != want {
			t.Errorf("codeSpan(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzARenderingIsWholeWhateverIsSaid(f *testing.F) {
	f.Add("```", "<!--")
	f.Add("a\r\n> b", "~~~\n```")
	f.Fuzz(func(t *testing.T, prompt, answer string) {
		entries := []Entry{
			{Seq: 1, Body: &TurnStarted{Turn: "t_1", Prompt: []PromptPart{{Type: "text", Text: prompt}}}},
			{Seq: 2, Body: &Answer{Turn: "t_1", State: Complete, Parts: []Part{{Type: PartText, Text: answer}}}},
			{Seq: 3, Body: &Admission{Turn: "t_1", Answer: 2, Admitted: true}},
			{Seq: 4, Body: &TurnStarted{Turn: "t_2"}},
		}
		var out bytes.Buffer
		refs, err := Markdown(&out, SessionInfo{ID: "s_1", Title: prompt}, entries)
		if err != nil {
			t.Fatal(err)
		}
		open := ""
		lines := strings.Split(out.String(), "\n")
		end := refs[len(refs)-1]
		for _, line := range lines[:end.Line-1] {
			open = after(line, open)
		}
		if open != "" || end.Seq != 4 || !strings.HasPrefix(lines[end.Line-1], "## You,") {
			t.Errorf("the last turn (%+v) is at %q within %q of\n%s", end, lines[end.Line-1], open, out.String())
		}
	})
}
