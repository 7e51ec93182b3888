package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mode is what happens to a call that may change something and that nothing else decides about.
type Mode string

// The modes. The zero value "" is ModeAsk, and so is any word not in this list: see [ParseMode].
const (
	ModeReadOnly Mode = "read-only" // deny, whatever else allows it
	ModeAsk      Mode = "ask"       // ask the user
	ModeEdit     Mode = "edit"      // allow changes of files in the workspace, ask about all else
	ModeTrust    Mode = "trust"     // allow
)

// Modes are all modes, the strictest first. The slice is the caller's.
func Modes() []Mode { return []Mode{ModeReadOnly, ModeAsk, ModeEdit, ModeTrust} }

// ParseMode makes a Mode of what a person wrote; "" is ModeAsk. Any other word is an error that lists the modes.
func ParseMode(s string) (Mode, error) {
	if s == "" {
		return ModeAsk, nil
	}
	if m := Mode(s); slices.Contains(Modes(), m) {
		return m, nil
	}
	return "", fmt.Errorf("permission mode %q: it is one of %q", s, Modes())
}

// Policy is the user's configuration, never the workspace's. Its zero value asks about everything that is not read-only,
// and about reading secret files.
type Policy struct {
	Mode  Mode
	Rules []Rule // their order does not matter

	// Protected are absolute paths, links resolved, of folders that no call may name: fermata's own.
	Protected []string
	// Secrets are patterns of files that are asked about also when they are only read, besides the built-in ones, and
	// NotSecrets are patterns of files that neither makes secret. See [ValidPattern].
	Secrets, NotSecrets []string
	// TrustSecrets lets ModeTrust allow calls that name secret files.
	TrustSecrets bool

	// PlainWords is for a shell that is not POSIX: a command then has words only when none of them needs quoting.
	PlainWords bool
}

// With is the policy in another mode; "" is no other.
func (p Policy) With(m Mode) Policy {
	if m != "" {
		p.Mode = m
	}
	return p
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
	Narrow  bool // of Ask: an answer for the session covers these very files or this very command, not the tool's others
}

// Decide answers c. The first of these that applies decides:
//
//  1. what is protected in every mode is denied: changes of .git, any use of fermata's own folders
//  2. in ModeReadOnly, all that is not read-only is denied
//  3. rules that deny
//  4. what the user allowed for the session about this very command, or these very files
//  5. secret files, and commands that name such files or protected ones, are asked about, unless ModeTrust was
//     configured to trust them with secrets
//  6. rules that ask
//  7. rules that allow
//  8. read-only calls are allowed
//  9. what the user allowed for the session of a tool's changes
//  10. the mode
func (p Policy) Decide(c Call, g Grants) Decision {
	words := p.read(c.Command)
	if why := p.protected(c); why != "" {
		return Decision{Verdict: Deny, Why: why}
	}
	if p.Mode == ModeReadOnly && !c.ReadOnly {
		return Decision{Verdict: Deny, Why: "permission mode is read-only: nothing may be changed or run"}
	}
	if r, ok := p.concerns(Deny, c, words); ok {
		return Decision{Verdict: Deny, Why: "the user's configuration denies it (" + r.String() + ")"}
	}
	if g.covers(c, words) {
		return mint(c, "session", "allowed for this session")
	}
	if why := p.guarded(c, words); why != "" {
		return Decision{Verdict: Ask, Why: why, Narrow: true}
	}
	if r, ok := p.concerns(Ask, c, words); ok {
		return Decision{Verdict: Ask, Why: "the configuration asks about it (" + r.String() + ")", Narrow: true}
	}
	if r, ok := p.allows(c, words); ok {
		return mint(c, "config", "the configuration allows it ("+r.String()+")")
	}
	switch {
	case c.ReadOnly:
		return mint(c, "read-only", "it changes nothing")
	case g.coversTool(c):
		return mint(c, "session", "allowed for this session")
	case p.Mode == ModeTrust && !p.opaque(words):
		return mint(c, "trust", "permission mode is trust")
	case p.Mode == ModeEdit && c.Command == "" && len(c.Paths) > 0:
		return mint(c, "edit", "permission mode is edit")
	}
	return Decision{Verdict: Ask, Why: p.whyAsk(c, words)}
}

// whyAsk says why nothing allows c.
func (p Policy) whyAsk(c Call, words command) string {
	switch {
	case c.Command == "" && len(c.Paths) == 0:
		return "permission mode is " + string(p.mode()) + ": the user decides about " + c.Tool
	case c.Command == "":
		return "permission mode is " + string(p.mode()) + ": the user decides about changes"
	case p.opaque(words):
		why := words.not
		if why == "" {
			why = "it runs what another program reads"
		}
		return "there are rules about commands, and it cannot be told whether they are about this one: " + why
	case words.not != "" && p.hasCommandRule(Allow):
		return "no rule can allow it: " + words.not
	}
	return "permission mode is " + string(p.mode()) + ": the user decides about commands"
}

func (p Policy) mode() Mode {
	if slices.Contains(Modes(), p.Mode) {
		return p.Mode
	}
	return ModeAsk
}

// Grants are what the user allowed for the rest of a session: a tool that changes files by its name, or only for the very
// files that it was asked about; a command by its exact words and where links in it lead. The zero value grants
// nothing. A Grants is a value: no method changes it.
type Grants struct{ allowed map[grant]bool }

// grant has neither command nor path when it is about all changes of a tool.
type grant struct{ tool, root, command, path string }

// covers reports whether c was granted by name.
func (g Grants) covers(c Call, words command) bool {
	for _, one := range narrow(c, words) {
		if !g.allowed[one] {
			return false
		}
	}
	return c.Command != "" || len(c.Paths) > 0
}

// coversTool reports whether all that c's tool changes was granted.
func (g Grants) coversTool(c Call) bool { return c.Command == "" && g.allowed[grant{tool: c.Tool}] }

// narrow are the grants that a call needs when it is granted by name.
func narrow(c Call, words command) (all []grant) {
	if c.Command != "" {
		exact := "line\x00" + c.Command
		if words.not == "" {
			exact = "words\x00" + strings.Join(words.words, "\x00")
		}
		all = append(all, grant{tool: c.Tool, root: c.Root, command: exact})
	}
	for _, path := range slices.Concat(c.Paths, c.Leads) {
		all = append(all, grant{tool: c.Tool, root: c.Root, path: path})
	}
	return all
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
	d := p.Decide(c, g)
	if d.Verdict != Ask {
		return d, g
	}
	if a == AllowOnce {
		return mint(c, "once", "allowed once"), g
	}
	all := []grant{{tool: c.Tool}}
	if d.Narrow || c.Command != "" {
		all = narrow(c, p.read(c.Command))
	}
	return mint(c, "session", "allowed for this session"), g.with(all)
}

func (g Grants) with(all []grant) Grants {
	m := maps.Clone(g.allowed)
	if m == nil {
		m = map[grant]bool{}
	}
	for _, one := range all {
		m[one] = true
	}
	return Grants{m}
}
