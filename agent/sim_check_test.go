package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"fermata/agent/model/chat"
	"fermata/transcript"
)

// quiet checks, between two happenings, that the agent waits for what a course says can come next, and for nothing else. Of
// several that the rules allow it finds the one that has come, and goes on with that.
func (sim *simulation) quiet(courses []*course) {
	waits := sim.waits()
	if len(courses) == 1 {
		if sim.c = courses[0]; !slices.Equal(sim.c.waits(), waits) {
			sim.fail("the agent waits for %q, and should wait for %q", waits, sim.c.waits())
		}
		return
	}
	came := sim.folded()
	var may []string
	for _, c := range courses {
		if slices.Equal(c.waits(), waits) && slices.Equal(c.log(), came) {
			sim.c = c
			return
		}
		may = append(may, fmt.Sprintf("%s\nwaiting for %q", strings.Join(c.log(), "\n"), c.waits()))
	}
	sim.c = courses[0]
	sim.fail("there came\n%s\nwaiting for %q\nand there may have come\n%s", strings.Join(came, "\n"), waits, strings.Join(may, "\nor\n"))
}

// waits is what the agent should wait for.
func (c *course) waits() (want []string) {
	if c.phase == phaseStream {
		want = append(want, "the model")
	}
	if c.find("write", callAsked) != nil && c.phase == phaseTools {
		want = append(want, "the user")
	}
	for _, k := range c.outlived {
		want = append(want, k.key)
	}
	if c.phase == phaseTools || c.phase == phaseSettle {
		for _, k := range c.calls {
			if k.state == callRunning {
				want = append(want, k.key)
			}
		}
	}
	slices.Sort(want)
	return want
}

func (sim *simulation) waits() (got []string) {
	for _, d := range append(slices.Clone(sim.past), sim.d) {
		d.mu.Lock()
		if d.dead {
			d.mu.Unlock()
			continue
		}
		if d.stream != nil {
			got = append(got, "the model")
		}
		if d.ask != nil {
			got = append(got, "the user")
		}
		for key := range d.running {
			got = append(got, key)
		}
		for _, err := range d.problems {
			sim.fail("%v", err)
		}
		d.problems = nil
		d.mu.Unlock()
	}
	slices.Sort(got)
	return got
}

// check judges the log, what was told and what was sent, when the last turn has ended.
func (sim *simulation) check() {
	ctx := context.Background()
	log, err := sim.d.store.Entries(ctx, sim.id, 0, 0)
	if err != nil {
		sim.fail("read the log: %v", err)
		return
	}
	sim.checkTurns(log)
	sim.checkMessages(log)
	sim.checkTold(log)
	sim.checkSaid(log)
	sim.checkAdmissions(log)
	sim.checkReports(log)
	var requests []*transcript.RequestSent
	for _, e := range log {
		if r, ok := e.Body.(*transcript.RequestSent); ok {
			requests = append(requests, r)
		}
	}
	for _, r := range requests {
		sim.checkRequest(r, r == requests[len(requests)-1])
	}
}

// checkTurns: seq is gapless, every turn ends once, and as the course says (invariant 2).
func (sim *simulation) checkTurns(log []transcript.Entry) {
	var open transcript.TurnID
	for i, e := range log {
		if e.Seq != int64(i+1) {
			sim.fail("invariant 2: entry %d has seq %d", i+1, e.Seq)
		}
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			if open != "" {
				sim.fail("invariant 2: turn %s starts within turn %s", b.Turn, open)
			}
			open = b.Turn
		case *transcript.TurnEnded:
			if open != b.Turn {
				sim.fail("invariant 2: turn %s ends and is not open", b.Turn)
			}
			open = ""
		}
	}
	if open != "" {
		sim.fail("invariant 2: turn %s has no end", open)
	}
	if ends := sim.ends(log); !slices.Equal(ends, sim.c.ends) {
		sim.fail("the turns ended %q, and should have ended %q", ends, sim.c.ends)
	}
}

