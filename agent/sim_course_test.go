package agent

import (
	"fmt"
	"slices"
	"strings"
)

// happening is one thing that can come next in a simulated turn, in the words of the files in testdata/orders.
type happening string

const (
	hapEarly     happening = "stop before the start" // right behind the reservation (S2); first or never
	hapDelta     happening = "delta"
	hapReasoning happening = "reasoning" // its end is what comes next
	hapBlank     happening = "blank"     // a delta of white space (S6)
	hapDone      happening = "answer ends"
	hapCallsRW   happening = "answer ends with calls read, write"
	hapCallsWR   happening = "answer ends with calls write, read"
	hapCallsRR   happening = "answer ends with calls read, read2"
	hapAllow     happening = "allow"
	hapDeny      happening = "deny"
	hapRead      happening = "read returns"
	hapRead2     happening = "read2 returns"
	hapWrite     happening = "write returns"
	hapDeadline  happening = "deadline passes"
	hapLate      happening = "late result" // of the call that has been out for longest
	hapStop      happening = "stop"
	hapRedirect  happening = "redirect"
	hapError     happening = "provider error"
	hapTruncated happening = "stream truncated"
	hapBackOff   happening = "back-off passes"
	hapGone      happening = "client gone"
	hapKill      happening = "kill and reopen"
	hapNext      happening = "next message"
)

// ordered are the happenings of which every order is tried; allHappenings also those that random orders are made of.
var (
	ordered = []happening{hapEarly, hapDelta, hapReasoning, hapDone, hapCallsRW, hapCallsWR, hapAllow, hapDeny, hapRead, hapWrite,
		hapDeadline, hapLate, hapStop, hapRedirect, hapError, hapTruncated, hapBackOff, hapGone, hapKill}
	allHappenings = append(slices.Clone(ordered), hapBlank, hapCallsRR, hapRead2, hapNext)
)

// course is what must come of an order by semantics.md: a second, plain telling of the turn that shares no code with it.
// It holds one session with its turns, numbered from 1 in the order in which they were asked for.
type course struct {
	tries int // Retry.Tries

	phase    phase
	turn     int // the newest that began
	reserved int // the newest that was asked for
	waiting  []reservation
	stops    int // of the newest that was asked for

	step, try       int
	deltas, reasons int
	blank           bool
	text, reasoning string
	calls           []simCall
	spoke           bool // an answer of the turn is in the log
	shown           bool // and in the next input
	last            string
	outlived        []simCall // past their deadline, in the order of their calls
	gone            bool      // the client; the next turn is another one's
	by              string    // who stopped the turn: "the user" or "the client"; the first one counts
	early           bool
	ended           bool // there is a turn that has
	outcome         string
	silent          bool
	late            []string // what the next notice tells of results that came late
	messages        []string // of the next input, as said does it
	ends            []string // of the turns in the log: number and outcome
	attempts        []string // texts that no later input may hold
}

type phase int

const (
	phaseIdle phase = iota
	phaseStream
	phaseBackOff
	phaseTools
	phaseSettle // stopped, and a tool still runs
)

// reservation is a redirect that waits for the end of the turn before.
type reservation struct {
	turn    int
	stopped bool
	by      string
}

// stopTurn says in receipts why a call has no result (S8).
func (c *course) stopTurn() string {
	if c.by == "the client" {
		return "the turn was stopped because the user's editor was closed"
	}
	return "the user stopped the turn"
}

// stopYou says in notices who stopped.
func (c *course) stopYou() string {
	if c.by == "the client" {
		return "The user's editor was closed, which stopped"
	}
	return "The user stopped"
}

type simCall struct {
	id, name string
	key      string // as its arguments name it: unique
	state    callState
	output   string
}

func newCourse(tries int, early bool) *course {
	c := &course{tries: tries, reserved: 1, early: early}
	by := ""
	if early {
		by = "the user"
	}
	c.begin(1, by, false)
	return c
}

