package permit

import "testing"

var (
	read = Call{Tool: "read_file", ReadOnly: true, Path: "a"}
	edit = Call{Tool: "edit_file", Path: "a", Summary: "edit_file a"}
	ls   = Call{Tool: "run", Command: "ls"}
	rm   = Call{Tool: "run", Command: "rm -r ."}
)

func TestAPolicyDecides(t *testing.T) {
	granted := Grants{}.with(edit).with(ls)
	for name, tt := range map[string]struct {
		policy Policy
		grants Grants
		call   Call
		want   Verdict
		by     string
	}{
		"the zero policy asks":                         {call: edit, want: Ask},
		"an unknown mode asks":                         {policy: Policy{Mode: "yess"}, call: edit, want: Ask},
		"a read-only call is allowed":                  {call: read, want: Allow, by: "read-only"},
		"a read-only call in read-only mode":           {policy: Policy{Mode: ModeReadOnly}, call: read, want: Allow, by: "read-only"},
		"read-only mode denies a change":               {policy: Policy{Mode: ModeReadOnly}, call: edit, want: Deny},
		"read-only mode wins over allow and grants":    {policy: Policy{Mode: ModeReadOnly, Allow: []string{"edit_file"}}, grants: granted, call: edit, want: Deny},
		"yes allows":                                   {policy: Policy{Mode: ModeYes}, call: rm, want: Allow, by: "yes"},
		"a tool in the config is allowed":              {policy: Policy{Allow: []string{"edit_file"}}, call: edit, want: Allow, by: "config"},
		"another tool in the config is no help":        {policy: Policy{Allow: []string{"edit"}}, call: edit, want: Ask},
		"a granted tool may change other files":        {grants: granted, call: Call{Tool: "edit_file", Path: "b"}, want: Allow, by: "session"},
		"a granted command is allowed":                 {grants: granted, call: ls, want: Allow, by: "session"},
		"a granted command grants no other":            {grants: granted, call: rm, want: Ask},
		"a granted command grants no longer one":       {grants: granted, call: Call{Tool: "run", Command: "ls; rm x"}, want: Ask},
		"a granted command grants no missing one":      {grants: granted, call: Call{Tool: "run"}, want: Ask},
		"a granted edit does not grant write_file":     {grants: granted, call: Call{Tool: "write_file", Path: "a"}, want: Ask},
		"config that allows run allows every command":  {policy: Policy{Allow: []string{"run"}}, call: rm, want: Allow, by: "config"},
		"config comes before grants in what it is by ": {policy: Policy{Allow: []string{"run"}}, grants: granted, call: ls, want: Allow, by: "config"},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.policy.Decide(tt.call, tt.grants)
			if d.Verdict != tt.want || d.Permit.By() != tt.by || d.Why == "" {
				t.Errorf("got %+v, want %s by %q with a reason", d, tt.want, tt.by)
			}
			if d.Permit.Valid() != (d.Verdict == Allow) || d.Permit.Allows(tt.call) != (d.Verdict == Allow) {
				t.Errorf("permit and verdict disagree: %+v", d)
			}
		})
	}
}

func TestAnAnswerResolvesACall(t *testing.T) {
	for name, tt := range map[string]struct {
		policy Policy
		answer Answer
		want   Verdict
		by     string
		later  Verdict // about the same call, asked again
	}{
		"once":                              {answer: AllowOnce, want: Allow, by: "once", later: Ask},
		"for the session":                   {answer: AllowSession, want: Allow, by: "session", later: Allow},
		"denied":                            {answer: DenyCall, want: Deny, later: Ask},
		"an unknown answer denies":          {answer: "yes please", want: Deny, later: Ask},
		"read-only mode cannot be answered": {policy: Policy{Mode: ModeReadOnly}, answer: AllowSession, want: Deny, later: Deny},
		"a no counts even in mode yes":      {policy: Policy{Mode: ModeYes}, answer: DenyCall, want: Deny, later: Allow},
	} {
		t.Run(name, func(t *testing.T) {
			var before Grants
			d, after := tt.policy.Resolve(ls, before, tt.answer, "")
			if d.Verdict != tt.want || d.Permit.By() != tt.by || d.Why == "" {
				t.Errorf("got %+v, want %s by %q", d, tt.want, tt.by)
			}
			if got := tt.policy.Decide(ls, after).Verdict; got != tt.later {
				t.Errorf("asked again: %s, want %s", got, tt.later)
			}
			if len(before.allowed) != 0 {
				t.Error("the grants passed in were changed")
			}
		})
	}
}

func TestADenialKeepsTheUsersWords(t *testing.T) {
	d, _ := Policy{}.Resolve(rm, Grants{}, DenyCall, "not on my disk")
	if d.Why != "not on my disk" {
		t.Errorf("why = %q", d.Why)
	}
}

func TestAPermitAllowsOnlyItsOwnCall(t *testing.T) {
	p := Policy{Mode: ModeYes}.Decide(ls, Grants{}).Permit
	other := ls
	other.Summary = "another line for people"
	if !p.Allows(ls) || !p.Allows(other) {
		t.Error("a permit does not allow its own call")
	}
	if p.Allows(rm) || (Permit{}).Allows(Call{}) || (Permit{}).Valid() {
		t.Error("a permit allows a call that was not asked about")
	}
	if r := (Policy{}).Decide(read, Grants{}).Permit; r.Allows(Call{Tool: "read_file", Path: "a"}) {
		t.Error("a read-only permit allows a change")
	}
}

func TestAModeIsParsed(t *testing.T) {
	for in, want := range map[string]Mode{"": ModeAsk, "ask": ModeAsk, "yes": ModeYes, "read-only": ModeReadOnly} {
		if m, err := ParseMode(in); m != want || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v", in, m, err)
		}
	}
	if _, err := ParseMode("YES"); err == nil {
		t.Error("a mode nobody defined was accepted")
	}
}
