package permit

import (
	"strings"
	"testing"
)

// decides checks what a policy says to each command.
func decides(t *testing.T, p Policy, want map[string]Verdict) {
	t.Helper()
	for command, verdict := range want {
		if d := p.Decide(runs(command), Grants{}); d.Verdict != verdict || strings.HasSuffix(d.Why, ": ") {
			t.Errorf("%.80q: %s (%s), want %s", command, d.Verdict, d.Why, verdict)
		}
	}
}

func TestARuleThatDeniesFindsItsCommandBehindOptionsAndInOtherLetterCase(t *testing.T) {
	decides(t, Policy{Mode: ModeTrust, Rules: rules("deny, command git push; deny, command rm")}, map[string]Verdict{
		"git -C . push": Deny, "git -c a=b --no-pager push": Deny, "git --git-dir x push -f": Deny, "sudo git -C . push": Deny,
		"RM x": Deny, "/bin/Rm x": Deny, "Git push": Deny,
		"git log push": Allow, "git commit -m push": Allow, "git -C . log": Allow, "git --no-pager diff": Allow, "ls -l push": Allow,
	})
}

func TestAWordThatOnlyTheShellKnowsMayBeOneThatARuleDenies(t *testing.T) {
	decides(t, Policy{Mode: ModeTrust, Rules: rules("deny, command git push")}, map[string]Verdict{
		`git pu\sh`: Ask, "git $X": Ask, `git "$(echo push)"`: Ask, "git -C $X push": Deny, "git {push,x}": Ask, "git -C . $X": Ask,
		"git log $X": Allow, "ls $X": Allow, "git commit -m $X": Allow,
	})
}

func TestARuleThatDeniesFindsItsCommandInWhatRunsOthers(t *testing.T) {
	decides(t, Policy{Mode: ModeTrust, Rules: rules("deny, command rm")}, map[string]Verdict{
		"coproc rm x": Deny, "flock f rm x": Deny, "taskset 1 rm x": Deny, "strace rm x": Deny, "toybox rm x": Deny,
		"A+=1 rm x": Deny, "a[0]=1 rm x": Ask,
		"env -S 'rm x'": Ask, "env -Srm x": Ask, "env --split-string='rm x'": Ask, "env -iSrm x": Ask, "flock f -c 'rm x'": Ask,
		"tcsh -c 'rm x'": Ask, "pwsh x": Ask, "echo x | at now": Ask,
		"env A=1 ls": Allow, "env A=S ls": Allow, "find . -name x": Allow,
	})
}

func TestARuleAboutTheToolDoesNotAllowWhatOneAboutCommandsMayDeny(t *testing.T) {
	decides(t, Policy{Rules: rules("allow, tool run; deny, command rm; allow, command bash x.sh")}, map[string]Verdict{
		"sh -c 'rm x'": Ask, `r\m x`: Ask, "$X y": Ask, "unclosed 'x": Ask,
		"rm x": Deny, "ls; ls": Allow, "bash x.sh": Allow,
	})
}

func TestAShellThatIsNotPOSIXFindsTheDeniedProgram(t *testing.T) {
	decides(t, Policy{Mode: ModeTrust, PlainWords: true, Rules: rules("deny, command del; deny, command rm")}, map[string]Verdict{
		"del x": Deny, "DEL x": Deny, `c:\bin\rm.exe x`: Deny, "rm.EXE x": Deny,
		"@del x": Ask, "del/q x": Ask, "=del x": Ask, "del=x": Ask, "cmd /c del x": Ask, "powershell rm x": Ask, "start rm x": Deny,
		"call del x": Deny, "dir x": Allow, `.\x.cmd a=b`: Allow,
	})
}

func TestACommandNamesASecretFileHoweverItIsWritten(t *testing.T) {
	own := "/home/me/.config/fermata"
	decides(t, Policy{Mode: ModeTrust, Protected: []string{own}}, map[string]Verdict{
		`cat "$PWD/.env"`: Ask, `cat "$PWD"/.env`: Ask, `cat .en\v`: Ask, `cat ".en"v`: Ask, "cat .env*": Ask, "cat .en?": Ask,
		"cat .en[v]": Ask, "cat .en{v,}": Ask, "cat x/id_*": Ask, "cat ~/.ss*/x": Ask, "rm -r .gi[t]": Ask, "cat .env.$X": Ask,
		"sh -c 'cat .env.local'": Ask, "sh <<E\ncat .env.local\nE": Ask, "eval 'cat .env.local'": Ask, "cat <(cat .env.local)": Ask,
		"cat .env.local\r": Ask, "cat .env.local\u00a0": Ask, "cat .env.local )": Ask,
		"cat .env.local # " + strings.Repeat("x", commandBound): Ask,
		"docker run -v .env:/x y":                               Ask, "cc -o.git/hooks/x y.c": Ask,
		"docker run --mount type=bind,src=.env,dst=/x y": Ask,
		"grep -f.env.local x":                            Ask, "cat .ſsh/x": Ask,
		"echo x >> ~/.config/fermata/config.toml": Ask, `cp x "$HOME/.config/fermata"`: Ask, "cp x ${HOME}/.config/Fermata/x": Ask,
		"cp x ~me/.config/fermata/x": Ask, "cp x ~/../me/.config/fermata/x": Ask,

		"ls *": Allow, "cat *.json": Allow, "ls src/*.go": Allow, "git commit -m 'read .env.local no more'": Allow,
		"ls ~/fermata":    Allow,
		"ls $PWD/fermata": Allow, "ls .github/*": Allow, "echo a,b": Allow, "sh -c 'ls x'": Allow, "ls -la": Allow,
		"ls ~/.config/x": Allow,
	})
	decides(t, Policy{Mode: ModeTrust, PlainWords: true}, map[string]Verdict{
		`type "config\.env.local"`: Ask, "type .env.local & dir": Ask, "type a & dir": Allow,
	})
}

