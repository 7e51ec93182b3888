package check

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/transcript"
)

// TestMain lets the test's own binary be the program of a check: its behaviour is named by the arguments.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "as-check" {
		os.Exit(m.Run())
	}
	switch arg := strings.Join(os.Args[3:], " "); os.Args[2] {
	case "pass":
	case "reject":
		fmt.Println(arg)
		os.Exit(1)
	case "exit":
		code, _ := strconv.Atoi(arg)
		fmt.Fprintln(os.Stderr, "oh no")
		os.Exit(code)
	case "flood":
		w := bufio.NewWriter(os.Stdout)
		for i := range 200_000 {
			fmt.Fprintf(w, "\x1b[31mline\t%d %s\n", i, strings.Repeat("ü", 40))
		}
		w.Flush()
		os.Exit(1)
	case "child": // and a program of its own that outlives it, unless it is ended
		if err := exec.Command(os.Args[0], "as-check", "hang", arg).Start(); err != nil {
			panic(err)
		}
		hang("")
	case "hang":
		hang(arg)
	case "show": // what it was given
		all, _ := io.ReadAll(os.Stdin)
		var d document
		if err := json.Unmarshal(all, &d); err != nil {
			panic(err)
		}
		for _, f := range d.Files {
			before, _ := os.ReadFile(f.BeforeFile)
			after, _ := os.ReadFile(f.AfterFile)
			fmt.Printf("%s %q %q %s\n", f.Path, before, after, filepath.Base(f.AfterFile))
		}
		dir, _ := os.Getwd()
		fmt.Println(d.Check, d.On, d.Turn, d.Step, d.Prompt, d.Answer.State, d.Answer.Text, d.Answer.Reasoning, len(d.Answer.Calls), dir == d.Workspace)
		fmt.Println("keys", os.Getenv("MY_TOKEN"), os.Getenv("MINE"))
		os.Exit(1)
	}
	os.Exit(0)
}

// hang writes its process id to a file and runs until it is ended.
func hang(file string) {
	if file != "" {
		if err := os.WriteFile(file+".part", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			panic(err)
		}
		if err := os.Rename(file+".part", file); err != nil {
			panic(err)
		}
	}
	<-time.After(10 * time.Minute)
}

func program(t *testing.T, name string, args ...string) Definition {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Definition{Name: name, Command: append([]string{self, "as-check"}, args...), Timeout: 30 * time.Second}
}

func input(t *testing.T, parts ...transcript.Part) Input {
	return Input{
		Session: "s_1", Turn: "t_1", Step: 2, Workspace: realDir(t),
		Prompt: []transcript.PromptPart{{Type: "text", Text: "Why?"}},
		Answer: &transcript.Answer{Turn: "t_1", Step: 2, State: transcript.Complete, Parts: parts},
		Files:  func() ([]File, error) { return nil, nil },
	}
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func text(s string) transcript.Part { return transcript.Part{Type: transcript.PartText, Text: s} }

func verdicts(ctx context.Context, in Input, ds ...Definition) []string {
	var out []string
	for v := range Run(ctx, ds, in) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Check.Name, v.Word, v.Reason)))
	}
	slices.Sort(out)
	return out
}

// guards K1: each ending of a program is a verdict.
func TestHowAProgramEndsIsItsVerdict(t *testing.T) {
	slow := program(t, "slow", "hang")
	slow.Timeout = 300 * time.Millisecond
	for _, tt := range []struct {
		d    Definition
		want string
	}{
		{program(t, "a", "pass"), "a pass"},
		{program(t, "a", "reject", "too long"), "a reject too long"},
		{program(t, "a", "reject"), "a reject it gave no reason"},
		{program(t, "a", "exit", "2"), "a error exit status 2\noh no"},
		{program(t, "a", "exit", "127"), "a error exit status 127\noh no"},
		{Definition{Name: "a", Command: []string{filepath.Join(t.TempDir(), "none")}}, "a error it could not be started: "},
		{Definition{Name: "a", Command: []string{"no-such-program-anywhere"}}, "a error it could not be started: "},
		{slow, "slow error no verdict within 300ms"},
		{Definition{Name: "a", Shell: "exit 0"}, "a pass"},
		{Definition{Name: "a", Shell: "echo no&& exit 1"}, "a reject no"},
	} {
		in := input(t, text(strings.Repeat("a long answer that nobody reads ", 20_000)))
		got := verdicts(t.Context(), in, tt.d)
		if len(got) != 1 || !strings.HasPrefix(got[0], tt.want) || !strings.HasSuffix(tt.want, " ") && got[0] != tt.want {
			t.Errorf("%v: %q, want %q", tt.d.Command, got, tt.want)
		}
	}
}

