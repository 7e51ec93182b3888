package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

// recorder makes tools that note when they begin and end; the read-only ones wait until all of their group have begun.
type recorder struct {
	mu    sync.Mutex
	notes []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *recorder) tool(name string, readOnly bool, meet *sync.WaitGroup) tools.Tool {
	return tools.Tool{
		Name: name, Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: readOnly,
		Summary: func(json.RawMessage) string { return name },
		Check:   func(*workspace.Workspace, json.RawMessage) (tools.Result, bool) { return tools.Result{}, true },
		Ask: func(*workspace.Workspace, json.RawMessage) permit.Call {
			return permit.Call{Tool: name, ReadOnly: readOnly}
		},
		Run: func(_ context.Context, _ tools.Env, args json.RawMessage) tools.Result {
			r.note("begin %s", name)
			if meet != nil {
				meet.Done()
				meet.Wait()
			}
			r.note("end %s", name)
			return tools.Result{State: tools.Done, Output: name}
		},
	}
}

// guards S9, M4
func TestReadOnlyCallsRunAtOnceAndMutatingOnesInOrder(t *testing.T) {
	rec := &recorder{}
	var first, second sync.WaitGroup
	first.Add(2) // each waits for the other: one after the other would hang
	second.Add(2)
	catalogue := []tools.Tool{
		rec.tool("read1", true, &first), rec.tool("read2", true, &first), rec.tool("read3", true, &second),
		rec.tool("read4", true, &second), rec.tool("write1", false, nil), rec.tool("write2", false, nil),
	}
	w := newWorld(t, catalogue, func(r *reply) {
		for i, name := range []string{"read1", "read2", "write1", "write2", "read3", "read4"} {
			r.call(fmt.Sprint("c", i), name, "{}")
		}
		r.done()
	}, func(r *reply) { r.say("Done."); r.done() })
	if rep := w.run(say("Go.")); rep.Outcome != transcript.TurnCompleted {
		t.Fatalf("%+v", rep)
	}
	at := func(note string) int { return slices.Index(rec.notes, note) }
	for _, order := range [][2]string{
		{"end read1", "begin write1"}, {"end read2", "begin write1"}, {"end write1", "begin write2"},
		{"end write2", "begin read3"}, {"end write2", "begin read4"},
	} {
		if at(order[0]) < 0 || at(order[0]) > at(order[1]) {
			t.Errorf("%s did not come before %s: %v", order[0], order[1], rec.notes)
		}
	}
	for i, m := range w.model.messages(t, 2)[2:] {
		if want := fmt.Sprint("c", i); m.CallID != want {
			t.Errorf("result %d in the input is of %s, want %s", i, m.CallID, want)
		}
	}
}