func TestAPatternOfSecretsFindsAFileThatACommandNamesFromElsewhere(t *testing.T) {
	decides(t, Policy{Mode: ModeTrust, Secrets: []string{"prod/**"}}, map[string]Verdict{
		"cat prod/x": Ask, "cat ./prod/x": Ask, "cat " + root + "/prod/x": Ask, "cat ../work/prod/x": Ask, `cat "$PWD/prod/x"`: Ask,
		"cat ${PWD}/src/../prod/x": Ask, "cat /HOME/me/work/prod/x": Ask,
		"cat src/prod/x": Allow, "cat " + root + "/src/x": Allow, "cat /prod": Allow, "cat ../prod/x": Allow,
		`cat "$PWD/src/x"`: Allow,
	})
}

func TestTheOwnFoldersAreProtectedUnderNamesThatSystemsTakeForThem(t *testing.T) {
	p := Policy{Mode: ModeTrust, Protected: []string{root + "/data/fermata"}}
	for _, name := range []string{
		"data/fermata./x", "data/fermata /x", "data/fer\u200dmata/x", "data/fermata::$INDEX_ALLOCATION/x", "data./fermata",
	} {
		if d := p.Decide(changes("write_file", name), Grants{}); d.Verdict != Deny {
			t.Errorf("%q: %s (%s)", name, d.Verdict, d.Why)
		}
	}
}

func TestAnAnswerForTheSessionIsAboutTheFilesThatACommandLedTo(t *testing.T) {
	call := func(leads ...string) Call { return Call{Tool: "run", Command: "cat notes", Leads: leads, Root: root} }
	_, g := Policy{}.Resolve(call(), Grants{}, AllowSession, "")
	if d := (Policy{}).Decide(call(".env"), g); d.Verdict != Ask {
		t.Errorf("a link that now leads to a secret file: %s (%s)", d.Verdict, d.Why)
	}
	_, g = Policy{}.Resolve(call(".env"), g, AllowSession, "")
	if d := (Policy{}).Decide(call(".env"), g); d.Verdict != Allow {
		t.Errorf("asked again: %s (%s)", d.Verdict, d.Why)
	}
}

func TestAnAnswerForTheSessionAboutWordsIsNotOneAboutALine(t *testing.T) {
	_, g := Policy{}.Resolve(runs("'' 'ls; rm x'"), Grants{}, AllowSession, "")
	if d := (Policy{}).Decide(runs("ls; rm x"), g); d.Verdict != Ask {
		t.Errorf("%s (%s)", d.Verdict, d.Why)
	}
}

// Each name is looked at: as many as there are letters, each as long as the word, take the processor for half a minute.
func TestTheNamesInAWordAreNotManyTimesItsLength(t *testing.T) {
	for _, text := range []string{
		"x " + strings.Repeat("a=", 20_000), "x " + strings.Repeat("=", 40_000), "$x " + strings.Repeat(":a,", 13_000),
		strings.Repeat(`"$x"/`, 8_000), "x <<E\n" + strings.Repeat("a:\n", 13_000) + "E",
	} {
		size := 0
		for _, name := range Names(text) {
			size += len(name) + 1
		}
		if size > 15*len(text) {
			t.Errorf("%.20q: %d bytes of names for %d", text, size, len(text))
		}
	}
}

func TestARuleThatDeniesAPathDeniesItsOtherSpellings(t *testing.T) {
	for _, mode := range []Mode{ModeEdit, ModeTrust} {
		p := Policy{Mode: mode, Rules: rules("deny, path a/Private/**; ask, path b/x.txt; deny, path *.lock")}
		for _, tt := range []struct {
			call Call
			want Verdict
		}{
			{changes("move_path", "z", "a/private"), Deny},
			{changes("write_file", "a/private./x"), Deny},
			{changes("write_file", "a/pri\u200dvate/x"), Deny},
			{changes("write_file", "x.lock::$DATA"), Deny},
			{changes("write_file", "b/X.TXT "), Ask},
			{changes("write_file", "a/b"), Allow},
			{reads("a"), Allow},
		} {
			if d := p.Decide(tt.call, Grants{}); d.Verdict != tt.want {
				t.Errorf("%s: %s %q: %s (%s), want %s", mode, tt.call.Tool, tt.call.Paths, d.Verdict, d.Why, tt.want)
			}
		}
	}
}