func TestAReasonIsAFewReadableLines(t *testing.T) {
	d := program(t, "a", "flood")
	for v := range Run(t.Context(), []Definition{d}, input(t, text("x"))) {
		if v.Word != transcript.VerdictReject || len(v.Reason) > ReasonBytes || !strings.HasPrefix(v.Reason, "[31mline 0 ü") || strings.Count(v.Reason, "\n") >= reasonLines {
			t.Errorf("%s: %d bytes: %q", v.Word, len(v.Reason), v.Reason)
		}
	}
}

// guards M6
func TestAProgramIsGivenTheAnswerTheTurnAndNoKey(t *testing.T) {
	t.Setenv("MY_TOKEN", "sk-secret")
	t.Setenv("MINE", "sk-secret")
	in := input(t, text("Because."), transcript.Part{Type: transcript.PartReasoning, Text: "Hm."},
		transcript.Part{Type: transcript.PartCall, Call: &transcript.Call{ID: "c", Name: "run"}})
	in.Secrets = []string{"MINE"}
	in.Files = func() ([]File, error) {
		return []File{{Path: "b/a.go", Before: []byte("old"), After: []byte("new")}, {Path: "gone", Before: []byte("x")}}, nil
	}
	d := program(t, "a", "show")
	d.On = Edits
	got := strings.Join(verdicts(t.Context(), in, d), "\n")
	for _, want := range []string{`b/a.go "old" "new" a.go`, `gone "x" "" .`, "a edits t_1 2 Why? complete Because. Hm. 1 true", "keys"} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}

