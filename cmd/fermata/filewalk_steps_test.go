package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fermata/transcript"
)

// patience bounds every wait for what must come.
const patience = time.Minute

// walk makes so many moves.
func (w *fileWalk) walk(moves int) {
	w.check("at first")
	for range moves {
		switch n := w.IntN(20); {
		case n < 9:
			w.turnOfCalls()
		case n < 13:
			w.interfere()
		case n < 16:
			w.revert()
		case n < 18:
			w.undo()
		case n == 18:
			w.Kill()
			w.note("killed between turns")
			w.reboot()
		default:
			w.quit()
			w.note("restarted")
			w.boot()
		}
		w.check("after this")
		w.done["moves"]++
	}
}

// reboot starts the next daemon after a kill.
func (w *fileWalk) reboot() {
	w.have.mu.Lock()
	w.have.stopped = true
	w.have.mu.Unlock()
	w.Exit()
	select { // a request of the dead daemon
	case <-w.server.asked:
	default:
	}
	w.boot()
	w.done["kills"]++
}

// turnOfCalls is a turn in which the model calls a few tools, one that changes files at a time.
func (w *fileWalk) turnOfCalls() {
	w.fresh = map[string]bool{}
	start := w.ask(w.session, "Go on.")
	w.waitAsked()
	turn := w.began()
	for range 1 + w.IntN(4) {
		if w.chance(20) {
			w.interfere()
		}
		if !w.oneCall(turn) {
			return
		}
		w.check("in the turn")
	}
	if w.chance(15) {
		w.note("stopped")
		w.Must("fermata/turn/stop", map[string]any{"turn": turn}, nil)
		w.turn(start)
		return
	}
	w.server.say <- event(map[string]any{"content": "Done."}, "stop")
	if r := w.turn(start); r.Outcome != "completed" {
		w.fail("the turn ended %+v", r)
	}
}

// began is the turn that has just begun.
func (w *fileWalk) began() (turn string) {
	for _, b := range w.news() {
		if s, ok := b.(*transcript.TurnStarted); ok {
			turn = string(s.Turn)
		}
	}
	if turn == "" {
		w.fail("no turn has begun")
	}
	w.begun[turn] = len(w.steps)
	w.turns = append(w.turns, turn)
	w.note("turn %s begins", turn)
	return turn
}

// oneCall has the model call a tool, often with the files read first. It is false when the daemon died of it.
func (w *fileWalk) oneCall(turn string) bool {
	c := w.call(&w.want)
	var text strings.Builder
	n := 0
	put := func(tool string, args map[string]any) {
		w.calls++
		text.WriteString(event(map[string]any{"tool_calls": []any{map[string]any{"index": n, "id": fmt.Sprint("c", w.calls), "type": "function",
			"function": map[string]any{"name": tool, "arguments": object(args)}}}}, nil))
		n++
	}
	if w.chance(70) {
		for _, name := range slices.Sorted(maps.Keys(c.after)) {
			if w.want.content(name) != nil {
				put("read_file", map[string]any{"path": name})
				w.fresh[name] = true
			}
		}
	}
	put(c.tool, c.args)
	w.note("%s %s", c.tool, object(c.args))
	before := w.want.clone()
	after := w.want.clone()
	c.make(&after)
	w.server.say <- text.String() + event(map[string]any{}, "tool_calls")
	if w.chance(6) {
		<-time.After(time.Duration(w.IntN(12_000)) * time.Microsecond)
		w.Kill()
		w.note("killed in it")
		w.reboot()
		w.settled(turn, &c, before, after)
		return false
	}
	w.waitAsked()
	w.did(turn, &c, w.stateOf(c.tool), before, after)
	return true
}

// stateOf is what became of the last call of a tool.
func (w *fileWalk) stateOf(tool string) (s *transcript.ToolSettled) {
	for _, b := range w.news() {
		if t, ok := b.(*transcript.ToolSettled); ok && t.Name == tool {
			s = t
		}
	}
	return s
}

