package main

import (
	"strings"
	"testing"
	"time"

	"fermata/transcript"
)

func TestPrintableTextActsOnNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc":                            "a\tb\nc",
		"\x1b[31mred\x1b[0m":                 "[31mred[0m",
		"\x1b]52;c;aGk=\x07":                 "]52;c;aGk=",
		"one\rtwo\x08\x7f":                   "onetwo",
		"a\u202egnp.exe\u202c \u2066\u2069b": "agnp.exe b",
		"c1 \u009b2J, nul \x00, ü日":          "c1 2J, nul , ü日",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestASummaryIsOneLineOfBoundedLength(t *testing.T) {
	if got := oneLine("a\n\tb  c\x1b", 0); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if got := oneLine(strings.Repeat("ä", 50), 10); got != "äääääää..." {
		t.Errorf("got %q", got)
	}
}

func TestTheLaneQuotesTheEndOfALongAnswer(t *testing.T) {
	got := quoted("first\n\x1b[2J"+strings.Repeat("word ", 60)+"end", 30, style{})
	lines := strings.Split(got, "\n")
	if len(lines) != laneLines+1 || lines[0] != "| ..." || !strings.HasSuffix(lines[laneLines], "end") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
	for _, l := range lines {
		if len([]rune(l)) > 32 {
			t.Errorf("%q is wider than the terminal", l)
		}
	}
	if got := quoted(strings.Repeat("x", 45), 20, style{}); got != "| "+strings.Repeat("x", 20)+"\n| "+strings.Repeat("x", 20)+"\n| xxxxx" {
		t.Errorf("a word longer than the width is quoted as %q", got)
	}
	if got, want := quoted(strings.Repeat("停", 11)+" ok "+strings.Repeat("e\u0301", 20), 20, style{}), "| "+strings.Repeat("停", 10)+"\n| 停 ok\n| "+strings.Repeat("e\u0301", 20); got != want {
		t.Errorf("characters that are wide, or that have no width, are quoted as %q, want %q", got, want)
	}
}

func TestTimesAreSaidAsPeopleSayThem(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	for d, want := range map[time.Duration]string{0: "just now", 90 * time.Second: "1 min ago", 5 * time.Hour: "5 h ago", 48 * time.Hour: "2026-11-28 12:00"} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("%s before now is %q, want %q", d, got, want)
		}
	}
}

// The name of a folder that somebody else made acted on the terminal.
func TestTheListOfSessionsActsOnNoTerminal(t *testing.T) {
	var out strings.Builder
	list := []transcript.SessionInfo{{ID: "s_1", Workspace: "/w/a\n\x1b]0;owned\x07b", Title: "t\x1b[2J", Turns: 1}}
	if err := writeSessions(&out, style{}, list, true, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if want := "s_1  just now          1 turn     open       t[2J  /w/a ]0;ownedb\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
