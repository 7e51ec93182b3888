package transcript

import (
	"bytes"
	"slices"
	"testing"
)

// Whatever redirects, retries, stops and failures lie before the cut or behind it, what is shown of the entries between is
// what all of the session shows of them, with the same threads.
func TestAPageIsThatPartOfTheWhole(t *testing.T) {
	said := func(text string) []PromptPart { return []PromptPart{{Type: "text", Text: text}} }
	turn := func(id, redirects, retries TurnID, outcome Outcome) []Body {
		return []Body{
			&TurnStarted{Turn: id, Redirects: redirects, Retries: retries, Prompt: said("ask " + string(id))},
			&TurnEnded{Turn: id, Outcome: outcome},
		}
	}
	for _, test := range []struct {
		name  string
		turns [][]Body
	}{
		{"a redirect of the turn before", [][]Body{turn("t_1", "", "", TurnStopped), turn("t_2", "t_1", "", TurnCompleted)}},
		{"a redirect of a redirect", [][]Body{
			turn("t_1", "", "", TurnStopped), turn("t_2", "t_1", "", TurnStopped), turn("t_3", "t_2", "", TurnCompleted)}},
		{"a redirect with another question in between", [][]Body{
			turn("t_1", "", "", TurnStopped), turn("t_2", "", "", TurnCompleted), turn("t_3", "t_1", "", TurnCompleted)}},
		{"a redirect of a turn of another session", [][]Body{turn("t_1", "t_0", "", TurnStopped), turn("t_2", "t_1", "", TurnCompleted)}},
		{"a retry of the turn before", [][]Body{turn("t_1", "", "", TurnFailed), turn("t_2", "", "t_1", TurnCompleted)}},
		{"a retry with another question in between", [][]Body{
			turn("t_1", "", "", TurnFailed), turn("t_2", "", "", TurnCompleted), turn("t_3", "", "t_1", TurnCompleted)}},
		{"a retry of a retry", [][]Body{
			turn("t_1", "", "", TurnFailed), turn("t_2", "", "t_1", TurnFailed), turn("t_3", "", "t_2", TurnCompleted)}},
		{"a retry of a redirect, redirected", [][]Body{
			turn("t_1", "", "", TurnStopped), turn("t_2", "t_1", "", TurnFailed), turn("t_3", "", "t_2", TurnStopped),
			turn("t_4", "t_3", "", TurnCompleted)}},
		{"a retry of a turn of another session", [][]Body{turn("t_1", "", "t_0", TurnFailed), turn("t_2", "", "t_1", TurnCompleted)}},
		{"a message that starts the next turn", [][]Body{
			{&TurnStarted{Turn: "t_1", Prompt: said("one")}, &MessageQueued{Message: "m_1", Prompt: said("then")},
				&TurnEnded{Turn: "t_1", Outcome: TurnCompleted}},
			{&TurnStarted{Turn: "t_2", Queued: []MessageID{"m_1"}, Prompt: said("then")}, &TurnEnded{Turn: "t_2", Outcome: TurnCompleted}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := openStore(t, Options{})
			log := newSession(t, store)
			for _, bodies := range test.turns {
				add(t, log, bodies...)
			}
			pagesAreTheWhole(t, store, log.Session())
		})
	}
}

func TestAPageShowsWhatEntriesBehindItSay(t *testing.T) {
	store := openStore(t, Options{})
	t.Run("calls, a stop, a failure and two epochs", func(t *testing.T) {
		pagesAreTheWhole(t, store, talk(t, store).Session())
	})
	t.Run("a revert between turns", func(t *testing.T) {
		log, turn, blob := revertable(t, store)
		revert := add(t, log, &RevertStarted{Of: turn, Restores: true, Files: []RevertedFile{{Path: "a.go", Before: blob("a"), After: blob("b")}}})
		add(t, log, &RevertEnded{Revert: revert[0].Seq, Files: []RevertFate{{Path: "a.go", State: RevertDone}}})
		exchange(t, log, "another question", "another answer")
		pagesAreTheWhole(t, store, log.Session())
	})
	t.Run("a verdict that came turns later", func(t *testing.T) {
		log := newSession(t, store)
		turn, sent := start(t, log, "checked")
		answer := conclude(t, log, turn, 1, sent.Request, Complete, TurnFailed, text("an answer"))[1]
		exchange(t, log, "another question", "another answer")
		sum := answer.Body.(*Answer).SHA256()
		add(t, log, &Verdict{Turn: turn, Step: 1, Answer: answer.Seq, AnswerSHA256: sum, Check: "vet", CheckSHA256: sum, Verdict: VerdictReject})
		exchange(t, log, "one more question", "one more answer")
		pagesAreTheWhole(t, store, log.Session())
	})
}

// pagesAreTheWhole cuts a session into three pages at every two places. Side by side they are the whole, references too.
func pagesAreTheWhole(t *testing.T, store *Store, id SessionID) {
	t.Helper()
	info, err := store.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	all := entries(t, store, id)
	refs, err := Markdown(&whole, info, all)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(len(all)) + 1
	for first := int64(2); first <= last; first++ {
		for second := first; second <= last; second++ {
			var text bytes.Buffer
			var got []LineRef
			for _, cut := range [][2]int64{{0, first}, {first - 1, second}, {second - 1, 0}} {
				page, err := store.Page(t.Context(), id, cut[0], cut[1])
				if err != nil {
					t.Fatal(err)
				}
				above := bytes.Count(text.Bytes(), []byte("\n"))
				lines, err := MarkdownPage(&text, info, page, cut[0], cut[1])
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range lines {
					got = append(got, LineRef{above + l.Line, l.Seq})
				}
			}
			if text.String() != whole.String() || !slices.Equal(got, refs) {
				t.Fatalf("cut at %d and %d it is\n%s\n%v\nwant\n%s\n%v", first, second, text.Bytes(), got, whole.Bytes(), refs)
			}
		}
	}
}
