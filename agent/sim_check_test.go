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

// quiet checks, between two happenings, that the agent waits for what the course says can come next, and for nothing else.
func (sim *simulation) quiet() {
	c := sim.c
	var want, got []string
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
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		sim.fail("the agent waits for %q, and should wait for %q", got, want)
	}
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
	number := map[transcript.TurnID]int{}
	for i, t := range sim.turns {
		number[t.t.ID()] = i + 1
	}
	var open transcript.TurnID
	var ends []string
	for i, e := range log {
		if e.Seq != int64(i+1) {
			sim.fail("invariant 2: entry %d has seq %d", i+1, e.Seq)
		}
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			if open != "" {
				sim.fail("invariant 2: turn %d starts within turn %d", number[b.Turn], number[open])
			}
			open = b.Turn
		case *transcript.TurnEnded:
			if open != b.Turn {
				sim.fail("invariant 2: turn %d ends and is not open", number[b.Turn])
			}
			open = ""
			ends = append(ends, fmt.Sprint(number[b.Turn], " ", b.Outcome))
		}
	}
	if open != "" {
		sim.fail("invariant 2: turn %d has no end", number[open])
	}
	if !slices.Equal(ends, sim.c.ends) {
		sim.fail("the turns ended %q, and should have ended %q", ends, sim.c.ends)
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

// checkAdmissions: each answer is decided about once, right behind it: complete and stopped ones are admitted (P5).
func (sim *simulation) checkAdmissions(log []transcript.Entry) {
	for i, e := range log {
		switch b := e.Body.(type) {
		case *transcript.Answer:
			next, ok := log[min(i+1, len(log)-1)].Body.(*transcript.Admission)
			if !ok || next.Answer != e.Seq || next.Admitted != (b.State != transcript.Broken) || next.By != "rule" {
				sim.fail("P5: behind the %s answer %d comes %+v", b.State, e.Seq, next)
			}
		case *transcript.Admission:
			if b.Answer != e.Seq-1 {
				sim.fail("P5: answer %d is decided about a second time", b.Answer)
			}
		}
	}
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
		switch e := ended[t.t.ID()]; {
		case t.err != nil:
			sim.fail("turn %d: %v", i+1, t.err)
		case e == nil || e.Outcome != t.rep.Outcome || e.Cause != t.rep.Cause || e.Silent != t.rep.Silent || !reflect.DeepEqual(e.Kept, t.rep.Kept):
			sim.fail("S1: turn %d reported %+v, the log says %+v", i+1, t.rep, e)
		}
	}
	for _, x := range sim.stops {
		switch {
		case !x.done:
		case x.err != nil:
			sim.fail("S1: a stop was answered with %v", x.err)
		case x.turn.done && !reflect.DeepEqual(x.rep, x.turn.rep):
			sim.fail("S1: the stop was answered %+v, the start %+v", x.rep, x.turn.rep)
		case x.rep.Outcome == "":
			sim.fail("S1: the stop was answered without an outcome")
		}
	}
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
