package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
	"fermata/transcript"
)

var simDialect = sync.OnceValue(func() model.Dialect {
	p, err := chat.New(chat.Options{Kind: "deepseek", BaseURL: "http://model.test/v1"})
	if err != nil {
		panic(err)
	}
	return p.Dialect()
})

// model is the one there is; for a turn of a process that is dead there is none: it does not begin.
func (d *simDaemon) model(string) (Model, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return Model{}, model.ErrNoModel
	}
	return Model{Provider: d, ProviderName: "played", Name: "m"}, nil
}

func (d *simDaemon) Dialect() model.Dialect { return simDialect() }
func (d *simDaemon) Route() string          { return "played http://model.test/v1" }

// Stream takes a request as a network would, and then says what the order says.
func (d *simDaemon) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		st := &simStream{feed: make(chan received), over: make(chan struct{})}
		defer close(st.over)
		if err := d.take(r); err != nil {
			d.problem("%v", err)
		}
		d.mu.Lock()
		d.stream = st
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.stream == st {
				d.stream = nil
			}
		}()
		if !yield(model.Delta{Kind: model.Headers, Status: 200}, nil) {
			return
		}
		for {
			select {
			case f, ok := <-st.feed:
				if !ok || !yield(f.d, f.err) || f.err != nil || f.d.Kind == model.End {
					return
				}
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
		}
	}
}

// take reads a body, over another connection to the database than the one that writes: what is not committed cannot be
// read (invariants 1 and 3, M2).
func (d *simDaemon) take(r model.Request) error {
	body, err := r.Body()
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies[r.ID] = b
	d.order = append(d.order, r.ID)
	return nil
}

func (d *simDaemon) Permission(ctx context.Context, _ Question) (Reply, error) {
	ask := &simQuestion{reply: make(chan Reply), over: make(chan struct{})}
	defer close(ask.over)
	d.mu.Lock()
	d.ask = ask
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ask = nil
	}()
	select {
	case r := <-ask.reply:
		return r, nil
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
}

func (d *simDaemon) Overlay(string) workspace.Overlay { return nil }

func (d *simDaemon) tool(name string, readOnly bool) tools.Tool {
	return tools.Tool{
		Name: name, Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: readOnly,
		Summary: func(json.RawMessage) string { return name },
		Check:   func(*workspace.Workspace, json.RawMessage) (tools.Result, bool) { return tools.Result{}, true },
		Ask: func(*workspace.Workspace, json.RawMessage) permit.Call {
			return permit.Call{Tool: name, ReadOnly: readOnly}
		},
		Run: func(ctx context.Context, env tools.Env, args json.RawMessage) tools.Result {
			return d.run(ctx, env, name, readOnly, args)
		},
	}
}

// run is a tool: it does what it does when the order says so, and does not hurry when it is stopped (S7).
func (d *simDaemon) run(ctx context.Context, env tools.Env, name string, readOnly bool, args json.RawMessage) tools.Result {
	var a struct{ Key string }
	if err := json.Unmarshal(args, &a); err != nil {
		d.problem("arguments %s: %v", args, err)
	}
	path := strings.ReplaceAll(a.Key, ".", "-")
	if !readOnly {
		if !env.Permit.Allows(permit.Call{Tool: name}) {
			d.problem("%s runs without a permit", a.Key)
		}
		if err := env.Intent(ctx, tools.Change{Path: path, After: []byte(a.Key)}); errors.Is(err, ErrStopped) {
			return tools.Result{State: tools.Stopped, Output: name + " so far"} // a stop came first: nothing is changed any more
		} else if err != nil {
			d.problem("intent of %s: %v", a.Key, err)
		}
	}
	k := &simTool{ret: make(chan struct{}), ctx: ctx}
	d.mu.Lock()
	if d.running[a.Key] != nil {
		d.problems = append(d.problems, fmt.Errorf("%s runs twice", a.Key))
	}
	d.running[a.Key] = k
	d.mu.Unlock()
	<-k.ret
	d.mu.Lock()
	delete(d.running, a.Key)
	dead := d.dead
	d.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
	if ctx.Err() != nil {
		return tools.Result{State: tools.Stopped, Output: name + " so far"}
	}
	if !readOnly {
		if err := os.WriteFile(filepath.Join(d.s.Workspace(), path), []byte(a.Key), 0o600); err != nil {
			d.problem("%v", err)
		}
	}
	return tools.Result{State: tools.Done, Output: name + " all"}
}

// listen is the client: it notes what it is told, and that it was committed then (invariant 1).
func (d *simDaemon) listen() {
	for {
		ev, err := d.sub.Next(context.Background())
		if err != nil {
			return
		}
		switch {
		case ev.Entry != nil:
			e := *ev.Entry
			if e.Seq > d.s.log.Seq() { // not committed by this process; by another one?
				got, err := d.store.Entries(context.Background(), e.Session, e.Seq-1, 1)
				if err != nil || len(got) != 1 || got[0].Hash != e.Hash {
					d.problem("invariant 1: entry %d was told and is not in the log: %v", e.Seq, err)
				}
			}
			d.mu.Lock()
			if !d.dead {
				d.told = append(d.told, e)
			}
			if e.Kind() == transcript.KindRequestEnded && len(d.said) > 0 {
				d.said[len(d.said)-1].over = true
			}
			d.mu.Unlock()
		case ev.Delta != nil:
			d.hear(ev.Delta)
		}
	}
}

func (d *simDaemon) hear(delta *Delta) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return
	}
	var a *simSaid
	if n := len(d.said); n > 0 && !d.said[n-1].over {
		a = d.said[n-1]
	}
	if a == nil || a.turn != delta.Turn || a.step != delta.Step {
		a = &simSaid{turn: delta.Turn, step: delta.Step}
		d.said = append(d.said, a)
	}
	to := &a.text
	if delta.Part == transcript.PartReasoning {
		to = &a.reasoning
	}
	if int64(len(*to)) != delta.Offset {
		d.problems = append(d.problems, fmt.Errorf("a delta at offset %d came when %d bytes had been told", delta.Offset, len(*to)))
	}
	*to += delta.Text
}