// checkMessages: each message that was acknowledged is in the log and has come to one end (S10), and who was to get it back has it.
func (sim *simulation) checkMessages(log []transcript.Entry) {
	if got := fates(log); !slices.Equal(got, sim.c.fates) {
		sim.fail("S10: the messages came to %q, and should have come to %q", got, sim.c.fates)
	}
	queued := map[transcript.MessageID]bool{}
	var open transcript.TurnID
	for _, e := range log {
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			open = b.Turn
		case *transcript.MessageQueued:
			queued[b.Message] = true
		case *transcript.MessageReturned:
			i := slices.IndexFunc(sim.turns, func(t *simTurn) bool { return t.id == open })
			if t := sim.turns[i]; t.done && !slices.ContainsFunc(t.rep.Returned, func(r Returned) bool { return r.Message == b.Message }) {
				sim.fail("S10: turn %d does not hand message %s back that it has returned", i+1, b.Message)
			}
			for _, x := range sim.stops {
				if x.done && x.rep.Turn == open && !slices.ContainsFunc(x.rep.Returned, func(r Returned) bool { return r.Message == b.Message }) {
					sim.fail("S10: the stop of turn %d does not hand message %s back", i+1, b.Message)
				}
			}
		}
	}
	for i, x := range sim.sent {
		switch {
		case !x.done:
		case x.err != nil:
			sim.fail("message %d: %v", i+1, x.err)
		case !queued[x.r.Message]:
			sim.fail("message %d was acknowledged as %s and is not in the log", i+1, x.r.State)
		}
	}
}

// checkTold: everything told is in the log (P4), in its order and once; a client that was there all the time was told all
// of it (invariant 1).
func (sim *simulation) checkTold(log []transcript.Entry) {
	for _, d := range append(slices.Clone(sim.past), sim.d) {
		last := int64(0)
		for _, e := range d.told {
			if e.Seq > int64(len(log)) || log[e.Seq-1].Hash != e.Hash {
				sim.fail("P4: entry %d, %s, was told and is not in the log", e.Seq, e.Kind())
				continue
			}
			if e.Seq <= last {
				sim.fail("invariant 1: entry %d was told after entry %d", e.Seq, last)
			}
			last = e.Seq
		}
		if d == sim.d && len(d.told) != len(log) {
			sim.fail("the client was told %d of %d entries", len(d.told), len(log))
		}
	}
}

// checkSaid: what clients were told as it was said is, byte for byte, what the log has as answers (P1, P4, invariant 5).
func (sim *simulation) checkSaid(log []transcript.Entry) {
	var recorded []string
	for _, e := range log {
		a, ok := e.Body.(*transcript.Answer)
		if ok && a.Text()+a.Reasoning() != "" {
			recorded = append(recorded, fmt.Sprintf("%s.%d %q %q", a.Turn, a.Step, a.Text(), a.Reasoning()))
		}
		if ok && a.State != transcript.Complete && len(a.Calls()) > 0 {
			sim.fail("S5: a %s answer holds calls", a.State)
		}
	}
	heard := map[string]bool{}
	for _, d := range append(slices.Clone(sim.past), sim.d) {
		at := 0 // each daemon tells them in the order of the log, whoever ran the turn
		for _, a := range d.said {
			s := fmt.Sprintf("%s.%d %q %q", a.turn, a.step, a.text, a.reasoning)
			n := slices.Index(recorded[at:], s)
			if n < 0 && a.text == blankText && a.reasoning == "" {
				continue // white space alone is no answer (S6)
			}
			if n < 0 {
				sim.fail("P1: a client was told %s; behind what it had been told the log has %s", s, recorded[at:])
				return
			}
			heard[s], at = true, at+n+1
		}
	}
	for _, s := range recorded {
		if !heard[s] {
			sim.fail("P4: the log has %s, and nobody was told it", s)
		}
	}
}