func (c *course) clone() *course {
	d := *c
	d.waiting, d.calls, d.outlived = slices.Clone(c.waiting), slices.Clone(c.calls), slices.Clone(c.outlived)
	d.late, d.messages, d.ends = slices.Clone(c.late), slices.Clone(c.messages), slices.Clone(c.ends)
	d.attempts = slices.Clone(c.attempts)
	return &d
}

// can reports whether h can come next.
func (c *course) can(h happening) bool {
	switch h {
	case hapDelta:
		return c.phase == phaseStream && c.deltas < 2
	case hapReasoning:
		return c.phase == phaseStream && c.reasons < 1
	case hapBlank:
		return c.phase == phaseStream && !c.blank
	case hapDone, hapCallsRW, hapCallsWR, hapCallsRR, hapError, hapTruncated:
		return c.phase == phaseStream
	case hapBackOff:
		return c.phase == phaseBackOff
	case hapAllow, hapDeny:
		return c.phase == phaseTools && c.find("write", callAsked) != nil
	case hapRead, hapRead2, hapWrite:
		name, _, _ := strings.Cut(string(h), " ")
		return c.find(name, callRunning) != nil
	case hapDeadline:
		return c.phase == phaseSettle
	case hapLate:
		return len(c.outlived) > 0
	case hapStop:
		return c.stops < 2 && (!c.gone || c.phase == phaseIdle)
	case hapRedirect, hapNext:
		return (!c.gone || c.phase == phaseIdle) && (h == hapRedirect || c.phase == phaseIdle) && len(c.waiting) < 3
	case hapGone:
		return !c.gone && c.phase != phaseIdle
	case hapKill:
		return true
	}
	return false
}

func (c *course) find(name string, s callState) *simCall {
	if c.phase != phaseTools && c.phase != phaseSettle {
		return nil
	}
	for i := range c.calls {
		if k := &c.calls[i]; k.name == name && k.state == s {
			return k
		}
	}
	return nil
}

// What the model says in a step. Two turns, steps or tries never say the same.
func (c *course) deltaText() string {
	return fmt.Sprintf("%d.%d.%d.%d é\n", c.turn, c.step, c.try, c.deltas+1)
}
func (c *course) reasoningText() string { return fmt.Sprintf("r%d.%d.%d ü ", c.turn, c.step, c.try) }

const blankText = " \n\t"

// do lets h happen. It can.
func (c *course) do(h happening) {
	switch h {
	case hapDelta:
		c.text += c.deltaText()
		c.deltas++
	case hapReasoning:
		c.reasoning += c.reasoningText()
		c.reasons++
	case hapBlank:
		c.text += blankText
		c.blank = true
	case hapDone:
		c.answer("complete")
		c.end("completed")
	case hapCallsRW:
		c.call("read", "write")
	case hapCallsWR:
		c.call("write", "read")
	case hapCallsRR:
		c.call("read", "read2")
	case hapAllow:
		c.find("write", callAsked).state = callRunning
	case hapDeny:
		c.settle(c.find("write", callAsked), "[not run: permission denied: the user did not allow it.]")
		c.dispatch()
	case hapRead, hapRead2, hapWrite:
		name, _, _ := strings.Cut(string(h), " ")
		c.settle(c.find(name, callRunning), c.output(name))
		c.dispatch()
	case hapDeadline:
		for i := range c.calls {
			if k := &c.calls[i]; k.state == callRunning {
				c.outlived = append(c.outlived, *k)
				c.settle(k, "[result unknown: the call was running when "+c.stopTurn()+" and did not come back in time. It may have taken effect.]")
			}
		}
		c.dispatch()
	case hapLate:
		k := c.outlived[0]
		c.outlived = slices.Clone(c.outlived[1:])
		c.late = append(c.late, fmt.Sprintf("[The call %s of %s came back after all, stopped: %s so far]", k.id, k.name, k.name))
	case hapStop:
		c.stop()
	case hapRedirect, hapNext:
		c.reserved++
		c.stops = 0
		c.gone = false
		if c.phase == phaseIdle {
			c.begin(c.reserved, "", h == hapRedirect)
			return
		}
		c.halt()
		c.waiting = append(c.waiting, reservation{turn: c.reserved})
		c.stopRunning("the user")
	case hapError:
		c.broken()
		c.end("failed")
	case hapTruncated:
		c.broken()
		if c.try == c.tries {
			c.end("failed")
			return
		}
		c.phase = phaseBackOff
	case hapBackOff:
		c.try++
		c.stream()
	case hapGone:
		for i := range c.waiting {
			c.waiting[i].stop("the client")
		}
		c.gone = true
		c.stopRunning("the client")
	case hapKill:
		c.kill()
	}
}

