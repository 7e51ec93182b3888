package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"fermata/cmd/internal/peer"
)

// fermata runs a command line in the workspace and returns what it printed and its exit code.
func (e *editor) fermata(args ...string) (stdout, stderr string, code int) {
	e.t.Helper()
	self, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = e.root, e.env, &out, &complaint
	if err := cmd.Run(); cmd.ProcessState == nil {
		e.t.Fatal(err)
	}
	return out.String(), complaint.String(), cmd.ProcessState.ExitCode()
}

// front is a way to ask: it returns how the turn ended, and who withholds its answer, in the words of that front end.
type front struct {
	name string
	open func(e *editor) (ask func(text string) (ended string, withheld []string), done func())
}

var fronts = []front{
	{"LSP", func(e *editor) (func(string) (string, []string), func()) {
		e.start(peer.Options{Answer: func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil }})
		e.Initialize(e.root, nil)
		session := e.NewSession(e.root)
		return func(text string) (string, []string) {
			m := e.Reply(e.ask(session, text))
			var r struct {
				Turn, Outcome, Cause string
				Withheld             []struct{ Check, Verdict, Reason string }
			}
			if err := json.Unmarshal(m.Result, &r); err != nil {
				e.t.Fatalf("%v: %s %v", err, m.Result, m.Error)
			}
			var withheld []string
			for _, w := range r.Withheld {
				withheld = append(withheld, w.Check)
			}
			verdicts := 0
			for _, ev := range e.Events() {
				if ev.Kind == "verdict" {
					verdicts++
				}
			}
			if verdicts == 0 { // K3: each was told; how many the log must hold is Verify's to say
				e.t.Error("no verdict was told")
			}
			return strings.TrimSpace(r.Outcome + " " + r.Cause), withheld
		}, e.quit
	}},
	{"terminal", func(e *editor) (func(string) (string, []string), func()) {
		begun := false
		return func(text string) (string, []string) {
			args := []string{"ask", "--yes", text}
			if begun {
				args = []string{"ask", "--yes", "--continue", text}
			}
			begun = true
			_, stderr, code := e.fermata(args...)
			var withheld []string
			for line := range strings.Lines(stderr) {
				if rest, ok := strings.CutPrefix(line, "withheld by "); ok {
					name, _, _ := strings.Cut(rest, ":")
					withheld = append(withheld, name)
				}
			}
			return fmt.Sprint("exit ", code), withheld
		}, func() {}
	}},
}

