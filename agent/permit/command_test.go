package permit

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// goTest is one rule that allows; every command below is asked about under it unless want says otherwise.
var goTest = Policy{Rules: []Rule{{Command: "go test", Decision: Allow}}}

func TestARuleAllowsACommandByItsWords(t *testing.T) {
	for _, tt := range []struct {
		command string
		want    Verdict
	}{
		{"go test", Allow},
		{"go test ./...", Allow},
		{"  go   test\t./agent -run TestX ", Allow},
		{"go test\n", Allow},
		{"go 'test' ./...", Allow},
		{`go "test" ./...`, Allow},
		{`go te"st" ./...`, Allow},
		{`g'o' test`, Allow},
		{"go test -run 'TestA|TestB' ./x", Allow},
		{`go test -run "TestA TestB"`, Allow},
		{"go test -run 'a;b'", Allow},
		{"go test -run '$(rm x)'", Allow},
		{`go test -run '\bx'`, Allow},
		{"go test ./größe", Allow},
		{"go test a=b", Allow},
		{"go test 'a\nb'", Allow},
		{"go test ''", Allow},
		{"go test -- -x", Allow},

		{"go", Ask},
		{"go testify", Ask},
		{"go tes", Ask},
		{"go  build", Ask},
		{"gotest", Ask},
		{"'go test' x", Ask},
		{"go 'test x'", Ask},
		{"Go test", Ask},
		{"/usr/bin/go test", Ask},
		{"./go test", Ask},
		{"", Ask},
		{"   ", Ask},
		{"go test; rm -rf /", Ask},
		{"go test;", Ask},
		{"go test && rm x", Ask},
		{"go test || rm x", Ask},
		{"go test | tee x", Ask},
		{"go test |& tee x", Ask},
		{"go test & rm x", Ask},
		{"go test &", Ask},
		{"go test\nrm x", Ask},
		{"go test \\\nrm x", Allow}, // one line to the shell: rm and x are arguments
		{"go te\\st", Ask},
		{"go test \\;", Ask},
		{"go test $(rm x)", Ask},
		{"go test `rm x`", Ask},
		{`go test "$(rm x)"`, Ask},
		{"go test \"`rm x`\"", Ask},
		{"go test $X", Ask},
		{"go test ${X:-y}", Ask},
		{`go test "$X"`, Ask},
		{"go test $((1+1))", Ask},
		{"go test $'a\\nb'", Ask},
		{`go test $"a"`, Ask},
		{"go test > /etc/x", Ask},
		{"go test >> x", Ask},
		{"go test 2>&1", Ask},
		{"go test &> x", Ask},
		{"go test < x", Ask},
		{"go test <<EOF\nrm x\nEOF", Ask},
		{"go test <<< x", Ask},
		{"go test <(rm x)", Ask},
		{"go test >(rm x)", Ask},
		{"> x go test", Ask},
		{"FOO=x go test", Ask},
		{"PATH=. go test", Ask},
		{"FOO=x", Ask},
		{"(go test)", Ask},
		{"{ go test; }", Ask},
		{"! go test", Ask},
		{"if go test; then rm x; fi", Ask},
		{"while go test; do rm x; done", Ask},
		{"for i in a; do go test; done", Ask},
		{"case x in x) go test;; esac", Ask},
		{"go() { rm x; }; go test", Ask},
		{"alias go=rm; go test", Ask},
		{"env go test", Ask},
		{"sudo go test", Ask},
		{"eval go test", Ask},
		{"exec go test", Ask},
		{"command go test", Ask},
		{"time go test", Ask},
		{"sh -c 'go test'", Ask},
		{"xargs go test", Ask},
		{"go test *", Ask},
		{"go test ./*.go", Ask},
		{"go test x?", Ask},
		{"go test [a-z]", Ask},
		{"go test {a,b}", Ask},
		{"go test ~/x", Ask},
		{"go test # a comment", Ask},
		{"# go test", Ask},
		{"go test\r\nrm x", Ask},
		{"go test\x00", Ask},
		{"go test \x1b[2K", Ask},
		{"go test \u202Ex", Ask},
		{"go\u00a0test", Ask},
		{"go test \xff", Ask},
		{"go test 'unclosed", Ask},
		{"go test \"unclosed", Ask},
		{"go test )", Ask},
		{"coproc go test", Ask},
		{"function go { rm x; }", Ask},
		{"go test " + strings.Repeat("x", commandBound), Ask},
		{strings.Repeat("(", 10_000) + "go test" + strings.Repeat(")", 10_000), Ask},
		{"go test .env", Ask},
		{"go test -exec=secrets/../.env.local", Ask},
		{"go test .git/hooks", Ask},
	} {
		d := goTest.Decide(Call{Tool: "run", Command: tt.command}, Grants{})
		if d.Verdict != tt.want || d.Why == "" {
			t.Errorf("%.80q: %s (%s), want %s", tt.command, d.Verdict, d.Why, tt.want)
		}
	}
}