// begin starts turn n. by is who stopped it before it began, "" for nobody.
func (c *course) begin(n int, by string, redirects bool) {
	text := fmt.Sprintf("Ask %d.", n)
	if notice := c.notice(redirects); notice != "" {
		text = notice + "\n\n" + text
	}
	c.say("user %q", text)
	c.turn, c.late, c.spoke, c.shown, c.last, c.by = n, nil, false, false, "", ""
	c.step, c.try = 1, 1
	c.stream()
	if by != "" {
		c.by = by
		c.end("stopped")
	}
}

func (c *course) say(format string, args ...any) {
	c.messages = append(c.messages, fmt.Sprintf(format, args...))
}

func (c *course) stream() {
	c.phase, c.deltas, c.reasons, c.blank, c.text, c.reasoning = phaseStream, 0, 0, false, "", ""
}

// notice is S11, D3, D6 and S7's last sentence.
func (c *course) notice(redirects bool) string {
	if !c.ended {
		return ""
	}
	var lines []string
	add := func(s string) { lines = append(lines, "["+s+"]") }
	cut := c.last == "stopped"
	switch {
	case redirects && cut && c.by == "the user":
		add("The user stopped you. Treat the answer above as a first attempt and revise it as follows.")
	case redirects && c.silent && c.outcome == "stopped" && c.by == "the user":
		add("The user stopped you before you had said anything. What follows replaces the request above.")
	case redirects && !c.shown: // nothing above is to be revised
		add("The user redirects you: what follows says what to do instead.")
	case redirects:
		add("The user redirects you. Treat what you did above as a first attempt and revise it as follows.")
	case c.outcome == "stopped" && cut:
		add(c.stopYou() + " your answer above where it ends.")
	case c.outcome == "stopped" && c.silent:
		add(c.stopYou() + " you before you had said anything.")
	case c.outcome == "stopped":
		add(c.stopYou() + " you at this point.")
	case c.outcome == "failed" && c.last == "broken":
		add("Your last answer broke off by an error and is not shown here.")
	case c.outcome == "failed":
		add("The last turn ended with an error before you had answered.")
	case c.outcome == "abandoned":
		add("The last turn was cut off when fermata itself ended. What you were saying then is not shown here.")
	}
	return strings.Join(append(lines, c.late...), "\n")
}

// answer records what was said in the step; nothing but white space is nothing (S6), unless the answer is complete.
func (c *course) answer(state string, calls ...string) {
	nothing := strings.TrimSpace(c.text+c.reasoning) == ""
	if nothing && state != "complete" {
		return
	}
	c.spoke, c.last = true, state
	if state == "broken" {
		c.attempts = append(c.attempts, c.text, c.reasoning)
		return
	}
	c.shown = true
	line := fmt.Sprintf("assistant %q", c.text)
	if c.reasoning != "" {
		line += fmt.Sprintf(" reasoning %q", c.reasoning)
	}
	if len(calls) > 0 {
		line += " calls " + strings.Join(calls, ", ")
	}
	c.say("%s", line)
}

func (c *course) broken() { c.answer("broken") }

func (c *course) call(names ...string) {
	c.answer("complete", names...)
	c.calls = nil
	for i, name := range names {
		c.calls = append(c.calls, simCall{id: fmt.Sprint("c", i+1), name: name, key: fmt.Sprintf("%d.%d.%s", c.turn, c.step, name)})
	}
	c.phase = phaseTools
	c.dispatch()
}

