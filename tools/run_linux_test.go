package tools

import "testing"

// guards S14
func TestAProcessThatLeavesTheGroupEndsToo(t *testing.T) {
	for name, command := range map[string]string{
		"in a session of its own": "setsid sh -c 'echo $$ >a; exec sleep 60' & while ! test -s a; do sleep 0.01; done; echo done",
		"and forked away":         "(setsid sh -c 'echo $$ >a; sleep 60; true' >/dev/null 2>&1 &) ; while ! test -s a; do sleep 0.01; done; echo done",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			if r := b.run(t, t.Context(), "run", args{"command": command}); r.State != Done || r.Output != "done" {
				t.Errorf("%s: %s", r.State, r.Output)
			}
			if alive(t, b, "a") {
				t.Error("the process is alive")
			}
		})
	}
}
