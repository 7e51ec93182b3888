package agent

import (
	"fmt"
	"slices"
	"strings"
)

// course is what must come of an order by semantics.md: a second, plain telling of the turn that shares no code with it.
// It holds one session with its turns, numbered from 1 in the order in which they were asked for.
type course struct {
	tries  int  // Retry.Tries
	checks bool // answers have checks: one rejects what is flawed, one passes all, one on edits fails

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
	words           bool // the last answer has more than reasoning
	shown           bool // and such a one is in the next input
	last            string
	broke           string    // the answer that broke off last, as said says it; "" when there is nothing to keep
	kept            bool      // it was
	edited          bool      // the turn has changed a file, or was about to
	withheld        bool      // by a check: the last answer
	still           bool      // no call is started: the turn sees a stop first
	cut             bool      // checks are cut short
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
	answers         []string // states of those in the log
	asks            int      // what the user said
	asked           int      // messages sent
	queue           []int    // those that wait behind the turn
	unseen          int      // the one of them that the turn has not looked at: a stop came with it
	fates           []string // of those in the log, the first first
	keeps           int
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
	ask     string
	message int   // not 0: a turn that the message starts, and no redirect
	queue   []int // behind it; not in the log before it has begun
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

func newCourse(tries int, checks, early bool) *course {
	c := &course{tries: tries, checks: checks, reserved: 1, early: early}
	by := ""
	if early {
		by = "the user"
	}
	c.begin(1, by, false, c.ask())
	return c
}

// ask is the next thing that the user says.
func (c *course) ask() string {
	c.asks++
	return askText(c.asks)
}

func askText(n int) string { return fmt.Sprintf("Ask %d.", n) }

func (c *course) clone() *course {
	d := *c
	d.waiting, d.calls, d.outlived = slices.Clone(c.waiting), slices.Clone(c.calls), slices.Clone(c.outlived)
	d.late, d.messages, d.ends = slices.Clone(c.late), slices.Clone(c.messages), slices.Clone(c.ends)
	d.answers = slices.Clone(c.answers)
	d.attempts, d.queue, d.fates = slices.Clone(c.attempts), slices.Clone(c.queue), slices.Clone(c.fates)
	for i := range d.waiting {
		d.waiting[i].queue = slices.Clone(d.waiting[i].queue)
	}
	return &d
}

// can reports whether h can come next.
func (c *course) can(h happening) bool {
	if a, b, ok := h.both(); ok {
		return c.can(a) && c.can(b)
	}
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
	case hapMessage:
		return (!c.gone || c.phase == phaseIdle) && c.asked < 3 && len(c.waiting) < 3
	case hapRetry:
		return c.phase == phaseIdle && c.outcome != "completed"
	case hapKeep:
		return c.phase == phaseIdle && c.last == "broken" && c.broke != "" && !c.kept
	case hapFlawed:
		return c.checks && c.phase == phaseStream && !c.flawed()
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

const (
	blankText = " \n\t"
	flaw      = "FLAW"
)

func (c *course) flawedText() string { return fmt.Sprintf("%s %d.%d.%d ", flaw, c.turn, c.step, c.try) }

func (c *course) flawed() bool { return strings.Contains(c.text, flaw) }

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
		c.finish()
	case hapCallsRW:
		c.call("read", "write")
	case hapCallsWR:
		c.call("write", "read")
	case hapCallsRR:
		c.call("read", "read2")
	case hapAllow:
		c.find("write", callAsked).state = callRunning
		c.edited = true
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
		n := c.reserve()
		if c.phase == phaseIdle {
			c.begin(n, "", h == hapRedirect, c.ask())
			return
		}
		c.halt()
		c.waiting = append(c.waiting, reservation{turn: n, ask: c.ask()})
		c.stopRunning("the user")
	case hapMessage:
		c.message()
	case hapRetry:
		c.begin(c.reserve(), "", false, "")
	case hapKeep:
		c.say("%s", c.broke)
		c.kept, c.shown = true, c.shown || c.words
		c.keeps++
		c.attempts = c.attempts[:len(c.attempts)-2]
	case hapFlawed:
		c.text += c.flawedText()
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

func (c *course) reserve() int {
	c.reserved++
	c.stops, c.gone = 0, false
	return c.reserved
}

// begin starts turn n, with what the user says, or, "", with the notice alone, to go on with the request above. by is who
// stopped it before it began, "" for nobody.
func (c *course) begin(n int, by string, redirects bool, ask string) {
	notice := c.notice(redirects)
	if ask == "" {
		c.say("user %q", strings.TrimLeft(notice+"\n[The user asks you to go on with the request above.]", "\n"))
	} else if notice != "" {
		c.say("user %q", notice+"\n\n"+ask)
	} else {
		c.say("user %q", ask)
	}
	c.turn, c.late, c.spoke, c.shown, c.last, c.by = n, nil, false, false, "", ""
	c.broke, c.kept, c.edited, c.withheld = "", false, false, false
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

func (c *course) broken() { c.answer("broken") }

func (c *course) call(names ...string) {
	if !c.answer("complete", names...) {
		c.end("failed")
		return
	}
	c.calls = nil
	for i, name := range names {
		c.calls = append(c.calls, simCall{id: fmt.Sprint("c", i+1), name: name, key: fmt.Sprintf("%d.%d.%s", c.turn, c.step, name)})
	}
	c.phase = phaseTools
	c.dispatch()
}

// dispatch starts what can start; when all have settled the turn goes on, or ends if it was stopped.
func (c *course) dispatch() {
	if c.phase == phaseTools && !c.still {
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
	if c.still {
		return
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
	for _, m := range c.queue {
		c.say("user %q", messageText(m))
		c.fate(m, "delivered")
	}
	c.queue = nil
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
	if outcome == "completed" && len(c.queue) > 0 {
		c.follow()
		return
	}
	c.giveBack(outcome)
	if len(c.waiting) > 0 {
		w := c.waiting[0]
		c.waiting = slices.Clone(c.waiting[1:])
		ask := w.ask
		if w.message != 0 {
			ask = messageText(w.message)
			c.fate(w.message, "started")
		}
		c.queue = w.queue
		c.begin(w.turn, w.by, w.message == 0, ask)
	}
}

// kill is C1 to C3.
func (c *course) kill() {
	c.waiting, c.outlived, c.gone = nil, nil, false // with them what waits behind them, which nobody was told is in the log
	c.stops = 0
	switch c.phase {
	case phaseIdle:
		return
	case phaseSettle:
		c.queue = slices.DeleteFunc(c.queue, func(m int) bool { return m == c.unseen }) // nor was anybody told of that one
	}
	switch c.phase {
	case phaseStream:
		if c.text+c.reasoning != "" {
			c.spoke, c.last, c.words = true, "broken", strings.TrimSpace(c.text) != ""
			c.answers = append(c.answers, "broken")
			c.attempts = append(c.attempts, c.text, c.reasoning)
			if c.broke = ""; strings.TrimSpace(c.text+c.reasoning) != "" {
				c.broke = c.line()
			}
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
