package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
)

// diffBound is the length in bytes up to which a question shows what would change.
const diffBound = 32 << 10

// Mode is the permission mode of the session: the one it was set to, else the configured one.
func (s *Session) Mode() permit.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policyLocked().Mode
}

// SetMode changes the permission mode from the next decision on; "" is the configured one again. It lasts as long as this
// process has the session: like what was allowed for the session it is not in the log.
func (s *Session) SetMode(m permit.Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
}

func (s *Session) policyLocked() permit.Policy {
	p := s.agent.o.Policy.With(s.mode)
	if p.Mode == "" {
		p.Mode = permit.ModeAsk
	}
	return p
}

// permits decides about a call.
func (s *Session) permits(c permit.Call) permit.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policyLocked().Decide(c, s.grants)
}

// answered decides about a call that the user was asked about.
func (s *Session) answered(c permit.Call, r Reply) permit.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, grants := s.policyLocked().Resolve(c, s.grants, r.Answer, r.Why)
	s.grants = grants
	return d
}

// mayRead tells a tool that reads many files which of them it may read without asking.
func (s *Session) mayRead(w *workspace.Workspace, tool string) func(path string) (why string, ok bool) {
	s.mu.Lock()
	policy, grants := s.policyLocked(), s.grants
	s.mu.Unlock()
	return func(path string) (string, bool) {
		d := policy.Decide(permit.Call{Tool: tool, ReadOnly: true, Paths: []string{path}, Root: w.RealRoot()}, grants)
		return d.Why, d.Verdict == permit.Allow
	}
}

// unified is a change as a unified diff, with what git adds to it: what git apply and patch take.
func unified(c tools.Change) []byte {
	from := c.From
	if from == "" {
		from = c.Path
	}
	return append([]byte(nameDiff(c)), diffMoved(from, c.Path, c.Before, c.After).Unified...)
}

// nameDiff is what changes of a file besides its content, as git writes it.
func nameDiff(c tools.Change) string {
	head := func(from string) string {
		return "diff --git " + workspace.Show("a/"+from) + " " + workspace.Show("b/"+c.Path) + "\n"
	}
	switch {
	case c.From != "":
		return head(c.From) + "rename from " + workspace.Show(c.From) + "\nrename to " + workspace.Show(c.Path) + "\n"
	case c.Before == nil && c.Mode == workspace.ModeExecutable:
		return head(c.Path) + "new file mode " + string(c.Mode) + "\n"
	case c.After == nil && c.Mode == workspace.ModeLink:
		return head(c.Path) + "deleted file mode " + string(c.Mode) + "\n"
	}
	return ""
}

// preview is what a call would change, as a unified diff of at most about diffBound bytes; "" when that cannot be told. bad is
// not nil when the call cannot succeed: that is its result, and there is nothing to ask about. It runs in the goroutine of
// the question.
//
// Invariant: a file that must not be read without a yes is in no result that came without one
// (TestNobodyIsAskedAboutAChangeThatCannotBeMade).
func (c *calls) preview(ctx context.Context, k *call, q permit.Call) (diff string, bad *tools.Result) {
	if k.tool.Preview == nil {
		return "", nil
	}
	defer func() {
		if c.agent.bug("what "+k.Name+" would change", recover()) {
			diff, bad = "", nil
		}
	}()
	env, err := c.env(k)
	if err != nil {
		return "", nil
	}
	changes, result := k.tool.Preview(ctx, env, json.RawMessage(k.Args))
	if result.State == tools.Failed && !slices.ContainsFunc(q.Paths, func(path string) bool {
		_, ok := env.MayRead(path)
		return !ok
	}) {
		return "", &result
	}
	return showChanges(changes), nil
}

// showChanges is a unified diff of at most about diffBound bytes.
func showChanges(changes []tools.Change) string {
	var diff []byte
	for _, change := range changes {
		diff = append(diff, unified(change)...)
	}
	if len(diff) <= diffBound {
		return string(diff)
	}
	kept := diff[:diffBound]
	if cut := bytes.LastIndexByte(kept, '\n'); cut >= 0 { // else it is one very long line
		kept = kept[:cut]
	}
	return fmt.Sprintf("%s\n(the diff goes on: %d more bytes)\n", bytes.ToValidUTF8(kept, nil), len(diff)-len(kept))
}