// checkAdmissions: each answer is decided about once, complete and stopped ones without checks and all broken ones right behind
// it (P5), and a broken one that the user has kept once more (F4). What has checks has a verdict of each (K3).
func (sim *simulation) checkAdmissions(log []transcript.Entry) {
	decided := map[int64]int{}
	verdicts := map[int64]int{}
	answers := map[int64]*transcript.Answer{}
	keeps := 0
	for i, e := range log {
		switch b := e.Body.(type) {
		case *transcript.Answer:
			answers[e.Seq] = b
			if sim.order.checks && b.State != transcript.Broken {
				continue
			}
			next, ok := log[min(i+1, len(log)-1)].Body.(*transcript.Admission)
			if !ok || next.Answer != e.Seq || next.Admitted != (b.State != transcript.Broken) || next.By != "rule" {
				sim.fail("P5: behind the %s answer %d comes %+v", b.State, e.Seq, next)
			}
		case *transcript.Verdict:
			verdicts[b.Answer]++
		case *transcript.Admission:
			a := answers[b.Answer]
			if b.By == "user" {
				if keeps++; !b.Admitted || a.State != transcript.Broken {
					sim.fail("F4: a %s answer was kept", a.State)
				}
				continue
			}
			if decided[b.Answer]++; decided[b.Answer] > 1 {
				sim.fail("P5: answer %d is decided about a second time", b.Answer)
			}
			if b.By == "checks" && b.Admitted && verdicts[b.Answer] != len(b.Checks) {
				sim.fail("K1: answer %d is admitted with %d of %d verdicts", b.Answer, verdicts[b.Answer], len(b.Checks))
			}
			if b.By == "checks" && !b.Admitted && verdicts[b.Answer] != len(b.Checks) && !sim.cutShort() {
				sim.fail("K3: answer %d has %d of %d verdicts", b.Answer, verdicts[b.Answer], len(b.Checks))
			}
		}
	}
	if len(decided) != len(answers) || keeps != sim.c.keeps {
		sim.fail("P5: %d of %d answers are decided about; %d were kept, and should have been %d", len(decided), len(answers), keeps, sim.c.keeps)
	}
}

// cutShort reports whether something happened that may cut checks short.
func (sim *simulation) cutShort() bool {
	return slices.ContainsFunc(sim.order.happenings, func(h happening) bool {
		return h == hapGone || strings.Contains(string(h), atOnce)
	})
}

// checkReports: start and stop are told the same, and what the log has (S1).
func (sim *simulation) checkReports(log []transcript.Entry) {
	ended := map[transcript.TurnID]*transcript.TurnEnded{}
	for _, e := range log {
		if b, ok := e.Body.(*transcript.TurnEnded); ok {
			ended[b.Turn] = b
		}
	}
	for i, t := range sim.turns {
		if !t.done {
			continue // its process was killed
		}
		switch e := ended[t.id]; {
		case t.err != nil:
			sim.fail("turn %d: %v", i+1, t.err)
		case e == nil || e.Outcome != t.rep.Outcome || e.Cause != t.rep.Cause || e.Silent != t.rep.Silent || !reflect.DeepEqual(e.Kept, t.rep.Kept):
			sim.fail("S1: turn %d reported %+v, the log says %+v", i+1, t.rep, e)
		}
	}
	for _, x := range sim.stops {
		i := slices.IndexFunc(sim.turns, func(t *simTurn) bool { return t.id == x.rep.Turn })
		switch {
		case !x.done:
		case x.err != nil:
			sim.fail("S1: a stop was answered with %v", x.err)
		case i < 0:
			sim.fail("S1: a stop was answered with another turn, %s", x.rep.Turn)
		case sim.turns[i].done && !sameReport(x.rep, sim.turns[i].rep):
			sim.fail("S1: the stop was answered %+v, the start %+v", x.rep, sim.turns[i].rep)
		case x.rep.Outcome == "":
			sim.fail("S1: the stop was answered without an outcome")
		}
	}
}

// sameReport compares the report to a stop with that to the start. What a redirect has taken over of the turn before, its start
// alone is told when it has ended.
func sameReport(stop, start Report) bool {
	for _, r := range stop.Returned {
		if !slices.ContainsFunc(start.Returned, func(s Returned) bool { return reflect.DeepEqual(r, s) }) {
			return false
		}
	}
	stop.Returned = start.Returned
	return reflect.DeepEqual(stop, start)
}

