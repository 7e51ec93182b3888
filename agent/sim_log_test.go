package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fermata/transcript"
)

// log is what the log should hold so far, as folded gives it.
func (c *course) log() []string {
	messages := slices.Clone(c.messages)
	if c.phase == phaseTools || c.phase == phaseSettle {
		for _, k := range c.calls {
			if k.state == callSettled {
				messages = append(messages, fmt.Sprintf("tool %s %q", k.id, k.output))
			}
		}
	}
	var wait []string
	for _, m := range c.queue {
		if m != c.unseen {
			wait = append(wait, fmt.Sprint(m, " waits"))
		}
	}
	return slices.Concat(messages, c.answers, c.attempts, c.ends, c.fates, wait)
}

// folded is what the log holds: the messages for the next input, the attempts, how the turns ended, and what became of messages.
func (sim *simulation) folded() []string {
	log, err := sim.d.store.Entries(context.Background(), sim.id, 0, 0)
	if err != nil {
		sim.fail("read the log: %v", err)
	}
	var messages, attempts, states []string
	answers := map[int64]*transcript.Answer{}
	var calls []transcript.Call // of the last answer
	results := map[transcript.CallID]string{}
	settled := func() {
		for _, k := range calls {
			if output, ok := results[k.ID]; ok {
				messages = append(messages, fmt.Sprintf("tool %s %q", k.ID, output))
			}
		}
		clear(results)
	}
	for _, e := range log {
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			messages = append(messages, fmt.Sprintf("user %q", b.UserText()))
		case *transcript.MessageDelivered:
			messages = append(messages, fmt.Sprintf("user %q", b.Prompt[0].Text))
		case *transcript.Answer:
			answers[e.Seq] = b
			states = append(states, string(b.State))
		case *transcript.Admission:
			a := answers[b.Answer]
			if !b.Admitted {
				attempts = append(attempts, a.Text(), a.Reasoning())
				continue
			}
			if b.By == "user" {
				attempts = attempts[:len(attempts)-2]
			}
			if !a.Speaks() && a.Reasoning() == "" {
				continue // nothing to send
			}
			m := message{Role: "assistant", Content: new(a.Text()), Reasoning: new(a.Reasoning())}
			var line strings.Builder
			line.WriteString(rendered([]message{m})[0])
			calls = a.Calls()
			for i, k := range calls {
				line.WriteString(map[bool]string{true: " calls ", false: ", "}[i == 0] + k.Name)
			}
			messages = append(messages, line.String())
		case *transcript.ToolSettled:
			if b.Late {
				continue
			}
			if results[b.Call] = b.Output; len(results) == len(calls) {
				settled()
			}
		}
	}
	settled()
	return slices.Concat(messages, states, attempts, sim.ends(log), fates(log), unended(log))
}

// ends is how the turns in the log ended: number and outcome.
func (sim *simulation) ends(log []transcript.Entry) (out []string) {
	last := -1
	for _, e := range log {
		switch b := e.Body.(type) {
		case *transcript.TurnStarted:
			last = sim.number(b.Turn, last)
		case *transcript.TurnEnded:
			out = append(out, fmt.Sprint(sim.number(b.Turn, last)+1, " ", b.Outcome))
		}
	}
	return out
}

// number finds a turn among those that were asked for. One that began and ended unseen was asked for behind another one.
func (sim *simulation) number(id transcript.TurnID, behind int) int {
	i := slices.IndexFunc(sim.turns, func(t *simTurn) bool { return t.id == id })
	if i < 0 {
		i = behind + 1
		sim.turns = slices.Insert(sim.turns, i, &simTurn{id: id})
	}
	return i
}

// fates is what became of the messages in the log.
func fates(log []transcript.Entry) (out []string) {
	number := map[transcript.MessageID]string{}
	fate := func(m transcript.MessageID, what string) { out = append(out, number[m]+" "+what) }
	for _, e := range log {
		switch b := e.Body.(type) {
		case *transcript.MessageQueued:
			number[b.Message] = messageNumber(b)
		case *transcript.MessageDelivered:
			fate(b.Message, "delivered")
		case *transcript.MessageReturned:
			fate(b.Message, "returned "+b.Cause)
		case *transcript.TurnStarted:
			for _, m := range b.Queued {
				fate(m, "started")
			}
		}
	}
	slices.Sort(out)
	return out
}

// unended are the messages in the log without an end.
func unended(log []transcript.Entry) (out []string) {
	ended := map[string]bool{}
	for _, f := range fates(log) {
		n, _, _ := strings.Cut(f, " ")
		ended[n] = true
	}
	for _, e := range log {
		if b, ok := e.Body.(*transcript.MessageQueued); ok && !ended[messageNumber(b)] {
			out = append(out, messageNumber(b)+" waits")
		}
	}
	return out
}

func messageNumber(b *transcript.MessageQueued) string {
	return strings.TrimSuffix(strings.TrimPrefix(b.Prompt[0].Text, "Message "), ".")
}
