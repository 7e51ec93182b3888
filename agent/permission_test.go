package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/transcript"
)

// put writes a file of the workspace.
func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// asking is a world whose model makes one call, and the questions that were asked about it.
func asking(t *testing.T, tool, args string, answer permit.Answer) (*world, *[]Question) {
	var asked []Question
	w := newWorld(t, tools.All(), func(r *reply) { r.call("c1", tool, args); r.done() },
		func(r *reply) { r.say("Good."); r.done() })
	w.ask = func(_ context.Context, q Question) (Reply, error) {
		asked = append(asked, q)
		return Reply{Answer: answer}, nil
	}
	return w, &asked
}

func TestTheQuestionShowsWhatWouldChange(t *testing.T) {
	w, asked := asking(t, "edit_file", `{"path":"./a.txt","old":"two","new":"2"}`, permit.DenyCall)
	w.put("a.txt", "one\r\ntwo\r\nthree\r\n")
	w.run(say("Do it."))
	if len(*asked) != 1 {
		t.Fatalf("asked %d times", len(*asked))
	}
	q := (*asked)[0]
	if len(q.Call.Paths) != 1 || q.Call.Paths[0] != "a.txt" || q.Why == "" || q.Narrow {
		t.Errorf("the question is %+v", q)
	}
	for _, want := range []string{"--- a/a.txt\n+++ b/a.txt\n", "\n-two\r\n+2\r\n", "\n one\r\n"} {
		if !strings.Contains(strings.ReplaceAll(q.Diff, "\r", ""), strings.ReplaceAll(want, "\r", "")) {
			t.Errorf("the diff lacks %q:\n%s", want, q.Diff)
		}
	}
	if b, err := os.ReadFile(filepath.Join(w.root, "a.txt")); err != nil || string(b) != "one\r\ntwo\r\nthree\r\n" {
		t.Errorf("the file holds %q after a no (%v)", b, err)
	}
	if strings.Contains(w.dump(), "file.changed") {
		t.Errorf("what was only shown is in the log as changed:%s", w.dump())
	}
}

func TestTheDiffOfAQuestionIsBounded(t *testing.T) {
	w, asked := asking(t, "write_file", `{"path":"a.txt","content":"`+strings.Repeat(`line\n`, 20_000)+`"}`, permit.DenyCall)
	w.run(say("Do it."))
	if d := (*asked)[0].Diff; len(d) > diffBound+100 || !strings.Contains(d, "more bytes)") || !strings.HasPrefix(d, "--- /dev/null\n+++ b/a.txt\n") {
		t.Errorf("a diff of %d bytes: %.100q…", len(d), d)
	}
}

// guards S8
func TestASecretFileIsReadOnlyWithAYes(t *testing.T) {
	for _, test := range []struct {
		tool, args string
		answer     permit.Answer
		want       string
	}{
		{"read_file", `{"path":".env"}`, permit.DenyCall, "did not allow it"},
		{"read_file", `{"path":".env"}`, permit.AllowOnce, "KEY=needle"},
		{"read_file", `{"path":"sub/../.env"}`, permit.DenyCall, "did not allow it"},
		{"grep", `{"pattern":"needle","path":".env"}`, permit.DenyCall, "did not allow it"},
		{"grep", `{"pattern":"needle","path":".env"}`, permit.AllowOnce, ".env:1:KEY=needle"},
	} {
		w, asked := asking(t, test.tool, test.args, test.answer)
		w.put(".env", "KEY=needle\n")
		w.put("sub/a", "")
		w.run(say("Do it."))
		if len(*asked) != 1 || !(*asked)[0].Narrow || !strings.Contains((*asked)[0].Why, "secret file: .env") {
			t.Errorf("%s %s: asked %+v", test.tool, test.args, *asked)
		}
		got := w.model.messages(t, 2)
		if text := *got[len(got)-1].Content; !strings.Contains(text, test.want) || test.answer == permit.DenyCall && strings.Contains(text, "needle") {
			t.Errorf("%s %s, answered %s: the model reads %q", test.tool, test.args, test.answer, text)
		}
	}
}

func TestASearchLeavesSecretFilesOutAndSaysSo(t *testing.T) {
	w, asked := asking(t, "grep", `{"pattern":"needle"}`, permit.DenyCall)
	w.put(".env", "KEY=needle\n")
	w.put("conf/server.pem", "needle\n")
	w.put("a.txt", "a needle\n")
	w.run(say("Do it."))
	got := w.model.messages(t, 2)
	text := *got[len(got)-1].Content
	if len(*asked) != 0 || !strings.Contains(text, "a.txt:1:a needle") || strings.Contains(text, "KEY=") || strings.Contains(text, "pem:1") ||
		!strings.Contains(text, "not searched") || !strings.Contains(text, ".env, conf/server.pem") {
		t.Errorf("asked %d times; the model reads %q", len(*asked), text)
	}
}

