//go:build unix

package agent

import (
	"testing"

	"fermata/tools"
)

// A change that is too long to be recorded as one is still known to be the command's.
func TestALongChangeByItsOwnCommandIsNotToldAsSomebodyElses(t *testing.T) {
	w := newWorld(t, tools.All(), makes("read_file", `{"path":"a.go"}`),
		makes("run", `{"command":"yes long | head -c 2000000 >a.go"}`), fine)
	w.put("a.go", "old\n")
	w.run(say("Read."))
	w.run(say("And?"))
	if got := w.said(); got != "And?" {
		t.Errorf("%q", got)
	}
	w.put("a.go", "new\n")
	w.run(say("And?"))
	if got := w.said(); got != "[Since your last turn these files changed: a.go.]\n\nAnd?" {
		t.Errorf("%q", got)
	}
}
