package agent

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"fermata/agent/model"
	"fermata/tools"
	"fermata/transcript"
)

// buggy is a provider whose reading of an answer panics behind its first words, once.
type buggy struct {
	model.Provider
	times int
}

func (b *buggy) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range b.Provider.Stream(ctx, r) {
			if !yield(d, err) {
				return
			}
			if d.Kind == model.Text && b.times > 0 {
				b.times--
				panic("a bug")
			}
		}
	}
}

// A bug in a goroutine that nobody waits in ended the whole daemon, with the turns of all other sessions.
//
// guards P4, F1
func TestABugWhereAnAnswerIsReadBreaksThatAnswerOff(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("Half an answer"); r.hang() }, answers)
	models := w.agent.o.Models
	b := &buggy{times: 1}
	w.agent.o.Models = func(name string) (Model, error) {
		m, err := models(name)
		b.Provider, m.Provider = m.Provider, b
		return m, err
	}
	rep := w.run(say("Tell."))
	if rep.Outcome != transcript.TurnFailed || !strings.Contains(w.dump(), `"state":"broken"`) || !strings.Contains(w.dump(), "Half an answer") {
		t.Errorf("%+v; the log: %s", rep, w.dump())
	}
	if rep := w.run(say("And?")); rep.Outcome != transcript.TurnCompleted || strings.Contains(w.model.body(2), "Half an answer") {
		t.Errorf("%+v; %s", rep, w.model.body(2))
	}
}

// guards S8
func TestABugWhereAQuestionIsAskedDeniesItsCall(t *testing.T) {
	w := newWorld(t, tools.All(), func(r *reply) { r.say("I write."); r.call("c1", "write_file", `{"path":"f","content":"x"}`); r.done() }, answers)
	w.ask = func(context.Context, Question) (Reply, error) { panic("a bug") }
	if rep := w.run(say("Write.")); rep.Outcome != transcript.TurnCompleted {
		t.Errorf("%+v; the log: %s", rep, w.dump())
	}
	if log := w.dump(); !strings.Contains(log, "it could not be asked about, by an error inside fermata") || !strings.Contains(log, `"state":"not_started"`) {
		t.Errorf("the log: %s", log)
	}
}

// lateBug is a source of tools whose second answer is a panic.
type lateBug struct{ asked int }

func (l *lateBug) Tools(context.Context, string) ([]tools.Tool, []string) {
	if l.asked++; l.asked == 2 {
		panic("a bug")
	}
	return nil, nil
}

func (l *lateBug) Close() {}

// guards S1, C2
func TestABugInATurnThatAQueuedMessageStartedEndsThatTurn(t *testing.T) {
	for name, running := range map[string]bool{"behind a turn": true, "where none ran": false} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			w := newWorld(t, nil, func(r *reply) { r.say("One "); <-goOn; r.say("done."); r.done() }, answers)
			w.agent.o.More = &lateBug{}
			_, out := w.start(say("First."))
			w.until(deltaEndsWith("One "))
			if running {
				w.queue("Second.")
				close(goOn)
				<-out
			} else {
				close(goOn)
				<-out
				_, _ = w.agent.ReserveMessage(w.s.ID()).Send(t.Context(), say("Second."))
			}
			w.agent.state.mu.Lock()
			turns := slices.Clone(w.agent.state.turns)
			w.agent.state.mu.Unlock()
			for _, turn := range turns {
				<-turn.Done()
			}
			if rep := w.run(say("And?")); rep.Outcome != transcript.TurnCompleted {
				t.Errorf("%+v; the log: %s", rep, w.dump())
			}
			if !strings.Contains(w.dump(), `"outcome":"abandoned"`) {
				t.Errorf("the log: %s", w.dump())
			}
		})
	}
}
