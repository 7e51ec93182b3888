package agent

import (
	"fmt"
	"slices"
	"strings"
)

// notice is S11, D3, D6 and S7's last sentence.
func (c *course) notice(redirects bool) string {
	if !c.ended {
		return ""
	}
	var lines []string
	add := func(s string) { lines = append(lines, "["+s+"]") }
	cut := c.last == "stopped" && !c.withheld
	if c.withheld {
		add("Your last answer was withheld by a check and is not shown here.")
	}
	switch {
	case redirects && cut && c.by == "the user" && !c.words:
		add("The user stopped you while you were still thinking. What follows says what to do instead.")
	case redirects && cut && c.by == "the user":
		add("The user stopped you. Treat the answer above as a first attempt and revise it as follows.")
	case redirects && c.silent && c.outcome == "stopped" && c.by == "the user":
		add("The user stopped you before you had said anything. What follows replaces the request above.")
	case redirects && (c.withheld || !c.shown): // nothing above is to be revised
		add("The user redirects you: what follows says what to do instead.")
	case redirects:
		add("The user redirects you. Treat what you did above as a first attempt and revise it as follows.")
	case c.kept && !c.words && c.outcome == "abandoned":
		add("You were still thinking when fermata itself ended. The user has kept it.")
	case c.kept && !c.words && c.outcome == "stopped" && c.by == "the user":
		add("You were still thinking when an error cut you off, and the user stopped you there. The user has kept it.")
	case c.kept && !c.words && c.outcome == "stopped":
		add("You were still thinking when an error cut you off, and the user's editor was closed, which stopped you there. The user has kept it.")
	case c.kept && !c.words:
		add("You were still thinking when an error cut you off. The user has kept it.")
	case c.kept && c.outcome == "abandoned":
		add("Your answer above was cut off where it ends, when fermata itself ended. The user has kept it.")
	case c.kept && c.outcome == "stopped" && c.by == "the user":
		add("Your answer above broke off by an error where it ends, and the user stopped you there. The user has kept it.")
	case c.kept && c.outcome == "stopped":
		add("Your answer above broke off by an error where it ends, and the user's editor was closed, which stopped you there. The user has kept it.")
	case c.kept:
		add("Your answer above broke off by an error where it ends. The user has kept it.")
	case c.outcome == "stopped" && cut && !c.words:
		add(c.stopYou() + " you while you were still thinking.")
	case c.outcome == "stopped" && cut:
		add(c.stopYou() + " your answer above where it ends.")
	case c.outcome == "stopped" && c.silent:
		add(c.stopYou() + " you before you had said anything.")
	case c.outcome == "stopped":
		add(c.stopYou() + " you at this point.")
	case c.outcome == "failed" && c.withheld: // that is all there is to say
	case c.outcome == "failed" && c.last == "broken":
		add("Your last answer broke off by an error and is not shown here.")
	case c.outcome == "failed":
		add("The last turn ended with an error before you had answered.")
	case c.outcome == "abandoned":
		add("The last turn was cut off when fermata itself ended. What you were saying then is not shown here.")
	}
	return strings.Join(append(lines, c.late...), "\n")
}

// answer records what was said in the step; nothing but white space is nothing (S6), unless the answer is complete. It
// reports whether later inputs hold the answer.
func (c *course) answer(state string, calls ...string) bool {
	nothing := strings.TrimSpace(c.text+c.reasoning) == ""
	if nothing && state != "complete" {
		return false
	}
	c.spoke, c.last = true, state
	c.words = strings.TrimSpace(c.text) != "" || len(calls) > 0
	c.answers = append(c.answers, state)
	line := c.line()
	if len(calls) > 0 {
		line += " calls " + strings.Join(calls, ", ")
	}
	rejected := c.flawed() || c.edited && len(calls) == 0 // by a check, or the one on edits has failed
	c.withheld = c.checks && state != "broken" && (rejected || c.cut)
	if state == "broken" || c.withheld {
		c.attempts = append(c.attempts, c.text, c.reasoning)
		c.broke = line
		return false
	}
	c.shown = c.shown || c.words
	if c.words || c.reasoning != "" {
		c.say("%s", line)
	}
	return true
}

// line is what was said in the step, as a message of the next input.
func (c *course) line() string {
	line := fmt.Sprintf("assistant %q", c.text)
	if c.reasoning != "" {
		line += fmt.Sprintf(" reasoning %q", c.reasoning)
	}
	return line
}

// finish is the end of an answer without calls.
func (c *course) finish() {
	if c.answer("complete") {
		c.end("completed")
		return
	}
	c.end("failed") // a check withholds it (K1)
}

func messageText(n int) string { return fmt.Sprintf("Message %d.", n) }

func (c *course) fate(message int, what string) {
	c.fates = append(c.fates, fmt.Sprint(message, " ", what))
	slices.Sort(c.fates)
}

// message is S10: behind the newest turn that nobody has stopped, else a turn of its own.
func (c *course) message() {
	c.asked++
	n := len(c.waiting)
	switch {
	case c.phase == phaseIdle:
		c.fate(c.asked, "started")
		c.begin(c.reserve(), "", false, messageText(c.asked))
	case n > 0 && !c.waiting[n-1].stopped:
		c.waiting[n-1].queue = append(c.waiting[n-1].queue, c.asked)
	case n == 0 && c.phase != phaseSettle:
		c.queue = append(c.queue, c.asked)
	default:
		c.waiting = append(c.waiting, reservation{turn: c.reserve(), message: c.asked})
	}
}

// follow starts a turn with what waits behind one that was completed.
func (c *course) follow() {
	var ask []string
	for _, m := range c.queue {
		ask = append(ask, messageText(m))
		c.fate(m, "started")
	}
	c.queue = nil
	c.begin(c.reserve(), "", false, strings.Join(ask, "\n\n"))
}

// giveBack hands back what waits behind a turn that was stopped or failed.
func (c *course) giveBack(outcome string) {
	why := map[string]string{"failed": "turn_failed", "abandoned": "daemon_died", "stopped": "stopped_by_user"}[outcome]
	if outcome != "failed" && outcome != "abandoned" && c.by == "the client" {
		why = "client_gone"
	}
	for _, m := range c.queue {
		c.fate(m, "returned "+why)
	}
	c.queue = nil
}