// checkRequest: what was sent is what the log has the hash of, and what is shown is that (P3; of the requests before the last
// one Verify finds it out); it is legal (invariant 4), and the last one is what the course says.
func (sim *simulation) checkRequest(r *transcript.RequestSent, last bool) {
	var sent []byte
	for _, d := range append(slices.Clone(sim.past), sim.d) {
		if b, ok := d.bodies[r.Request]; ok {
			sent = b
		}
	}
	if sum := digest(sent); sum != r.SHA256 || r.Bytes != int64(len(sent)) {
		sim.fail("P3: request %s was sent as %q, which is not what the log has the hash of", r.Request, sent)
		return
	}
	var body struct{ Messages []message }
	if err := json.Unmarshal(sent, &body); err != nil {
		sim.fail("request %s: %v", r.Request, err)
		return
	}
	sim.checkLegal(body.Messages[1:])
	if !last {
		return
	}
	if in, err := sim.d.store.Input(context.Background(), r.Request); err != nil || !in.Verified || string(in.Body) != string(sent) {
		sim.fail("P3: request %s is not shown as it was sent: %v", r.Request, err)
	}
	got := rendered(body.Messages[1:])
	want := sim.c.messages[:len(sim.c.messages)-1] // without the answer to it
	if !slices.Equal(got, want) {
		sim.fail("the next input holds\n%s\nand should hold\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, text := range sim.c.attempts {
		q, _ := json.Marshal(text)
		if strings.TrimSpace(text) != "" && strings.Contains(string(sent), strings.Trim(string(q), `"`)) {
			sim.fail("F1: the attempt %q is in the next input", text)
		}
	}
}

// checkLegal: every call of an answer is followed by exactly one result, in order (P2, invariant 4).
func (sim *simulation) checkLegal(messages []message) {
	var due []string
	for i, m := range messages {
		switch {
		case len(due) > 0 && (m.Role != "tool" || m.CallID != due[0]):
			sim.fail("invariant 4: message %d is of %s %s, due is the result of %s", i+1, m.Role, m.CallID, due[0])
			return
		case len(due) > 0:
			due = due[1:]
		case m.Role == "tool":
			sim.fail("invariant 4: message %d is a result that nobody asked for", i+1)
		case m.Role == "assistant":
			if i == 0 || messages[i-1].Role == "assistant" {
				sim.fail("invariant 4: message %d is an answer to nothing", i+1)
			}
			if len(m.Calls) == 0 && strings.TrimSpace(*m.Content) == "" && (m.Reasoning == nil || *m.Reasoning == "") {
				sim.fail("T2: message %d says nothing", i+1)
			}
			for _, k := range m.Calls {
				due = append(due, k.ID)
			}
		case m.Role != "user":
			sim.fail("invariant 4: message %d is of %q", i+1, m.Role)
		}
	}
	if len(due) > 0 {
		sim.fail("invariant 4: %s has no result", due[0])
	}
}

// rendered are messages as the files in testdata/orders say them.
func rendered(messages []message) (out []string) {
	for _, m := range messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		switch m.Role {
		case "tool":
			out = append(out, fmt.Sprintf("tool %s %q", m.CallID, text))
		case "assistant":
			line := fmt.Sprintf("assistant %q", text)
			if m.Reasoning != nil && *m.Reasoning != "" {
				line += fmt.Sprintf(" reasoning %q", *m.Reasoning)
			}
			var names []string
			for _, k := range m.Calls {
				names = append(names, k.Function.Name)
			}
			if len(names) > 0 {
				line += " calls " + strings.Join(names, ", ")
			}
			out = append(out, line)
		default:
			out = append(out, fmt.Sprintf("%s %q", m.Role, text))
		}
	}
	return out
}

// simEncoders is for Verify: what was sent is what the log says, encoded again (M1).
func simEncoders(dialect string) (transcript.Encoder, bool) {
	d, err := chat.ByName(dialect)
	return d, err == nil
}
