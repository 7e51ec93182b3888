package main

import (
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// begins FILE OTHER [TAIL]: FILE begins with OTHER, but for the TAIL that OTHER ends with.
func begins(ts *testscript.TestScript, neg bool, args []string) {
	other := ts.ReadFile(args[1])
	if len(args) > 2 {
		cut, ok := strings.CutSuffix(other, args[2])
		if !ok {
			ts.Fatalf("%s does not end with %q", args[1], args[2])
		}
		other = cut
	}
	if got := strings.HasPrefix(ts.ReadFile(args[0]), other); got == neg {
		ts.Fatalf("that %s begins with %s is %v", args[0], args[1], got)
	}
}

// idof PATTERN VAR: sets VAR to the first word of the only line of the last output that matches.
func idOf(ts *testscript.TestScript, _ bool, args []string) {
	lines := regexp.MustCompile("(?m)^.*"+strings.TrimPrefix(args[0], "^")+".*$").FindAllString(ts.ReadFile("stdout"), -1)
	if len(lines) != 1 {
		ts.Fatalf("%q matches %d lines", args[0], len(lines))
	}
	ts.Setenv(args[1], strings.Fields(lines[0])[0])
}
