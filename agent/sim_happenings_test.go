package agent

import (
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

	hapMessage happening = "message"         // into the queue of what runs (S10)
	hapRetry   happening = "retry"           // of a turn that was not completed (F3)
	hapKeep    happening = "keep"            // the answer that broke off (F4)
	hapFlawed  happening = "delta to reject" // a check rejects an answer that holds it (K1)
)

// ordered are the happenings of which every order is tried; allHappenings also those that random orders are made of.
var (
	ordered = []happening{hapEarly, hapDelta, hapReasoning, hapDone, hapCallsRW, hapCallsWR, hapAllow, hapDeny, hapRead, hapWrite,
		hapDeadline, hapLate, hapStop, hapRedirect, hapError, hapTruncated, hapBackOff, hapGone, hapKill}
	widened       = append(slices.Clone(ordered), hapMessage, hapRetry, hapKeep, hapFlawed)
	single        = append(slices.Clone(widened), hapBlank, hapCallsRR, hapRead2, hapNext)
	allHappenings = append(slices.Clone(single), pairs()...)
)

// Two happenings that come at once, before the turn's goroutine has looked at either, are one happening: "stop + delta". What
// users do is ordered among itself by the order in which it came (S2); what else comes with it may be seen before it or after.
const atOnce = " + "

func (h happening) both() (a, b happening, ok bool) {
	x, y, ok := strings.Cut(string(h), atOnce)
	return happening(x), happening(y), ok
}

// byUser are what users do that reaches a turn from outside.
var byUser = []happening{hapStop, hapRedirect, hapMessage, hapGone}

// pairs are the happenings that come at once: one of a user with one of the world, in either order of delivery, or two of a user.
func pairs() (out []happening) {
	for _, a := range byUser {
		for _, b := range single {
			if slices.Contains(byUser, b) && (a == hapGone || b == hapGone) || b == hapEarly || b == hapKill || b == hapRetry || b == hapKeep || b == hapNext {
				continue
			}
			out = append(out, a+atOnce+b)
			if !slices.Contains(byUser, b) {
				out = append(out, b+atOnce+a)
			}
		}
	}
	return append(out, hapNext+atOnce+hapLate, hapLate+atOnce+hapNext, hapNext+atOnce+hapMessage, hapRetry+atOnce+hapMessage)
}

// user reports whether h comes from a user.
func (h happening) user() bool {
	return slices.Contains(byUser, h) || h == hapNext || h == hapRetry
}

// after gives what may be the course when h has happened: one course, or several where the rules leave it open.
func (c *course) after(h happening) []*course {
	a, b, ok := h.both()
	if !ok {
		return c.alone(h)
	}
	var out []*course
	inOrder := func(first, second happening) {
		for _, d := range c.alone(first) {
			same := d.turn == c.turn && d.step == c.step && d.try == c.try || second == hapLate
			if d.can(second) && same || slices.Contains(byUser, second) || second == hapNext {
				out = append(out, d.alone(second)...)
			} else {
				out = append(out, d) // nobody listens any more
			}
		}
	}
	inOrder(a, b)
	if a.user() && b.user() {
		for _, d := range out {
			if a == hapMessage && d.phase == phaseSettle && slices.Contains(d.queue, d.asked) {
				e := d.clone()
				e.unseen = e.asked
				out = append(out, e)
			}
		}
		return out
	}
	inOrder(b, a)
	user, world := a, b
	if b.user() {
		user, world = b, a
	}
	return append(out, c.between(user, world)...)
}

// ends reports whether an answer is complete by h.
func (h happening) ends() bool {
	return h == hapDone || h == hapCallsRW || h == hapCallsWR || h == hapCallsRR
}

// alone is after for one happening.
func (c *course) alone(h happening) []*course {
	d := c.clone()
	d.do(h)
	out := []*course{d}
	if h == hapGone && c.checks && c.phase == phaseStream && !d.withheld { // nobody waits for the checks of a stopped answer
		e := c.clone()
		e.cut = true
		e.do(h)
		e.cut = false
		out = append(out, e)
	}
	return out
}

// between is what can come of a user's word that arrives while the turn is at what the world's makes of it.
func (c *course) between(user, world happening) (out []*course) {
	if !c.can(world) || user == hapMessage || user == hapNext {
		return nil
	}
	add := func(d *course) {
		out = append(out, d)
		if k := d.find("write", callRunning); k != nil && world == hapAllow { // a stop refuses the change that it was about to make
			e := d.clone()
			e.do(hapWrite)
			out = append(out, e)
		}
	}
	d := c.clone()
	d.still = true // what is said is taken, and nothing new is begun
	d.do(world)
	d.still = false
	if d.phase == phaseTools || d.phase == phaseSettle {
		d.do(user)
		add(d)
	}
	d = c.clone()
	d.do(world)
	d.do(user)
	add(d)
	if c.checks && world.ends() { // the checks of the answer are cut short
		d = c.clone()
		d.cut = true
		d.answer("complete")
		d.cut = false
		d.by = map[bool]string{true: "the client", false: "the user"}[user == hapGone]
		d.end("stopped")
		d.do(user)
		out = append(out, d)
	}
	if len(c.queue) > 0 { // the turn has come to its end, and what waits has not been looked at
		d = c.clone()
		queue := d.queue
		d.queue = nil
		d.do(world)
		for _, m := range queue {
			d.fate(m, "returned "+map[bool]string{true: "client_gone", false: "stopped_by_user"}[user == hapGone])
		}
		if d.phase == phaseIdle {
			d.do(user)
			out = append(out, d)
		}
	}
	return out
}
