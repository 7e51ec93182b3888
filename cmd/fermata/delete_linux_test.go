package main

import (
	"strings"
	"testing"
)

func TestOnATerminalADeletionAsksAndOnlyYesDeletes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output(t, child(t, dir, nil, "ask", "hello there"))
	id := strings.Fields(output(t, child(t, dir, nil, "sessions")))[0]
	for _, no := range []string{"\n", "n\n", "yess\n", ctrlD} {
		x := openTerminal(t, child(t, dir, nil, "delete", id))
		x.expect(`Delete "hello there", 1 turn, for good? [y/N] `)
		x.typed(no)
		x.expect("nothing was deleted")
		x.end(map[bool]int{true: exitOther}[no == ctrlD])
	}
	x := openTerminal(t, child(t, dir, nil, "delete", id))
	x.expect("[y/N] ")
	x.typed("Y\n")
	x.expect("deleted " + id)
	x.end(0)
}

// guards M8: an interrupt ends what is sent again, and says so.
func TestAResendIsStoppedByAnInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output(t, child(t, dir, nil, "ask", "hello there"))
	x := openTerminal(t, child(t, dir, []string{"FERMATA_REHEARSAL_RATE=20"}, "resend"))
	x.expect("I am")
	x.typed(ctrlC)
	x.expect("stopped, HTTP 200")
	x.expect("not part of the session")
	x.end(exitStopped)
	if text := output(t, child(t, dir, nil, "sessions")); !strings.Contains(text, "1 turn ") || !strings.Contains(text, "completed") {
		t.Errorf("the session is %s", text)
	}
}
