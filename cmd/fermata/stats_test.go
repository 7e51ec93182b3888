package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/transcript"
)

// The page is compared with a file, in which definitions are left out.
//
// guards X1, X2, X3, X4: each figure is shown with how many cases it has, and not at all when they are too few.
func TestTheStatsPageShowsWhatTheFiguresAre(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	many := transcript.Stats{
		At: at, Sessions: 1200, Turns: 5001, Damaged: 2, MinCases: transcript.MinCases,
		Outcomes:     map[transcript.Outcome]int{transcript.TurnCompleted: 4000, transcript.TurnStopped: 900, transcript.TurnFailed: 99, transcript.TurnAbandoned: 1},
		RedirectRate: transcript.RedirectRate{Share: transcript.Share{Part: 450, Of: 880}, Undecided: 1, Others: 19},
		FollowUps:    transcript.FollowUps{Redirects: transcript.Share{Part: 300, Of: 450}, Linked: 200, Quoting: 60, GoingOn: 40, NewTopics: 150},
		Returns: transcript.Returns{
			StopAndLeft: transcript.Share{Part: 20, Of: 40}, StopAndWentOn: transcript.Share{Part: 19, Of: 19},
			NeverStopped: transcript.Share{Part: 0, Of: 300}, Young: 1,
		},
		StopLatency: transcript.StopLatency{N: 899, Median: 7, P95: 310, Max: 5004, Buckets: []transcript.LatencyBucket{
			{UpTo: 10, N: 700}, {UpTo: 300, N: 150}, {UpTo: 3000, N: 48}, {N: 1},
		}},
		Kept: transcript.KeptStats{Answers: 870, Bytes: 1_234_567, Median: 999, Silent: 30},
		Tools: []transcript.ToolStats{
			{Name: "run", Calls: 12, States: map[transcript.ToolState]int{transcript.ToolDone: 9, transcript.ToolUnknown: 3}, Late: 2},
			{Calls: 1, States: map[transcript.ToolState]int{transcript.ToolNotStarted: 1}},
			{Name: "a\x1b[31m very long name indeed", Calls: 1, States: map[transcript.ToolState]int{transcript.ToolFailed: 1}},
		},
		Tokens: transcript.TokenStats{Requests: 9000, Counted: 8100, Input: 90_000_000, Cached: 81_000_000, Output: 1_000_000, Triangle: 95_000_000},
	}
	few := transcript.Stats{
		Workspace: "/somewhere", At: at, Sessions: 1, Turns: 2, MinCases: transcript.MinCases,
		Outcomes:     map[transcript.Outcome]int{transcript.TurnStopped: 1},
		RedirectRate: transcript.RedirectRate{Share: transcript.Share{Part: 7, Of: 7}},
		StopLatency:  transcript.StopLatency{N: 1, Median: 7, P95: 7, Max: 7},
		Kept:         transcript.KeptStats{Answers: 1, Bytes: 1, Median: 1},
	}
	talkative := transcript.Stats{
		Workspace: "/somewhere", At: at, Sessions: 1, Turns: 1, MinCases: transcript.MinCases,
		Tokens: transcript.TokenStats{Requests: 1, Counted: 1, Input: 100, Cached: 60, Output: 400, Triangle: 100},
	}
	for name, c := range map[string]struct {
		st    transcript.Stats
		style style
	}{
		"many-ascii":   {many, style{}},
		"many-unicode": {many, style{unicode: true}},
		"few":          {few, style{}},
		"talkative":    {talkative, style{}}, // more was said than asked: it ended in a panic
		"none":         {transcript.Stats{Workspace: "/somewhere", At: at}, style{}},
	} {
		t.Run(name, func(t *testing.T) {
			page := statsPage{style: c.style, st: c.st}
			page.write()
			want, err := os.ReadFile(filepath.Join("testdata", "stats", name+".txt"))
			if err != nil {
				t.Error(err)
			}
			if got := page.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("the page is\n%s\nwant\n%s", got, want)
			}
			for line := range strings.Lines(page.String()) {
				if n := len([]rune(line)) - 1; n > 80 {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
		})
	}
}

func TestABarIsAsLongAsItsShare(t *testing.T) {
	for _, c := range []struct {
		part, of int
		ascii    string
		unicode  string
	}{
		{0, 10, strings.Repeat(".", 24), strings.Repeat(" ", 24)},
		{10, 10, strings.Repeat("#", 24), strings.Repeat("█", 24)},
		{5, 10, strings.Repeat("#", 12) + strings.Repeat(".", 12), strings.Repeat("█", 12) + strings.Repeat(" ", 12)},
		{1, 1000000, "#" + strings.Repeat(".", 23), "▏" + strings.Repeat(" ", 23)},
		{1, 64, "#" + strings.Repeat(".", 23), "▍" + strings.Repeat(" ", 23)},
		{20, 10, strings.Repeat("#", 24), strings.Repeat("█", 24)},
		{-3, 10, strings.Repeat(".", 24), strings.Repeat(" ", 24)},
		{0, 0, strings.Repeat(" ", 24), strings.Repeat(" ", 24)},
	} {
		if got := (&statsPage{}).bar(c.part, c.of); got != c.ascii {
			t.Errorf("%d of %d: %q, want %q", c.part, c.of, got, c.ascii)
		}
		if got := (&statsPage{style: style{unicode: true}}).bar(c.part, c.of); got != c.unicode {
			t.Errorf("%d of %d: %q, want %q", c.part, c.of, got, c.unicode)
		}
	}
}

func TestNumbersAreReadable(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(999): "999", grouped(1000): "1,000", grouped(1234567): "1,234,567", grouped(-1234): "-1,234", grouped(-123): "-123",
		byteCount(1): "1 byte", byteCount(999): "999 bytes", byteCount(1500): "1.5 kB", byteCount(2_000_000): "2.0 MB",
		duration(7): "7 ms", duration(1000): "1 s", duration(5040): "5 s", duration(5060): "5.1 s", plural(1, "entry"): "1 entry", plural(2, "entry"): "2 entries",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