func TestARuleThatDeniesFindsItsCommandInAnother(t *testing.T) {
	p := Policy{Mode: ModeTrust, Rules: []Rule{{Command: "rm", Decision: Deny}, {Command: "git push", Decision: Ask}}}
	for command, want := range map[string]Verdict{
		"ls": Allow, "ls | wc -l": Allow, "echo rm": Allow, "git status": Allow, "ls > out": Allow, "git pull": Allow,
		"rm x": Deny, "/bin/rm x": Deny, "r'm' x": Deny, "ls; rm x": Deny, "ls && rm x": Deny, "echo $(rm x)": Deny,
		"echo `rm x`": Deny, `echo "$(rm x)"`: Deny, "FOO=1 rm x": Deny, "(rm x)": Deny, "if true; then rm x; fi": Deny,
		"sudo rm x": Deny, "xargs rm": Deny, "find . -exec rm x ;": Deny, "env A=1 rm x": Deny, "cat <<E\n$(rm x)\nE": Deny,
		"nohup rm x &": Deny, "ls | xargs -n 1 rm": Deny,
		"git push": Ask, "ls; git push -f": Ask,
		"sh -c 'rm x'": Ask, "eval 'rm x'": Ask, "$X y": Ask, `"$(printf rm)" x`: Ask, "sudo bash x": Ask, "r\\m x": Ask,
		"alias l=rm; l x": Ask, "unclosed 'x": Ask, ". ./x": Ask, "f() { ls; }; f": Ask,
	} {
		if d := p.Decide(Call{Tool: "run", Command: command}, Grants{}); d.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", command, d.Verdict, d.Why, want)
		}
	}
}

func TestAShellThatIsNotPOSIXGetsPlainWordsOnly(t *testing.T) {
	p := Policy{PlainWords: true, Rules: []Rule{{Command: "go test", Decision: Allow}}}
	for command, want := range map[string]Verdict{
		"go test ./...": Allow, `go test .\agent`: Allow, "go test -run TestX": Allow,
		"go test 'a & del b'": Ask, `go test "a"`: Ask, "go test %X%": Ask, "go test ^& del b": Ask, "go test & del b": Ask,
		"go test\ndel b": Ask, "go test > x": Ask, "go test (x)": Ask, "go test !X!": Ask, "go test a;b": Ask, "go test a,b": Ask,
		"go test größe": Ask, `go test config\.env`: Ask,
	} {
		if d := p.Decide(Call{Tool: "run", Command: command}, Grants{}); d.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", command, d.Verdict, d.Why, want)
		}
	}
}

// What a rule allows is, read anew, one simple command: nothing set, redirected, replaced or run besides, and its first
// words are the rule's.
func FuzzAnAllowedCommandIsOneSimpleCommandOfTheRulesWords(f *testing.F) {
	for _, s := range []string{
		"go test ./...", "go test; rm x", "go test $(rm x)", "go 'te'st \"a b\"", "go test > x", "FOO=x go test", "go test && y",
		"go test `x`", "go test\\\n x", "go test <<E\nx\nE", "go test &", "go test *", "go test # x", "{ go test; }", "go test ~",
		"go test $'x'", "go test \"\\$x\"", "go test\r", "go test ''", "! go test", "go test a\\ b", "go test =(x)", "go test !x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if d := goTest.Decide(Call{Tool: "run", Command: command}, Grants{}); d.Verdict != Allow {
			return
		}
		for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
			file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
			if err != nil || len(file.Stmts) != 1 {
				t.Fatalf("%q was allowed, but is not one command (%v)", command, err)
			}
			s := file.Stmts[0]
			call, ok := s.Cmd.(*syntax.CallExpr)
			if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 {
				t.Fatalf("%q was allowed, but is not simple", command)
			}
			var words []string
			for _, w := range call.Args {
				var word strings.Builder
				for _, part := range w.Parts {
					switch part := part.(type) {
					case *syntax.Lit:
						if strings.ContainsAny(part.Value, "\\$`*?[]{}<>&|;()\"'") || strings.ContainsFunc(part.Value, unicode.IsSpace) {
							t.Fatalf("%q was allowed with the bare text %q", command, part.Value)
						}
						word.WriteString(part.Value)
					case *syntax.SglQuoted:
						word.WriteString(part.Value)
					case *syntax.DblQuoted:
						for _, inner := range part.Parts {
							lit, ok := inner.(*syntax.Lit)
							if !ok || strings.ContainsAny(lit.Value, "\\$`") {
								t.Fatalf("%q was allowed with something to replace in quotes", command)
							}
							word.WriteString(lit.Value)
						}
					default:
						t.Fatalf("%q was allowed with a %T", command, part)
					}
				}
				words = append(words, word.String())
			}
			if len(words) < 2 || !slices.Equal(words[:2], []string{"go", "test"}) {
				t.Fatalf("%q was allowed; it begins with %q", command, words)
			}
		}
	})
}
