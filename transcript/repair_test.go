package transcript

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// guards C1, C2, P4
func TestWhatWasJournalledIsInTheRepairedAnswer(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	for _, d := range []Part{reasoning("let "), reasoning("me"), text("Hal"), text("f a wo"), reasoning("hm"), text("r")} {
		if err := l.Journal(sent.Request, turn, 1, d.Type, d.Text); err != nil {
			t.Fatal(err)
		}
	}
	// kill -9: another process opens the file
	other := openAt(t, s.Path(), Options{})
	l = reopen(t, other, l.Session())
	got, err := l.Repair(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "request.ended answer admission turn.ended"; kinds(got) != want {
		t.Fatalf("appended %s, want %s", kinds(got), want)
	}
	a := got[1].Body.(*Answer)
	if s := fmt.Sprint(a.Parts); a.State != Broken || a.Cause != CauseDaemonDied || !strings.Contains(s, "{reasoning let me") ||
		!strings.Contains(s, "{text Half a wo ") || len(a.Parts) != 4 {
		t.Errorf("the answer is %+v", a)
	}
	if adm := got[2].Body.(*Admission); adm.Admitted || adm.Answer != got[1].Seq || adm.By != "rule" {
		t.Errorf("the admission is %+v", adm)
	}
	if e := got[3].Body.(*TurnEnded); e.Outcome != TurnAbandoned || e.Silent {
		t.Errorf("the turn ended %+v", e)
	}
	if rows := count(t, other, "journal"); rows != 0 {
		t.Errorf("%d rows are left in the journal", rows)
	}
	again, err := l.Repair(t.Context(), nil)
	if err != nil || again != nil {
		t.Errorf("a second repair appended %s, %v", kinds(again), err)
	}
	if r := wantClean(t, other); r.Open != nil {
		t.Errorf("still open: %v", r.Open)
	}
}

func count(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.reads.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATurnThatSaidNothingIsRepairedAsSilent(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	start(t, l, "q")
	got, err := l.Repair(t.Context(), nil)
	if err != nil || kinds(got) != "request.ended turn.ended" || !got[1].Body.(*TurnEnded).Silent {
		t.Errorf("%s, %v", kinds(got), err)
	}
	wantClean(t, s)
}

func TestATurnThatNeverSentARequestIsRepaired(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	add(t, l, prompt("t_1", "q"))
	got, err := l.Repair(t.Context(), nil)
	if err != nil || kinds(got) != "turn.ended" {
		t.Errorf("%s, %v", kinds(got), err)
	}
	wantClean(t, s)
}

// guards C3, P2
func TestRepairSettlesCallsByEvidence(t *testing.T) {
	started := func(readOnly bool) *ToolStarted {
		return &ToolStarted{Turn: "t_1", Step: 1, Call: "c", Name: "tool", ReadOnly: readOnly}
	}
	changed := func(path, before, after string, buffer bool) *FileChanged {
		return &FileChanged{Turn: "t_1", Step: 1, Call: "c", Path: path, Before: before, After: after, Buffer: buffer}
	}
	disk := func(files map[string]string) Evidence {
		return func(path string) (string, bool, error) {
			if files[path] == "error" {
				return "", false, errors.New("cannot read")
			}
			sha, ok := files[path]
			return sha, ok, nil
		}
	}
	for name, tt := range map[string]struct {
		log  []Body
		disk map[string]string
		want ToolState
	}{
		"never started":                   {nil, nil, ToolNotStarted},
		"read only":                       {[]Body{started(true)}, nil, ToolUnknown},
		"a command":                       {[]Body{started(false)}, nil, ToolUnknown},
		"hash after on disk":              {[]Body{started(false), changed("a", "1", "2", false)}, map[string]string{"a": "2"}, ToolDone},
		"hash before on disk":             {[]Body{started(false), changed("a", "1", "2", false)}, map[string]string{"a": "1"}, ToolNotStarted},
		"neither":                         {[]Body{started(false), changed("a", "1", "2", false)}, map[string]string{"a": "3"}, ToolUnknown},
		"gone":                            {[]Body{started(false), changed("a", "1", "2", false)}, nil, ToolUnknown},
		"to be made, not there":           {[]Body{started(false), changed("a", "", "2", false)}, nil, ToolNotStarted},
		"to be made, there":               {[]Body{started(false), changed("a", "", "2", false)}, map[string]string{"a": "2"}, ToolDone},
		"to be deleted, gone":             {[]Body{started(false), changed("a", "1", "", false)}, nil, ToolDone},
		"to be deleted, there":            {[]Body{started(false), changed("a", "1", "", false)}, map[string]string{"a": "1"}, ToolNotStarted},
		"cannot be read":                  {[]Body{started(false), changed("a", "1", "2", false)}, map[string]string{"a": "error"}, ToolUnknown},
		"one of two":                      {[]Body{started(false), changed("a", "1", "2", false), changed("b", "1", "2", false)}, map[string]string{"a": "2", "b": "1"}, ToolUnknown},
		"both of two":                     {[]Body{started(false), changed("a", "1", "2", false), changed("b", "1", "2", false)}, map[string]string{"a": "2", "b": "2"}, ToolDone},
		"twice the same file, first only": {[]Body{started(false), changed("a", "1", "2", false), changed("a", "2", "3", false)}, map[string]string{"a": "2"}, ToolUnknown},
		"twice the same file, both":       {[]Body{started(false), changed("a", "1", "2", false), changed("a", "2", "3", false)}, map[string]string{"a": "3"}, ToolDone},
		"in an editor, disk as it was":    {[]Body{started(false), changed("a", "1", "2", true)}, map[string]string{"a": "1"}, ToolUnknown},
		"in an editor, saved since":       {[]Body{started(false), changed("a", "1", "2", true)}, map[string]string{"a": "2"}, ToolDone},
		"changed to what it was, on disk": {[]Body{started(false), changed("a", "1", "1", false)}, map[string]string{"a": "1"}, ToolDone},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{})
			l := newSession(t, s)
			sent := send(t, l, sendOf("t_1", 1, prompt("t_1", "q")))
			conclude(t, l, "t_1", 1, sent.Request, Complete, "", text("x"), call("c", "tool", `{}`), call("d", "tool", `{}`))
			add(t, l, &ToolSettled{Turn: "t_1", Step: 1, Call: "d", Name: "tool", State: ToolDone, Output: "real"})
			add(t, l, tt.log...)
			got, err := l.Repair(t.Context(), disk(tt.disk))
			if err != nil {
				t.Fatal(err)
			}
			if kinds(got) != "tool.settled turn.ended" {
				t.Fatalf("appended %s", kinds(got))
			}
			r := got[0].Body.(*ToolSettled)
			if r.State != tt.want || r.Cause != CauseDaemonDied || r.Call != "c" || r.Output == "" {
				t.Errorf("the receipt is %+v, want %s", r, tt.want)
			}
			// The next input is legal: both results behind the answer, in the order of the calls.
			_, next := start(t, l, "go on")
			if in := input(t, s, next.Request); in.Info.N != 5 || !in.Verified {
				t.Errorf("%d messages: %s", in.Info.N, in.Body)
			}
		})
	}
}

