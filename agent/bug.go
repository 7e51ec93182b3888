package agent

import "runtime/debug"

// A bug of ours that panics ends what it is in, and nothing else: other turns of this process go on. Where nobody above would
// catch it, as at the top of a goroutine, it is caught with bug.

// bug notes what recover gave, if that was a panic, and reports whether it was. Use: defer func() { if a.bug("…", recover()) {…} }().
func (a *Agent) bug(in string, p any) bool {
	if p != nil {
		a.o.Log.Error("a bug of fermata", "in", in, "panic", p, "stack", string(debug.Stack()))
	}
	return p != nil
}
