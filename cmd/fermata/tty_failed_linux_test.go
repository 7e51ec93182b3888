package main

import (
	"testing"

	"fermata/agent/model/rehearsal"
)

// guards F3, F4: the terminal offers what the editor does
func TestAFailedTurnOffersRetryAndKeepInTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, err := rehearsal.Start(brokenOff + "reply\nstatus 400\nreply\nsay \"All good now.\"\n")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	x := openTerminal(t, child(t, dir, []string{"FERMATA_MODEL=openai/x", "OPENAI_BASE_URL=" + model.URL}, "ask", "hello there"))
	x.expect("Half an ans")
	x.expect("the turn failed")
	x.expect("[r]etry, [k]eep, Enter leaves")
	x.typed("k")
	x.expect("Kept 3 words")
	x.expect("[r]etry, Enter leaves")
	x.typed("r")
	x.expect("the turn failed")
	x.expect("[r]etry, Enter leaves") // nothing was said
	x.typed("r")
	x.expect("All good now.")
	x.end(0)
	got := sent(t, dir)
	if len(got) != 4 || got[1].Content != "Half an ans" || got[1].Role != "assistant" {
		t.Errorf("the last input is %q", got)
	}
}

func TestTheOfferAfterAFailureCanBeLeftInEveryUsualWay(t *testing.T) {
	for name, keys := range map[string]string{"escape": escape, "enter": enter, "interrupt": ctrlC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model, err := rehearsal.Start(brokenOff)
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			x := openTerminal(t, child(t, dir, []string{"FERMATA_MODEL=openai/x", "OPENAI_BASE_URL=" + model.URL}, "ask", "hello there"))
			x.expect("[r]etry, [k]eep, Enter leaves")
			x.typed(keys)
			x.expect("Left as it is.")
			x.end(exitFailed)
		})
	}
}
