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