// dispatch starts what can start; when all have settled the turn goes on, or ends if it was stopped.
func (c *course) dispatch() {
	if c.phase == phaseTools {
		for i := range c.calls {
			k := &c.calls[i]
			if k.state == callSettled || k.state == callRunning && k.name != "write" {
				continue
			}
			if k.state != callWaiting || k.name == "write" && slices.ContainsFunc(c.calls, func(k simCall) bool { return k.state == callRunning }) {
				break
			}
			if k.state = callRunning; k.name == "write" {
				k.state = callAsked
				break
			}
		}
	}
	for _, k := range c.calls {
		if k.state != callSettled {
			return
		}
	}
	stopped := c.phase == phaseSettle
	for _, k := range c.calls {
		c.say("tool %s %q", k.id, k.output)
	}
	if stopped {
		c.end("stopped")
		return
	}
	c.step, c.try = c.step+1, 1
	c.stream()
}

func (c *course) settle(k *simCall, output string) { k.state, k.output = callSettled, output }

func (c *course) output(name string) string {
	if c.phase == phaseSettle {
		return name + " so far"
	}
	return name + " all"
}

// stop is S1: of the newest turn, once.
func (c *course) stop() {
	c.stops++
	c.gone = c.gone && c.phase != phaseIdle
	if len(c.waiting) > 0 {
		c.waiting[len(c.waiting)-1].stop("the user")
		return
	}
	c.stopRunning("the user")
}

// halt stops the newest redirect that waits, for another one to replace it.
func (c *course) halt() {
	if n := len(c.waiting); n > 0 {
		c.waiting[n-1].stop("the user")
	}
}

func (r *reservation) stop(by string) {
	if !r.stopped {
		r.stopped, r.by = true, by
	}
}

func (c *course) stopRunning(by string) {
	if c.by == "" && c.phase != phaseIdle {
		c.by = by
	}
	switch c.phase {
	case phaseStream:
		c.answer("stopped")
		c.end("stopped")
	case phaseBackOff:
		c.end("stopped")
	case phaseTools:
		c.phase = phaseSettle
		for i := range c.calls {
			if k := &c.calls[i]; k.state == callWaiting || k.state == callAsked {
				c.settle(k, "[not run: "+c.stopTurn()+" before this call was started.]")
			}
		}
		c.dispatch()
	}
}

func (c *course) end(outcome string) {
	c.phase, c.ended, c.outcome = phaseIdle, true, outcome
	c.silent = !c.spoke && (outcome == "stopped" || outcome == "abandoned")
	c.ends = append(c.ends, fmt.Sprint(c.turn, " ", outcome))
	if len(c.waiting) > 0 {
		w := c.waiting[0]
		c.waiting = slices.Clone(c.waiting[1:])
		c.begin(w.turn, w.by, true)
	}
}

// kill is C1 to C3.
func (c *course) kill() {
	c.waiting, c.outlived, c.gone = nil, nil, false
	c.stops = 0
	switch c.phase {
	case phaseIdle:
		return
	case phaseStream:
		if c.text+c.reasoning != "" {
			c.spoke, c.last = true, "broken"
			c.attempts = append(c.attempts, c.text, c.reasoning)
		}
	case phaseTools, phaseSettle:
		for i := range c.calls {
			switch k := &c.calls[i]; {
			case k.state == callRunning && k.name == "write":
				c.settle(k, "Not done: fermata ended while this call ran. Unchanged: "+strings.ReplaceAll(k.key, ".", "-")+".")
			case k.state == callRunning:
				c.settle(k, "Unknown: fermata ended while this call ran. How far it came is not known.")
			case k.state != callSettled:
				c.settle(k, "Not run: fermata ended before this call was started.")
			}
		}
		for _, k := range c.calls {
			c.say("tool %s %q", k.id, k.output)
		}
	}
	c.end("abandoned")
}
