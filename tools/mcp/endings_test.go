package mcp

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tools"
)

// result waits for a call that runs in the background.
func result(t *testing.T, results <-chan tools.Result) tools.Result {
	t.Helper()
	select {
	case r := <-results:
		return r
	case <-time.After(30 * time.Second):
		t.Fatal("the call does not come back")
		return tools.Result{}
	}
}

// start calls a tool in the background.
func (b *bench) start(ctx context.Context, name, args string) <-chan tools.Result {
	b.t.Helper()
	offered, warnings := b.tools(b.t.Context())
	i := slices.Index(names(offered), name)
	if i < 0 {
		b.t.Fatalf("no tool %s among %d: %q", name, len(offered), warnings)
	}
	c := make(chan tools.Result, 1)
	go func() { c <- b.call(ctx, offered[i], args, nil) }()
	return c
}

// guards S7
func TestAStopTellsTheServerAndTakesItsAnswer(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			ctx, stop := context.WithCancel(t.Context())
			results := b.start(ctx, "srv__wait", fmt.Sprintf(`{"file":%q}`, b.file("said")))
			b.await("said", "begun")
			stop()
			b.await("said", "cancelled")
			r := result(t, results)
			if r.State != tools.Stopped && r.State != tools.Unknown { // the SDK's server says nothing over HTTP once it is cancelled
				t.Errorf("%s: %s", r.State, r.Output)
			}
			if !strings.Contains(r.Output, "stopped after ") {
				t.Error(r.Output)
			}
			if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done {
				t.Errorf("afterwards %s: %s", r.State, r.Output)
			}
		})
	}
}

// guards S7, P2
func TestAnAnswerThatComesAfterTheStopIsNotLost(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			ctx, stop := context.WithCancel(t.Context())
			results := b.start(ctx, "srv__late", fmt.Sprintf(`{"file":%q,"until":%q}`, b.file("said"), b.file("go")))
			b.await("said", "begun")
			stop()
			r := result(t, results)
			if r.State != tools.Unknown || !strings.Contains(r.Output, "has not answered. The call may have taken effect.") || r.Later == nil {
				t.Fatalf("%s: %s", r.State, r.Output)
			}
			if err := os.WriteFile(b.file("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if late := result(t, r.Later); late.State != tools.Done || late.Output != "done after all" {
				t.Errorf("late %s: %s", late.State, late.Output)
			}
		})
	}
}

// guards S7
func TestNobodyWaitsForALateAnswerWhenTheServersAreClosed(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			ctx, stop := context.WithCancel(t.Context())
			results := b.start(ctx, "srv__late", fmt.Sprintf(`{"file":%q,"until":%q}`, b.file("said"), b.file("go")))
			b.await("said", "begun")
			stop()
			r := result(t, results)
			if r.Later == nil {
				t.Fatalf("%s: %s", r.State, r.Output)
			}
			closed := make(chan struct{})
			go func() {
				b.servers.Close()
				close(closed)
			}()
			select {
			case late, ok := <-r.Later:
				if ok {
					t.Errorf("late %s: %s", late.State, late.Output)
				}
			case <-time.After(20 * time.Second):
				t.Error("the late answer is waited for")
			}
			if err := os.WriteFile(b.file("go"), nil, 0o600); err != nil { // the test's server has to end too
				t.Fatal(err)
			}
			<-closed
		})
	}
}

