// Package permit decides whether a tool call may act: allow, deny, or ask the user. Decisions are pure: they depend on
// the call, the policy and the session's grants, and on nothing in the workspace. Only a decision to allow can mint a
// [Permit], and a mutating tool cannot run without one that names its very call. The package knows nothing of sessions,
// editors or models, and imports nothing of fermata. All of it may be used from any goroutine.
package permit

// Permit is the proof that one call was allowed. Its zero value allows nothing; see [Permit.Allows].
type Permit struct {
	by   string
	call Call // without Summary
}

// Valid reports whether p was minted by a decision, about whatever call.
func (p Permit) Valid() bool { return p.by != "" }

// Allows reports whether p was minted for c: the same tool, command and path. What people are shown of the call
// (Summary) does not count. A permit for a read-only call allows no other.
func (p Permit) Allows(c Call) bool {
	c.Summary = ""
	return p.Valid() && p.call == c
}

// By says who allowed it: "yes" (--yes), "config", "session", "once" or "read-only".
func (p Permit) By() string { return p.by }

// mint is the only maker of permits; [Policy.Decide] and [Policy.Resolve] are its only callers.
func mint(c Call, by string) Decision {
	c.Summary = ""
	return Decision{Verdict: Allow, Permit: Permit{by: by, call: c}, Why: whyAllowed[by]}
}

var whyAllowed = map[string]string{
	"read-only": "it changes nothing",
	"yes":       "everything is allowed (--yes)",
	"config":    "the configuration allows this tool",
	"session":   "allowed for this session",
	"once":      "allowed once",
}