// Every way that two checks can end, an answer that comes in pieces or whole, both front ends, and checks of both kinds:
// the next request's body says whether the answer was admitted, and is the same for every way to stream and to ask.
//
// guards K1, K2, K3, K7
func TestWhatTheNextInputHoldsDependsOnTheVerdictsAlone(t *testing.T) {
	for _, verdicts := range []struct {
		name, first, second string // exit statuses
		lsp                 string // how the turn ends
		withheld            []string
	}{
		{"all pass", "0", "0", "completed", nil},
		{"one rejects", "0", "1", "failed rejected", []string{"second"}},
		{"both throw", "3", "4", "failed unverified", []string{"first", "second"}},
		{"one passes and one throws", "0", "3", "failed unverified", []string{"second"}},
	} {
		for _, on := range []string{"answer", "edits"} {
			t.Run(verdicts.name+"/"+on, func(t *testing.T) {
				var inputs [4][]string
				t.Run("all", func(t *testing.T) {
					for i, stream := range []struct{ name, size string }{{"streamed", "3"}, {"whole", "100000"}} {
						for j, f := range fronts {
							t.Run(stream.name+"/"+f.name, func(t *testing.T) {
								t.Parallel()
								got := nextInput(t, f, on, stream.size, verdicts.first, verdicts.second, verdicts.lsp, verdicts.withheld)
								want := []string{`{"role":"user","content":"Why?"}`}
								if on == "edits" {
									want = append(want, `{"role":"assistant","content":"I write.…"tool_calls":[…`, `{"role":"tool","tool_call_id":"call_1",…a.txt…`)
								}
								if verdicts.withheld == nil {
									want = append(want, `{"role":"assistant","content":"Because it is so, and not otherwise."…`, `{"role":"user","content":"And?"}`)
								} else {
									want = append(want, `{"role":"user","content":"[Your last answer was withheld by a check and is not shown here.]\n\nAnd?"}`)
								}
								if !slices.EqualFunc(want, got, matches) {
									t.Errorf("the next input:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
								}
								inputs[2*i+j] = got
							})
						}
					}
				})
				for _, other := range inputs[1:] {
					if !slices.Equal(other, inputs[0]) {
						t.Errorf("the next input depends on how it came:\n%s\n%s", strings.Join(inputs[0], "\n"), strings.Join(other, "\n"))
					}
				}
			})
		}
	}
}

// nextInput asks twice, and returns the messages of the second question's request.
func nextInput(t *testing.T, f front, on, size, first, second, ended string, withheld []string) []string {
	scenario := "reply\nsize " + size + "\n"
	requests := 2
	if on == "edits" {
		scenario += "say I write.\ncall write_file {\"path\":\"a.txt\",\"content\":\"x\\n\"}\nreply\nsize " + size + "\n"
		requests = 3
	}
	scenario += "say Because it is so, and not otherwise.\nreply\nsay Well.\n"
	e := newUser(t, scenario, fmt.Sprintf(`
[[check]]
name = "first"
on = %q
command = "exit %s"
[[check]]
name = "second"
on = %q
command = "exit %s"
`, on, first, on, second))
	ask, done := f.open(e)
	if f.name == "terminal" {
		ended = map[bool]string{true: "exit 0", false: "exit 4"}[withheld == nil]
	}
	if got, by := ask("Why?"); got != ended || !slices.Equal(by, withheld) {
		t.Errorf("the turn ended %q, withheld by %q; want %q, %q", got, by, ended, withheld)
	}
	ask("And?")
	done()
	all := e.model.Requests()
	if len(all) != requests {
		t.Fatalf("%d requests came, want %d", len(all), requests)
	}
	return messages(t, all[requests-1].Body)
}

// guards K5
func TestARecheckOverTheWireAdmitsWhatWasNotVerified(t *testing.T) {
	e := newUser(t, "reply\nsay Because.\nreply\nsay Well.\n", "")
	status := e.root + "/status"
	if err := os.WriteFile(status, []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.configure(fmt.Sprintf("model = \"scripted/model\"\n[providers.scripted]\nkind = \"deepseek\"\nbase_url = %q\n"+
		"[[check]]\nname = \"keys\"\npattern = \"secrets\"\n[[check]]\nname = \"script\"\ncommand = %q\n", e.model.URL, exitWithFile))
	e.start(peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	if r := e.turn(e.ask(session, "Why?")); r.Outcome != "failed" || r.Cause != "unverified" {
		t.Fatalf("%+v", r)
	}
	var r struct {
		Turn     string
		Ran      []string
		Admitted bool
		Withheld []struct{ Check, Verdict, Reason string }
	}
	e.Must("fermata/turn/recheck", nil, &r)
	if r.Admitted || len(r.Withheld) != 1 || r.Withheld[0].Check != "script" || r.Withheld[0].Verdict != "error" {
		t.Errorf("while the check fails: %+v", r)
	}
	if err := os.WriteFile(status, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	// In a process of its own: the daemon reads what that wrote before it says anything about it to a model.
	if out, stderr, code := e.fermata("recheck", r.Turn); code != 0 || !strings.Contains(out, "ran script\nthe answer is admitted") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	e.turn(e.ask(session, "And?"))
	want := []string{`{"role":"user","content":"Why?"}`, `{"role":"assistant","content":"Because."…`, `{"role":"user","content":"And?"}`}
	if got := messages(t, e.model.Requests()[1].Body); !slices.EqualFunc(want, got, matches) {
		t.Errorf("the next input: %s", strings.Join(got, "\n"))
	}
	if err := e.Call("fermata/turn/recheck", map[string]any{"turn": "t_none"}, nil); err == nil || !strings.Contains(string(err.Data), "unknown_turn") {
		t.Errorf("of no turn: %v", err)
	}
	e.quit()
}

// guards P1, K1: hold, in both front ends.
func TestAHeldAnswerThatIsRejectedIsNeverShown(t *testing.T) {
	for _, key := range []string{"AKIAIOSFODNN7ABCDEFG", "nothing"} {
		e := newUser(t, "reply\nsize 3\nthink \"Hm. \"\nsay The key is "+key+".\n", "[[check]]\nname = \"keys\"\npattern = \"secrets\"\nhold = true\n")
		e.start(peer.Options{})
		e.Initialize(e.root, nil)
		r := e.turn(e.ask(e.NewSession(e.root), "Tell me."))
		shown := e.Shown(r.Turn, 1, "text")
		out, stderr, code := e.fermata("ask", "Tell me.")
		if key == "nothing" {
			if shown != "The key is nothing." || out != "The key is nothing.\n" || code != 0 {
				t.Errorf("what has passed: shown %q and %q, exit %d", shown, out, code)
			}
		} else if shown != "" || strings.Contains(out+stderr, "AKIA") || code != 4 || !strings.Contains(stderr, "withheld by keys: an AWS access key is in the text, line 1\n") {
			t.Errorf("shown %q and %q, %q, exit %d", shown, out, stderr, code)
		}
		e.quit()
	}
}