func TestACallThatTakesTooLongIsCancelled(t *testing.T) {
	c := program(t, "good")
	c.Call = 50 * time.Millisecond
	b := newBench(t, c)
	r := b.run(t.Context(), "srv__wait", fmt.Sprintf(`{"file":%q}`, b.file("said")), nil)
	b.await("said", "cancelled")
	if r.State != tools.Failed || !strings.HasPrefix(r.Output, "timed out after ") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

// guards P2, S7
func TestTheDeathOfAServerIsAResultAndTheNextCallStartsIt(t *testing.T) {
	b := newBench(t, program(t, "good"))
	r := b.run(t.Context(), "srv__die", `{"count":3}`, nil)
	const want = "srv__die: the MCP server srv was lost before it answered, and the call may have taken effect: it ended with exit status 3. It complained: out of cheese"
	if r.State != tools.Failed || r.Output != want {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done {
		t.Errorf("the next call: %s: %s", r.State, r.Output)
	}
	// Who dies again and again is not started each time.
	b.run(t.Context(), "srv__die", `{}`, nil)
	r = b.run(t.Context(), "srv__echo", `{}`, nil)
	if r.State != tools.Failed || !strings.Contains(r.Output, "does not run, nothing was done: it ended with exit status 0") || !strings.Contains(r.Output, "it is not started again for ") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

func TestAnAddressThatIsGoneIsAResult(t *testing.T) {
	c, server := address(t, nil)
	b := newBench(t, c)
	if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done {
		t.Fatalf("%s: %s", r.State, r.Output)
	}
	server.Listener.Close()
	server.CloseClientConnections()
	r := b.run(t.Context(), "srv__echo", `{}`, nil)
	if r.State != tools.Failed || !strings.Contains(r.Output, "the MCP server srv gave no answer that can be read, and the call may have taken effect: ") {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

func TestNonsenseBetweenMessagesIsSkipped(t *testing.T) {
	b := newBench(t, program(t, "chatty"))
	for range 3 {
		if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done || r.Output != "echo: {}" {
			t.Errorf("%s: %s", r.State, r.Output)
		}
	}
}

func TestAServerThatDoesNotStartIsToldOnceAndItsToolsAreNotThere(t *testing.T) {
	for mode, want := range map[string]string{
		"deaf":     "it did not start within 300ms",
		"nonsense": "it said 200 lines in a row on its stdout that are no messages of the protocol",
		"broken":   "it ended with exit status 1. It complained: no [31mconfiguration[0m found",
	} {
		t.Run(mode, func(t *testing.T) {
			bad, good := program(t, mode), program(t, "good")
			if mode == "deaf" {
				bad.Start = 300 * time.Millisecond
			}
			good.Name, good.Tools = "good", []string{"echo"}
			b := newBench(t, bad, good)
			offered, warnings := b.tools(t.Context())
			if got := names(offered); !slices.Equal(got, []string{"good__echo"}) {
				t.Errorf("offered: %q", got)
			}
			if len(warnings) != 1 || warnings[0] != "the MCP server srv cannot be used: "+want {
				t.Errorf("warnings: %q", warnings)
			}
			if status := b.servers.Check(t.Context(), b.dir); status[0].Err == nil || status[1].Err != nil {
				t.Errorf("status: %+v", status)
			}
		})
	}
}

func TestAProgramThatCannotBeRunIsSaid(t *testing.T) {
	inside := program(t, "good")
	b := newBench(t)
	exe, err := os.ReadFile(inside.Command[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.file("server"), exe, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		command, want string
	}{
		"none":                 {"no-such-program-anywhere", "its program cannot be found: "},
		"one of the workspace": {b.file("server"), "lies in the workspace and is not run"},
	} {
		t.Run(name, func(t *testing.T) {
			c := inside
			c.Command = []string{tt.command}
			servers := New(Options{Configs: []Config{c}})
			defer servers.Close()
			if offered, warnings := servers.Tools(t.Context(), b.dir); len(offered) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], tt.want) {
				t.Errorf("%q, %q", names(offered), warnings)
			}
		})
	}
}

func TestWhoStopsDoesNotWaitForAServerThatStarts(t *testing.T) {
	b := newBench(t, program(t, "deaf"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	begun := time.Now()
	if offered, warnings := b.tools(ctx); len(offered) > 0 || len(warnings) > 0 || time.Since(begun) > 5*time.Second {
		t.Errorf("%q, %q after %v", names(offered), warnings, time.Since(begun))
	}
}

// guards M4
func TestAListThatChangesIsReadForTheNextTurn(t *testing.T) {
	b := newBench(t, program(t, "shy"))
	before, _ := b.tools(t.Context())
	if got := names(before); !slices.Equal(got, []string{"srv__grow"}) {
		t.Fatalf("%q", got)
	}
	if r := b.run(t.Context(), "srv__grow", `{}`, nil); r.State != tools.Done {
		t.Fatalf("%s: %s", r.State, r.Output)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		offered, _ := b.tools(t.Context())
		if slices.Equal(names(offered), []string{"srv__echo", "srv__grow"}) {
			return
		}
		select {
		case <-tick.C: // the notification is on its way
		case <-limit:
			t.Fatalf("%q", names(offered))
		}
	}
}
