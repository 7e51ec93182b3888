// Package permit decides whether a tool call may act: allow, deny, or ask the user. Decisions are pure: they depend on
// the call, the policy and the session's grants, and on nothing in the workspace. Only a decision to allow can mint a
// [Permit], and a mutating tool cannot run without one that names its very call. The package knows nothing of sessions,
// editors or models, and imports nothing of fermata. All of it may be used from any goroutine.
package permit

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Call is the question: what a tool call is about to do. Tools make it from their arguments (tools.Tool.Ask), so that
// what was asked and what is run cannot differ.
type Call struct {
	Tool     string
	ReadOnly bool   // changes nothing
	Summary  string // one line for people; no part of the decision
	Command  string // of a tool that runs one: exactly what the shell is given
	// Arguments are what a tool of others is given, as the model wrote them; "" of the built-in ones, which name what they do.
	Arguments string

	// Paths are the files and folders that it names: of a tool that changes files all that it changes, of one that reads
	// what it was told to read. They are relative to the root, slash-separated, with links resolved, in the call's order.
	Paths []string
	Root  string // the workspace's absolute path with links resolved, "" for none

	// Leads are, of a tool that runs a command, where links lead that its words name; as in Paths.
	Leads []string
}

// equal reports whether both are the same call; what people are shown of it does not count.
func (c Call) equal(o Call) bool {
	return c.Tool == o.Tool && c.ReadOnly == o.ReadOnly && c.Command == o.Command && c.Arguments == o.Arguments && c.Root == o.Root &&
		slices.Equal(c.Paths, o.Paths) && slices.Equal(c.Leads, o.Leads)
}

// Permit is the proof that one call was allowed. Its zero value allows nothing; see [Permit.Allows].
type Permit struct {
	by   string
	call Call
}

// Valid reports whether p was minted by a decision, about whatever call.
func (p Permit) Valid() bool { return p.by != "" }

// Allows reports whether p was minted for c: the same tool, command and paths. What people are shown of the call
// (Summary) does not count. A permit for a read-only call allows no other.
func (p Permit) Allows(c Call) bool { return p.Valid() && p.call.equal(c) }

// Covers reports whether p was minted for a call that names this resolved path: a tool asks it of the file that it has
// found under a name, in case that a link changed since the decision.
func (p Permit) Covers(path string) bool { return p.Valid() && slices.Contains(p.call.Paths, path) }

// By says who allowed it: "read-only", "config", "session", "once", or the mode "edit" or "trust".
func (p Permit) By() string { return p.by }

// mint is the only maker of permits; [Policy.Decide] and [Policy.Resolve] are its only callers.
func mint(c Call, by, why string) Decision {
	c.Paths, c.Leads = slices.Clone(c.Paths), slices.Clone(c.Leads)
	return Decision{Verdict: Allow, Permit: Permit{by: by, call: c}, Why: why}
}

// Visible spells out the characters of a text that a terminal would act on, or that hide or turn around others, so that
// what a user is asked about is what they see. Line breaks and tabs stay.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
