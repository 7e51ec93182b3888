package permit

import (
	"fmt"
	"maps"
	"slices"
)

// Call is the question: what a tool call is about to do. Tools make it from their arguments (tools.Tool.Ask), so that
// what was asked and what is run cannot differ.
type Call struct {
	Tool     string
	ReadOnly bool   // changes nothing
	Summary  string // one line for people; no part of the decision
	Command  string // of a tool that runs one: exactly what the shell is given
	Path     string // of a tool that changes one file: as the model named it
}

// Mode is what happens to a call that may change something and that nothing else allows.
type Mode string

// The modes. The zero value "" is ModeAsk, and so is any word not in this list: see [ParseMode].
const (
	ModeAsk      Mode = "ask"       // ask the user
	ModeYes      Mode = "yes"       // allow
	ModeReadOnly Mode = "read-only" // deny, whatever else allows it
)

// ParseMode makes a Mode of what a person wrote; "" is ModeAsk. Any other word is an error that lists the modes.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeAsk, nil
	case ModeAsk, ModeYes, ModeReadOnly:
		return m, nil
	}
	return "", fmt.Errorf("permission mode %q: it is one of %q, %q, %q", s, ModeAsk, ModeYes, ModeReadOnly)
}

// Policy is the user's configuration, never the workspace's. Its zero value asks about everything that is not read-only.
type Policy struct {
	Mode  Mode
	Allow []string // names of tools allowed without asking
}

// Verdict is what a decision says.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask"
)

// Decision is a verdict with its reason, for people and models. Permit is valid if and only if Verdict is Allow.
type Decision struct {
	Verdict Verdict
	Permit  Permit
	Why     string
}

// Grants are what the user allowed for the rest of a session: a tool that changes files by its name, a command by its
// exact text. The zero value grants nothing. A Grants is a value: no method changes it.
type Grants struct{ allowed map[grant]bool }

type grant struct{ tool, command string }

// Decide answers c. It never asks about a read-only call, and never allows another in ModeReadOnly.
func (p Policy) Decide(c Call, g Grants) Decision {
	switch {
	case c.ReadOnly:
		return mint(c, "read-only")
	case p.Mode == ModeReadOnly:
		return Decision{Verdict: Deny, Why: "permission mode is read-only: nothing may be changed or run"}
	case p.Mode == ModeYes:
		return mint(c, "yes")
	case slices.Contains(p.Allow, c.Tool):
		return mint(c, "config")
	case g.allowed[grant{c.Tool, c.Command}]:
		return mint(c, "session")
	}
	return Decision{Verdict: Ask, Why: "the user decides about " + c.Tool}
}

// Answer is what the user said when asked.
type Answer string

// The answers. Any other word denies.
const (
	AllowOnce    Answer = "once"
	AllowSession Answer = "session"
	DenyCall     Answer = "deny"
)

// Resolve is the decision about c once the user has answered, and the grants from then on. why is the user's reason for
// denying, in their words, or "". An answer cannot allow what the policy denies by now.
func (p Policy) Resolve(c Call, g Grants, a Answer, why string) (Decision, Grants) {
	if a != AllowOnce && a != AllowSession {
		if why == "" {
			why = "the user did not allow it"
		}
		return Decision{Verdict: Deny, Why: why}, g
	}
	if d := p.Decide(c, g); d.Verdict != Ask {
		return d, g
	}
	if a == AllowOnce {
		return mint(c, "once"), g
	}
	return mint(c, "session"), g.with(c)
}

func (g Grants) with(c Call) Grants {
	m := maps.Clone(g.allowed)
	if m == nil {
		m = map[grant]bool{}
	}
	m[grant{c.Tool, c.Command}] = true
	return Grants{m}
}