// guards K3, K1: one that fails first cuts no other short.
func TestAllChecksRunToTheirEnd(t *testing.T) {
	got := verdicts(t.Context(), input(t, text("the key is AKIAIOSFODNN7ABCDEFG")),
		program(t, "a", "reject", "no"), program(t, "b", "pass"), program(t, "c", "exit", "3"),
		Definition{Name: "d", Pattern: []string{"secrets"}}, Definition{Name: "e", Pattern: []string{"(?i)internal only"}})
	want := []string{"a reject no", "b pass", "c error exit status 3\noh no", "d reject an AWS access key is in the text, line 1", "e pass"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// guards S14, K1: what was cut short has no verdict, and no process of it is left.
func TestAnEndedContextEndsProgramsAndGivesNoVerdict(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	came := Run(ctx, []Definition{program(t, "a", "child", pid), program(t, "b", "pass")}, input(t, text("x")))
	if v := <-came; v.Check.Name != "b" || v.Word != transcript.VerdictPass {
		t.Errorf("%+v", v)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20 * time.Second); ; {
		if _, err := os.Stat(pid); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the program did not start")
		}
	}
	cancel()
	for v := range came {
		t.Errorf("a verdict came: %+v", v)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(string(b)); alive(n) {
		t.Errorf("process %d is alive", n)
	}
}

func TestPatternsFindKeysAndNeverRepeatThem(t *testing.T) {
	secrets := Definition{Name: "p", Pattern: []string{"secrets"}}
	call := func(args string) transcript.Part {
		return transcript.Part{Type: transcript.PartCall, Call: &transcript.Call{ID: "c", Name: "write_file", Args: args}}
	}
	github := "ghp_" + strings.Repeat("aB3", 12)
	for _, tt := range []struct {
		name string
		part transcript.Part
		want string
	}{
		{"plain text", text("Ask the-task-sk-list, risk-adjusted-something-long, sk-ipped."), "p pass"},
		{"documentation's own", text("AKIAIOSFODNN7EXAMPLE"), "p pass"},
		{"AWS", text("a\nb AKIAIOSFODNN7ABCDEFG"), "p reject an AWS access key is in the text, line 2"},
		{"GitHub", text(github), "p reject a GitHub token is in the text, line 1"},
		{"OpenAI", text("sk-proj-" + strings.Repeat("abc123", 8)), "p reject an API key (sk-…) is in the text, line 1"},
		{"Anthropic", text("sk-ant-api03-" + strings.Repeat("abc123", 8)), "p reject an API key (sk-…) is in the text, line 1"},
		{"a key file", text("-----BEGIN OPENSSH PRIVATE KEY-----"), "p reject a private key is in the text, line 1"},
		{"reasoning", transcript.Part{Type: transcript.PartReasoning, Text: github}, "p reject a GitHub token is in the reasoning, line 1"},
		{"arguments", call(`{"text":"` + github + `"}`), "p reject a GitHub token is in the call of write_file, line 1"},
		{"escaped arguments", call(`{"text":["\u0067hp_` + github[4:] + `"]}`), "p reject a GitHub token is in the call of write_file, line 1"},
		{"malformed arguments", call(`{"text":"` + github), "p reject a GitHub token is in the call of write_file, line 1"},
	} {
		got := verdicts(t.Context(), input(t, tt.part), secrets)
		if len(got) != 1 || got[0] != tt.want || strings.Contains(got[0], github[4:]) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAPatternOnEditsLooksAtWhatTheFilesHoldNow(t *testing.T) {
	d := Definition{Name: "p", Pattern: []string{"TODO"}, On: Edits}
	for _, tt := range []struct {
		files []File
		err   error
		want  string
	}{
		{[]File{{Path: "a", Before: []byte("TODO"), After: []byte("done")}}, nil, "p pass"},
		{[]File{{Path: "a", After: []byte("x\nTODO")}}, nil, "p reject the pattern TODO is in a, line 2"},
		{[]File{{Path: "a", Before: []byte("TODO")}}, nil, "p pass"},
		{nil, errors.New("gone"), "p error the changed files cannot be read: gone"},
	} {
		in := input(t, text("TODO"))
		in.Files = func() ([]File, error) { return tt.files, tt.err }
		if got := verdicts(t.Context(), in, d); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// guards K4: what decides the verdict is in the hash, and nothing else.
func TestTheHashOfADefinitionIsOfWhatItJudges(t *testing.T) {
	base := Definition{Name: "a", Command: []string{"x", "y"}}
	same := []Definition{base, {Name: "a", Command: []string{"x", "y"}, On: Answer, Hold: true, Timeout: time.Hour}}
	for _, d := range same {
		if d.SHA256() != base.SHA256() {
			t.Errorf("%+v has another hash", d)
		}
	}
	seen := map[string]bool{}
	for _, d := range []Definition{
		base, {Name: "b", Command: []string{"x", "y"}}, {Name: "a", Command: []string{"x y"}}, {Name: "a", Shell: "x y"}, {Name: "a", Pattern: []string{"x"}},
		{Name: "a", Pattern: []string{"y"}}, {Name: "a", Pattern: []string{"x", "y"}}, {Name: "a", Command: []string{"x", "y"}, On: Edits}, {Name: "a", Pattern: []string{"secrets"}},
	} {
		if sum := d.SHA256(); seen[sum] || len(sum) != 64 {
			t.Errorf("%+v has the hash of another one, or %q is none", d, sum)
		} else {
			seen[sum] = true
		}
	}
}

// A repository does not choose what is run, however PATH is set.
func TestAProgramInTheWorkspaceIsNotFoundOnPath(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in := input(t, text("x"))
	name := filepath.Join(in.Workspace, "mine")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", in.Workspace)
	got := verdicts(t.Context(), in, Definition{Name: "a", Command: []string{"mine", "as-check", "pass"}})
	if len(got) != 1 || !strings.Contains(got[0], "lies in the workspace") {
		t.Errorf("%q", got)
	}
	if got := verdicts(t.Context(), in, Definition{Name: "a", Command: []string{name, "as-check", "pass"}}); len(got) != 1 || got[0] != "a pass" {
		t.Errorf("by its whole path: %q", got)
	}
	for _, program := range []string{"./mine", "../x/mine", ""} {
		if field, err := (&Definition{Name: "a", Command: []string{program}}).Validate(); err == nil || field != "command" {
			t.Errorf("%q is valid", program)
		}
	}
}