// did takes what became of a call into account, and wants it to be so.
func (w *fileWalk) did(turn string, c *walkCall, s *transcript.ToolSettled, before, after fileModel) {
	if s == nil {
		w.fail("%s is not settled", c.tool)
	}
	w.note("  %s: %.300s", s.State, s.Output)
	sure := c.sure
	for name := range c.after {
		if !w.fresh[name] && c.tool != "run" {
			sure = false
		}
	}
	switch {
	case s.State == transcript.ToolDone && c.never, s.State != transcript.ToolDone && s.State != transcript.ToolFailed, s.State == transcript.ToolFailed && sure && !c.never:
		w.fail("%s came to be %s", c.tool, s.State)
	case s.State == transcript.ToolFailed:
		w.done["calls refused"]++
		return
	}
	w.done["calls done"]++
	w.done[c.tool]++
	w.want = after
	w.record(turn, c, before)
}

// record notes what a turn did, for a revert.
func (w *fileWalk) record(turn string, c *walkCall, before fileModel) {
	for name, left := range c.after {
		was := before.content(name)
		if _, open := before.docs[name]; c.disk && open {
			continue // the editor's text is the file, and the command has not changed it
		}
		if c.disk {
			w.fresh[name] = false
			if sameText(was, left) {
				continue
			}
		} else {
			w.fresh[name] = true // it knows what it wrote
		}
		w.steps = append(w.steps, walkStep{turn, name, was, left})
	}
}

// settled takes over what a killed daemon has left: of each file what it held before or was to hold, and never a part; and
// what the next one says of the call has to be true.
func (w *fileWalk) settled(turn string, c *walkCall, before, after fileModel) {
	s := w.stateOf(c.tool)
	disk, docs := w.onDisk(), w.inEditor()
	now := fileModel{disk, docs}
	all, none := true, true
	for name := range c.after {
		was, is, left := before.content(name), now.content(name), after.content(name)
		if c.disk { // the shell writes a file in two steps
			was, left = inMap(before.disk, name), inMap(after.disk, name)
			if is = inMap(disk, name); is != nil && *is == "" {
				w.want.disk[name] = ""
				all, none = false, false
				continue
			}
		}
		switch {
		case sameText(is, left) && sameText(is, was):
		case sameText(is, left):
			none = false
			one := *c
			one.after = map[string]*string{name: left}
			one.make(&w.want)
			if !c.disk || s != nil && s.State == transcript.ToolDone { // what a command did that was killed is not recorded
				w.record(turn, &one, before)
			}
		case sameText(is, was):
			all = false
		default:
			w.fail("%s holds %s, before it was %s, and was to be %s", name, shownText(is), shownText(was), shownText(left))
		}
	}
	if s == nil {
		if !none {
			w.fail("a call changed files, and the log does not know it")
		}
		return
	}
	w.note("  settled as %s: %.300s", s.State, s.Output)
	w.done["killed calls "+string(s.State)]++
	if s.State == transcript.ToolUnknown && c.tool != "run" {
		for name := range c.after {
			w.maybe[name] = true
		}
	}
	if c.tool != "run" && (s.State == transcript.ToolDone && !all || (s.State == transcript.ToolNotStarted || s.State == transcript.ToolFailed) && !none) {
		w.fail("that is not what happened")
	}
}

func inMap(m map[string]string, name string) *string {
	if text, ok := m[name]; ok {
		return &text
	}
	return nil
}

type walkReverted struct {
	Revert string
	Files  []struct{ Path, State, Why string }
}