// guards C3, P2: of a call that has changed some of its files and not others, each file is told by evidence.
func TestRepairTellsOfEachFileOfACall(t *testing.T) {
	c := openCall{started: &ToolStarted{}, changes: []*FileChanged{
		{Path: "a", Before: "1", After: "2"}, {Path: "b", Before: "1"}, {Path: "c", After: "2"}, {Path: "d", Before: "1", After: "2"}, {Path: "e", Before: "1", After: "2", Buffer: true},
	}}
	disk := map[string]string{"a": "2", "b": "1", "d": "3", "e": "1"}
	state, said := c.settle(func(path string) (string, bool, error) { return disk[path], disk[path] != "", nil })
	want := "Partly done: fermata ended while this call ran. As it was to be: a. Unchanged: b, c. Not known: d, e."
	if state != ToolUnknown || said != want {
		t.Errorf("%s: %s", state, said)
	}
}

// guards S5
func TestACutAnswerHoldsNoCall(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	for _, state := range []AnswerState{Stopped, Broken} {
		_, err := l.Conclude(t.Context(), Conclusion{Ended: RequestEnded{Request: sent.Request, Outcome: string(state)},
			Answer: &Answer{Turn: turn, Step: 1, Request: sent.Request, State: state, Parts: []Part{call("c", "x", "{}")}}})
		if err == nil {
			t.Errorf("a %s answer with a call was recorded", state)
		}
	}
}

// guards K1
func TestAnAnswerWithChecksIsNotAdmittedByRule(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	e, err := l.Conclude(t.Context(), Conclusion{Ended: RequestEnded{Request: sent.Request, Outcome: "complete"}, Checked: true,
		Answer:    &Answer{Turn: turn, Step: 1, Request: sent.Request, State: Complete, Parts: []Part{text("x")}},
		TurnEnded: &TurnEnded{Turn: turn, Outcome: TurnCompleted}})
	if err != nil || kinds(e) != "request.ended answer turn.ended" {
		t.Errorf("%s, %v", kinds(e), err)
	}
}
