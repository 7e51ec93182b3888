package permit

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Rule decides about the calls that it concerns. A field that is "" concerns all; a rule whose fields are all "" is not
// valid.
type Rule struct {
	Tool     string  // its name
	Command  string  // the first words of a command; only of a tool that runs one
	Path     string  // a pattern of what the call names; see [ValidPattern]. It also concerns tools that only read.
	Decision Verdict // Allow, Deny or Ask
}

// Validate says what is wrong with a rule; field is the key it is about.
func (r Rule) Validate() (field string, err error) {
	switch r.Decision {
	case Allow, Deny, Ask:
	default:
		return "decision", fmt.Errorf("decision is %q; it must be allow, deny or ask", r.Decision)
	}
	switch {
	case r.Tool == "" && r.Command == "" && r.Path == "":
		return "", errors.New("a rule needs a tool, a command or a path")
	case r.Command != "" && r.Path != "":
		return "path", errors.New("a rule is about a command or about a path; make two rules of it")
	}
	if r.Command != "" {
		if c := readCommand(r.Command, false); c.not != "" {
			return "command", fmt.Errorf("command %q cannot be the beginning of a command: %s", r.Command, c.not)
		}
	}
	if r.Path != "" {
		return "path", ValidPattern(r.Path)
	}
	return "", nil
}

// String is the rule as a person may have written it.
func (r Rule) String() string {
	var parts []string
	for _, f := range []struct{ key, value string }{{"tool", r.Tool}, {"command", r.Command}, {"path", r.Path}} {
		if f.value != "" {
			parts = append(parts, fmt.Sprintf("%s %q", f.key, f.value))
		}
	}
	return "rule: " + string(r.Decision) + " " + strings.Join(parts, ", ")
}

// concerns finds a rule that denies or asks about c: one that is about any of its files, or about any of the commands
// within its command.
func (p Policy) concerns(v Verdict, c Call, words command) (Rule, bool) {
	for _, r := range p.Rules {
		if r.Decision != v || r.Tool != "" && r.Tool != c.Tool {
			continue
		}
		switch {
		case r.Command != "":
			if yes, _ := words.mentions(readCommand(r.Command, false).words); !yes {
				continue
			}
		case r.Path != "":
			if !slices.ContainsFunc(c.Paths, func(name string) bool {
				return matches(r.Path, name) || matches(r.Path, plainPath(name))
			}) {
				continue
			}
		}
		return r, true
	}
	return Rule{}, false
}

// allows finds a rule that allows c: one that its command begins with, all of it being one simple command, or, for each of
// its files, one that is about it. One about the tool alone does not allow what a rule about commands may deny.
func (p Policy) allows(c Call, words command) (found Rule, ok bool) {
	var mine []Rule
	for _, r := range p.Rules {
		if r.Decision != Allow || r.Tool != "" && r.Tool != c.Tool {
			continue
		}
		if r.Command == "" && r.Path == "" && !p.opaque(words) ||
			r.Command != "" && words.beginsWith(readCommand(r.Command, p.PlainWords).words) {
			return r, true
		}
		if r.Path != "" {
			mine = append(mine, r)
		}
	}
	for _, name := range c.Paths {
		i := slices.IndexFunc(mine, func(r Rule) bool { return matchesExactly(r.Path, name) })
		if i < 0 {
			return Rule{}, false
		}
		found, ok = mine[i], true
	}
	return found, ok
}

func (p Policy) hasCommandRule(verdicts ...Verdict) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Command != "" && slices.Contains(verdicts, r.Decision) })
}

// ValidPattern says what is wrong with a pattern of files. Patterns are globs, "**" is any number of folders; one without a
// slash is about the names of files in any folder, one with a slash about the path from the root. Letter case counts only
// where a pattern loosens something.
func ValidPattern(pattern string) error {
	switch {
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "~"):
		return fmt.Errorf("the pattern %q must be relative to the workspace, like %q", pattern, "docs/**")
	case slices.Contains(strings.Split(pattern, "/"), ".."):
		return fmt.Errorf("the pattern %q leads out of the workspace; leave out its dots", pattern)
	case pattern == "" || !doublestar.ValidatePattern(pattern):
		return fmt.Errorf("the pattern %q is malformed: it is empty, or a bracket or brace is not closed", pattern)
	}
	return nil
}

// matches reports whether a pattern is about a path, letter case apart.
func matches(pattern, name string) bool {
	return matchesExactly(strings.ToLower(pattern), strings.ToLower(name))
}

// matchesExactly is matches with letter case, for patterns that loosen something.
func matchesExactly(pattern, name string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(pattern, name)
}