// revert takes back a turn, some of its files, or all since it.
func (w *fileWalk) revert() {
	if len(w.turns) == 0 {
		return
	}
	turn := w.pick(w.turns)
	if w.chance(60) {
		turn = w.turns[len(w.turns)-1]
	}
	if w.chance(20) {
		w.write(map[string]any{"session": w.session, "turn": turn, "since": true}, changesOf(w.steps[w.begun[turn]:]))
		return
	}
	steps := slices.DeleteFunc(slices.Clone(w.steps), func(s walkStep) bool { return s.turn != turn })
	changes := changesOf(steps)
	maps.DeleteFunc(changes, func(_ string, ch *walkChange) bool { return sameText(ch.before, ch.after) })
	w.write(map[string]any{"session": w.session, "turn": turn}, changes)
}

// undo takes back a revert, or an undo.
func (w *fileWalk) undo() {
	if len(w.reverts) == 0 {
		return
	}
	id := w.pick(w.reverts)
	if w.chance(60) {
		id = w.reverts[len(w.reverts)-1]
	}
	w.write(map[string]any{"revert": id}, changesOf(w.wrote[id]))
}

// write has files written as they were before changes, and wants what is said of each to be true.
func (w *fileWalk) write(params map[string]any, changes map[string]*walkChange) {
	w.note("revert %s", object(params))
	before := w.want.clone()
	if w.chance(6) {
		id := w.Go("fermata/turn/revert", params)
		<-time.After(time.Duration(w.IntN(6000)) * time.Microsecond)
		w.Kill()
		_ = id
		w.note("killed in it")
		w.reboot()
		w.news()
		now := fileModel{w.onDisk(), w.inEditor()}
		for name := range w.maybe {
			if _, ok := changes[name]; !ok {
				changes[name] = &walkChange{before: before.content(name)}
			}
		}
		for name, ch := range changes {
			switch is, was := now.content(name), before.content(name); {
			case sameText(is, was):
			case sameText(is, ch.before), w.maybe[name]:
				ch.before = is
				w.want.take(&now, name)
				w.steps = append(w.steps, walkStep{"", name, was, is})
			default:
				w.fail("%s holds %s, before it was %s, and was to be %s", name, shownText(is), shownText(was), shownText(ch.before))
			}
		}
		return
	}
	var out walkReverted
	if err := w.Call("fermata/turn/revert", params, &out); err != nil {
		w.note("  %v", err)
		maps.DeleteFunc(changes, func(name string, _ *walkChange) bool { return w.maybe[name] })
		if len(changes) > 0 {
			w.fail("the revert is refused, of changes to %v", slices.Collect(maps.Keys(changes)))
		}
		return
	}
	var wrote []walkStep
	seen := map[string]bool{}
	for _, f := range out.Files {
		w.note("  %s %s %s", f.State, f.Path, f.Why)
		seen[f.Path] = true
		ch := changes[f.Path]
		switch {
		case w.maybe[f.Path] && f.State == "reverted":
			now := fileModel{w.onDisk(), w.inEditor()}
			wrote = append(wrote, walkStep{"", f.Path, before.content(f.Path), now.content(f.Path)})
			w.want.take(&now, f.Path)
		case w.maybe[f.Path]:
		case ch == nil:
			w.fail("nobody changed %s", f.Path)
		case f.State == "reverted":
			wrote = append(wrote, walkStep{"", f.Path, before.content(f.Path), ch.before})
			w.want.set(f.Path, ch.before)
			w.done["files reverted"]++
		case !ch.foreign && sameText(before.content(f.Path), ch.after) && !sameText(ch.after, ch.before):
			if _, open := before.docs[f.Path]; !open {
				w.fail("%s is as it was left, and is kept", f.Path)
			}
			fallthrough
		default:
			w.done["files kept"]++
		}
	}
	for name := range changes {
		if !seen[name] && !w.maybe[name] {
			w.fail("%s was changed, and is not told of", name)
		}
	}
	if out.Revert != "" {
		w.reverts, w.wrote[out.Revert] = append(w.reverts, out.Revert), wrote
		w.steps = append(w.steps, wrote...)
		w.done["reverts"]++
	}
	w.news()
}
