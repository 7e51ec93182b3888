package mcp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"fermata/tools"
)

// alive reports whether a process that wrote its id to a file runs: a dead one that is not collected does not.
func (b *bench) alive(file string) bool {
	b.t.Helper()
	text, err := os.ReadFile(b.file(file))
	if err != nil {
		b.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		b.t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// guards S14
func TestNoProcessOfAServerIsLeft(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"when the servers are closed": func(b *bench) { b.servers.Close() },
		"when it has died":            func(b *bench) { b.run(b.t.Context(), "srv__die", `{"count":1}`, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, program(t, "good"))
			r := b.run(t.Context(), "srv__fork", fmt.Sprintf(`{"file":%q}`, b.file("a")), nil)
			if r.State != tools.Done || r.Output != "forked" && r.Output != "forked " {
				t.Fatalf("%s: %s", r.State, r.Output)
			}
			tick := 0
			for ; tick < 1000; tick++ { // the process that it left writes its id
				if text, err := os.ReadFile(b.file("a")); err == nil && strings.HasSuffix(string(text), "\n") {
					break
				}
				b.run(t.Context(), "srv__echo", `{}`, nil)
			}
			if !b.alive("a") {
				t.Fatal("the process does not run: there is nothing to see here")
			}
			end(b)
			if b.alive("a") {
				t.Error("the process is alive")
			}
		})
	}
}

// wrapped is a server that a shell script starts, after another process whose id the script writes to a file.
func (b *bench) wrapped(c Config, script string) Config {
	c.Command = []string{"/bin/sh", "-c", script + ` echo $! >"$0"; exec "$1"`, b.file("a"), c.Command[0]}
	return c
}

// guards S14: only what came to an end in the middle of a call was ended.
func TestWhatAServerHasLeftIsEndedWhenItEndsBetweenCalls(t *testing.T) {
	b := newBench(t)
	b.servers.o.Configs = []Config{b.wrapped(program(t, "raw"), "sleep 600 </dev/null >/dev/null 2>&1 &")}
	if r := b.say(fine, "$exit"); r.Output != "fine" {
		t.Fatalf("%s: %s", r.State, r.Output)
	}
	b.until("its process has ended", func() bool { return !b.alive("a") })
	if r := b.say(fine); r.Output != "fine" {
		t.Errorf("the next call: %s: %s", r.State, r.Output)
	}
}

// guards P2, S14: a call waited until it was timed out.
func TestAServerThatHasEndedIsNotWaitedForWhereItsChildHoldsThePipes(t *testing.T) {
	b := newBench(t)
	b.servers.o.Configs = []Config{b.wrapped(program(t, "raw"), "sleep 600 <&0 &")}
	r := b.say("$exit")
	if r.State != tools.Failed || !strings.HasSuffix(r.Output, "the MCP server srv was lost before it answered, and the call may have taken effect: it ended with exit status 0") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if b.alive("a") {
		t.Error("its child is alive")
	}
}

// guards M6: what a server complains of is told to the model.
func TestAServersComplaintHoldsNoKeyThatItWasGiven(t *testing.T) {
	t.Setenv("GIVEN_TOKEN", "t0p-s3cret")
	b := newBench(t, Config{Name: "srv", Command: []string{"/bin/sh", "-c", `echo "$ITS_TOKEN is refused" >&2; exit 1`}, Env: map[string]string{"ITS_TOKEN": "Bearer ${GIVEN_TOKEN}"}})
	const want = "the MCP server srv cannot be used: it ended with exit status 1. It complained: Bearer (the value of GIVEN_TOKEN) is refused"
	if _, warnings := b.tools(t.Context()); len(warnings) != 1 || warnings[0] != want {
		t.Errorf("%q", warnings)
	}
}
