package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"fermata/agent"
	"fermata/agent/permit"
)

// Permission implements [agent.Client]: it asks in the terminal. Where nobody can be asked it denies, with a reason that
// says how the user can allow it.
func (x *asking) Permission(ctx context.Context, q agent.Question) (agent.Reply, error) {
	if x.keys == nil {
		return agent.Reply{Answer: permit.DenyCall, Why: noTerminal(q)}, nil
	}
	if err := x.events.Drain(ctx); err != nil { // the question stands below what led to it
		return agent.Reply{}, err
	}
	x.keys.discard()
	st := x.screen.note.style
	x.screen.say(st.warn(st.dot()) + " " + st.bold(q.Call.Tool) + " asks for permission")
	x.screen.say(indented(asked(q)))
	if !strings.HasPrefix(q.Why, "permission mode is") { // that all such calls are asked about is known
		x.screen.say(st.warn(indented(permit.Visible(q.Why))))
	}
	if q.Sandbox != "" {
		x.screen.say(st.dim(indented("sandbox: " + oneLine(q.Sandbox, 300))))
	}
	if q.Diff != "" {
		x.screen.say(colouredDiff(q.Diff, st))
	} else if change := x.screen.argument(q.CallID); change != "" {
		x.screen.say(st.dim(indented(change)))
	}
	key, err := x.keys.choose(ctx, "  [y]es once, [s]ession"+scope(q)+", [n]o?", "ysn")
	switch {
	case errors.Is(err, errInterrupt):
		if t, ok := x.agent.Turn(q.Turn); ok {
			t.Stop(agent.ErrStopped) // answers the question too (S14)
		}
		return agent.Reply{Answer: permit.DenyCall}, nil
	case err != nil:
		return agent.Reply{}, err
	}
	switch key {
	case 'y':
		x.screen.say(st.dim("  yes, once"))
		return agent.Reply{Answer: permit.AllowOnce}, nil
	case 's':
		x.screen.say(st.dim("  yes, for this session"))
		return agent.Reply{Answer: permit.AllowSession}, nil
	}
	x.screen.say(st.dim("  no"))
	return agent.Reply{Answer: permit.DenyCall}, nil
}

// noTerminal says how the user can allow a call that they cannot be asked about.
func noTerminal(q agent.Question) string {
	const head = "fermata runs without a terminal, so the user cannot be asked; "
	switch {
	case q.Narrow && q.Call.Command == "":
		return head + q.Why + "; they can be asked in a terminal, or change the rules or not_secrets under [permissions] in the config"
	case q.Narrow:
		return head + q.Why + "; they can be asked in a terminal, or change the rules under [permissions] in the config"
	case q.Call.Command != "" || len(q.Call.Paths) == 0:
		return head + "they can allow it with fermata ask --yes, or with a rule or a mode under [permissions] in the config"
	}
	return head + "they can allow it with fermata ask --yes or --mode edit, or with a rule or a mode under [permissions] in the config"
}

// scope says what an answer for the session covers, where it is not all that the tool changes.
func scope(q agent.Question) string {
	switch {
	case q.Call.Command != "":
		return " (this very command)"
	case q.Narrow && len(q.Call.Paths) > 1:
		return " (these files)"
	case q.Narrow:
		return " (this file)"
	}
	return ""
}

// asked is what a call is about to do, so that what acts on a terminal is seen and does not act.
func asked(q agent.Question) string {
	c := q.Call
	switch {
	case c.Command != "":
		return permit.Visible(c.Command)
	case c.Summary == "":
		return permit.Visible(strings.Join(append([]string{c.Tool}, c.Paths...), "\n"))
	}
	var text strings.Builder
	text.WriteString(permit.Visible(c.Summary))
	for _, path := range c.Paths {
		inFolder := slices.ContainsFunc(c.Paths, func(folder string) bool { return strings.HasPrefix(path, folder+"/") })
		if !inFolder && !strings.Contains(c.Summary, path) { // a link leads there
			text.WriteString("\nwhich is " + permit.Visible(path))
		}
	}
	return text.String()
}

// diffLines is how many lines of a diff the terminal shows in full; of a longer one the rest is counted.
const diffLines = 200

// colouredDiff is a unified diff, indented, for the terminal.
func colouredDiff(diff string, st style) string {
	lines := strings.Split(strings.TrimRight(diff, "\n"), "\n")
	var out []string
	for i, line := range lines {
		if i == diffLines {
			out = append(out, "    "+st.dim(plural(len(lines)-i, "more line")))
			break
		}
		out = append(out, "    "+st.diffLine(permit.Visible(strings.TrimSuffix(line, "\r"))))
	}
	return strings.Join(out, "\n")
}