func TestAFileThatTheUserNamesIsPutIntoThePrompt(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) { r.say("Good."); r.done() })
	w.ask = func(context.Context, Question) (Reply, error) {
		t.Error("the user is asked about what they said")
		return Reply{}, nil
	}
	w.put(".env", "KEY=needle\n")
	w.run(Start{Prompt: []transcript.PromptPart{{Type: "text", Text: "Is this right?"}, {Type: "file", Path: ".env"}}})
	if !strings.Contains(w.model.body(1), "KEY=needle") {
		t.Errorf("the file is not in the prompt: %s", w.model.body(1))
	}
}

func TestTheModeOfASessionIsItsOwn(t *testing.T) {
	w, asked := asking(t, "write_file", `{"path":"new.txt","content":"x"}`, permit.DenyCall)
	if m := w.s.Mode(); m != permit.ModeAsk {
		t.Errorf("the mode is %q", m)
	}
	w.s.SetMode(permit.ModeEdit)
	w.run(say("Do it."))
	if b, _ := os.ReadFile(filepath.Join(w.root, "new.txt")); string(b) != "x" || len(*asked) != 0 {
		t.Errorf("in mode edit: asked %d times, the file holds %q", len(*asked), b)
	}
	other, err := w.agent.NewSession(t.Context(), SessionOptions{Workspace: w.root})
	if err != nil {
		t.Fatal(err)
	}
	if m := other.Mode(); m != permit.ModeAsk {
		t.Errorf("another session's mode is %q", m)
	}
	w.s.SetMode("")
	if m := w.s.Mode(); m != permit.ModeAsk {
		t.Errorf("the mode is %q again", m)
	}
}

func TestGitIsProtectedInEveryMode(t *testing.T) {
	w, asked := asking(t, "write_file", `{"path":".git/hooks/pre-commit","content":"x"}`, permit.AllowSession)
	w.put(".git/HEAD", "")
	w.s.SetMode(permit.ModeTrust)
	rep := w.run(say("Do it."))
	if len(*asked) != 0 || rep.Tools[0].State != transcript.ToolNotStarted || rep.Tools[0].Cause != transcript.CausePermissionDenied {
		t.Errorf("asked %d times, the report says %+v", len(*asked), rep.Tools)
	}
}

// A change that cannot be made is the tool's failure at once. Where its reason would show a file that needs a yes to be read, the
// user is asked all the same.
//
// guards P3
func TestNobodyIsAskedAboutAChangeThatCannotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		tool, args string
		asked      int
		says       string
	}{
		"an edit that matches nothing":     {"edit_file", `{"path":"a.txt","old":"tow","new":"2"}`, 0, "old is not in the file"},
		"a patch that does not apply":      {"apply_patch", `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-uno\n+1\n"}`, 0, "a.txt"},
		"a file that nobody has read":      {"write_file", `{"path":"a.txt","content":"x\n"}`, 0, "you have not read it"},
		"a move onto what is there":        {"move_path", `{"from":"a.txt","to":"b.txt"}`, 0, "b.txt"},
		"a file that is not there":         {"delete_path", `{"path":"c.txt"}`, 0, "c.txt"},
		"an edit in a secret file":         {"edit_file", `{"path":".env","old":"KYE","new":"x"}`, 1, "permission"},
		"a patch of a secret file":         {"apply_patch", `{"patch":"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-KYE=1\n+KEY=2\n"}`, 1, "permission"},
		"a patch of a secret file as well": {"apply_patch", `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-uno\n+1\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-KYE=1\n+KEY=2\n"}`, 1, "permission"},
	} {
		t.Run(name, func(t *testing.T) {
			w, asked := asking(t, c.tool, c.args, permit.DenyCall)
			w.put("a.txt", "one\ntwo\n")
			w.put("b.txt", "b\n")
			w.put(".env", "KEY=hush\n")
			if rep := w.run(say("Do it.")); rep.Outcome != transcript.TurnCompleted {
				t.Errorf("%+v", rep)
			}
			if len(*asked) != c.asked {
				t.Errorf("asked %d times: %+v", len(*asked), *asked)
			}
			dump := w.dump()
			if !strings.Contains(dump, c.says) {
				t.Errorf("the result does not say %q:%s", c.says, dump)
			}
			if strings.Contains(dump, "hush") {
				t.Errorf("a secret was read without a yes:%s", dump)
			}
		})
	}
}
