package transcript

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// guards invariant 2
func TestATurnStartsAloneAndEndsOnce(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	add(t, l, prompt("t_1", "q"))
	_, err := l.Append(t.Context(), prompt("t_2", "q"))
	wantErr(t, err, ErrTurnOpen)
	_, err = l.Append(t.Context(), &TurnEnded{Turn: "t_2", Outcome: TurnStopped})
	wantErr(t, err, ErrTurnEnded)
	add(t, l, &TurnEnded{Turn: "t_1", Outcome: TurnStopped})
	_, err = l.Append(t.Context(), &TurnEnded{Turn: "t_1", Outcome: TurnCompleted})
	wantErr(t, err, ErrTurnEnded)
	if got := kinds(entries(t, s, l.Session())); got != "session.opened turn.started turn.ended" {
		t.Error(got)
	}
	wantClean(t, s)
}

func TestAppendIsAllOrNothing(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	_, err := l.Append(t.Context(), prompt("t_1", "q"), &TurnEnded{Turn: "t_other", Outcome: TurnStopped})
	wantErr(t, err, ErrTurnEnded)
	if got := entries(t, s, l.Session()); len(got) != 1 || l.Seq() != 1 {
		t.Errorf("%s, seq %d", kinds(got), l.Seq())
	}
	for _, b := range []Body{&SessionOpened{}, &EpochOpened{}, &RequestSent{}} {
		if _, err := l.Append(t.Context(), b); err == nil {
			t.Errorf("%s was appended", b.Kind())
		}
	}
}

// guards invariant 1: what is returned is what is stored.
func TestAppendReturnsTheEntriesThatAreStored(t *testing.T) {
	s := openStore(t, Options{})
	l := talk(t, s)
	got := add(t, l, prompt("t_x", "q"), &ToolStarted{Turn: "t_x", Step: 1, Call: "c"})
	stored, err := s.Entries(t.Context(), l.Session(), got[0].Seq-1, 0)
	if err != nil || len(stored) != len(got) {
		t.Fatal(len(stored), err)
	}
	for i := range got {
		if g, w := fmt.Sprintf("%v %v %x %v", got[i].Seq, got[i].At, got[i].Hash, got[i].Body.Kind()),
			fmt.Sprintf("%v %v %x %v", stored[i].Seq, stored[i].At, stored[i].Hash, stored[i].Body.Kind()); g != w {
			t.Errorf("returned %s, stored %s", g, w)
		}
	}
	if l.Seq() != got[1].Seq {
		t.Errorf("Seq is %d, want %d", l.Seq(), got[1].Seq)
	}
	some, err := s.Entries(t.Context(), l.Session(), 3, 2)
	if err != nil || len(some) != 2 || some[0].Seq != 4 {
		t.Errorf("after 3, limit 2: %v, %v", kinds(some), err)
	}
}

func TestAClientIdIsUsedOnce(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	p := prompt("t_1", "q")
	p.ClientID = "mine"
	add(t, l, p, &TurnEnded{Turn: "t_1", Outcome: TurnCompleted})
	again := prompt("t_2", "q")
	again.ClientID = "mine"
	_, err := l.Append(t.Context(), again)
	wantErr(t, err, ErrRepeated)
	for id, want := range map[string]TurnID{"mine": "t_1", "other": "", "": ""} {
		if got, ok, err := s.TurnByClientID(t.Context(), l.Session(), id); got != want || ok != (want != "") || err != nil {
			t.Errorf("%q: %s, %v, %v", id, got, ok, err)
		}
	}
}

func TestATurnIsFoundByItsId(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	first, _ := exchange(t, l, "q", "a")
	second, _ := start(t, l, "q2")
	i, err := s.Turn(t.Context(), first)
	if err != nil || i.Session != l.Session() || i.Started.PromptText() != "q" || i.Ended.Outcome != TurnCompleted || i.Newest || i.EndedSeq == 0 {
		t.Errorf("%+v, %v", i, err)
	}
	i, err = s.Turn(t.Context(), second)
	if err != nil || i.Ended != nil || !i.Newest {
		t.Errorf("%+v, %v", i, err)
	}
	_, err = s.Turn(t.Context(), "t_none")
	wantErr(t, err, ErrNoTurn)
}

func TestUnknownSessionsHaveANamedError(t *testing.T) {
	s := openStore(t, Options{})
	_, e1 := s.Log(t.Context(), "s_none")
	_, e2 := s.Session(t.Context(), "s_none")
	_, e3 := s.Entries(t.Context(), "s_none", 0, 0)
	_, e4 := s.Requests(t.Context(), "s_none")
	_, _, e5 := s.TurnByClientID(t.Context(), "s_none", "x")
	for i, err := range []error{e1, e2, e3, e4, e5, s.Rename(t.Context(), "s_none", "x")} {
		if !errors.Is(err, ErrNoSession) || !strings.Contains(err.Error(), "s_none") {
			t.Errorf("%d: %v", i, err)
		}
	}
	_, err := s.Input(t.Context(), "r_none")
	wantErr(t, err, ErrNoRequest)
	_, _, err = s.Body(t.Context(), "r_none")
	wantErr(t, err, ErrNoRequest)
}

func TestSessionsAreListedNewestFirstInPages(t *testing.T) {
	s := openStore(t, Options{})
	var logs []*Log
	for i := range 7 {
		l, err := s.NewSession(t.Context(), SessionOpened{Workspace: fmt.Sprintf("/w%d", i%2)})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
		exchange(t, l, fmt.Sprintf("\n  question 100%% number_%d\nmore", i), "a")
	}
	start(t, logs[2], "the newest now")
	tamper(t, s, `UPDATE session SET updated = updated + sid + 100 * (sid = 3)`) // no two in one millisecond
	var got []string
	q := SessionQuery{Limit: 3}
	for pages := 1; ; pages++ {
		list, next, err := s.Sessions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			got = append(got, fmt.Sprintf("%s %d %s", i.Title, i.Turns, i.LastOutcome))
		}
		if q.Cursor = next; next == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	want := []string{"question 100% number_2 2 "}
	for _, i := range []int{6, 5, 4, 3, 1, 0} {
		want = append(want, fmt.Sprintf("question 100%% number_%d 1 completed", i))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	for _, tt := range []struct {
		q    SessionQuery
		want int
	}{{SessionQuery{Workspace: "/w1"}, 3}, {SessionQuery{Query: "NUMBER_6"}, 1}, {SessionQuery{Query: "numberx6"}, 0}, {SessionQuery{Query: "100%"}, 7}} {
		if list, _, err := s.Sessions(t.Context(), tt.q); len(list) != tt.want || err != nil {
			t.Errorf("%+v: %d, %v", tt.q, len(list), err)
		}
	}
	if _, _, err := s.Sessions(t.Context(), SessionQuery{Cursor: "x"}); err == nil {
		t.Error("a cursor of nobody's was taken")
	}
	if err := s.Rename(t.Context(), logs[0].Session(), "named"); err != nil {
		t.Fatal(err)
	}
	if i, err := s.Session(t.Context(), logs[0].Session()); i.Title != "named" || err != nil {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestATitleIsTheFirstLineAndShort(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "\n \n": "", "one\ntwo": "one", " \n\t two ": "two",
		strings.Repeat("ü", 80): strings.Repeat("ü", 80), strings.Repeat("ü", 81): strings.Repeat("ü", 79) + "…",
	} {
		if got := titleOf(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
