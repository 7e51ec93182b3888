package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checked is a turn whose answer waits for its checks; it returns the answer and its seq.
func checked(t *testing.T, l *Log, question string, parts ...Part) (*Answer, int64) {
	t.Helper()
	turn, sent := start(t, l, question)
	a := &Answer{Turn: turn, Step: 1, Request: sent.Request, State: Complete, Parts: parts}
	e, err := l.Conclude(t.Context(), Conclusion{Ended: RequestEnded{Request: sent.Request, Outcome: "complete"}, Checked: true, Answer: a})
	if err != nil {
		t.Fatal(err)
	}
	return a, e[1].Seq
}

func verdictOn(a *Answer, seq int64, check string, word VerdictWord) *Verdict {
	return &Verdict{Turn: a.Turn, Step: a.Step, Answer: seq, AnswerSHA256: a.SHA256(), Check: check, CheckSHA256: "sum of " + check, Verdict: word}
}

func due(names ...string) (out []CheckRef) {
	for _, n := range names {
		out = append(out, CheckRef{n, "sum of " + n})
	}
	return out
}

// guards K1, K2, K4
func TestAnAnswerIsAdmittedWhenAllItsVerdictsPass(t *testing.T) {
	a := &Answer{Turn: "t_1", Step: 1, Parts: []Part{text("x")}}
	on := func(check string, word VerdictWord) *Verdict { return verdictOn(a, 7, check, word) }
	but := func(v *Verdict, change func(*Verdict)) *Verdict { change(v); return v }
	for name, tt := range map[string]struct {
		due      []CheckRef
		verdicts []*Verdict
		want     string
	}{
		"all pass":                    {due("a", "b"), []*Verdict{on("b", VerdictPass), on("a", VerdictPass)}, "admitted"},
		"one rejects":                 {due("a", "b"), []*Verdict{on("a", VerdictPass), on("b", VerdictReject)}, Rejected},
		"one fails":                   {due("a", "b"), []*Verdict{on("a", VerdictError), on("b", VerdictPass)}, Unverified},
		"one rejects, one fails":      {due("a", "b"), []*Verdict{on("a", VerdictReject), on("b", VerdictError)}, Rejected},
		"one fails, one rejects":      {due("a", "b"), []*Verdict{on("a", VerdictError), on("b", VerdictReject)}, Rejected},
		"one is missing":              {due("a", "b"), []*Verdict{on("a", VerdictPass)}, Unverified},
		"all are missing":             {due("a"), nil, Unverified},
		"the last one counts":         {due("a"), []*Verdict{on("a", VerdictError), on("a", VerdictPass)}, "admitted"},
		"of a check that is gone":     {due("a"), []*Verdict{on("gone", VerdictReject), on("a", VerdictPass)}, Rejected},
		"failed, of one that is gone": {due("a"), []*Verdict{on("gone", VerdictError), on("a", VerdictPass)}, Unverified},
		"of the check as it was": {due("a"), []*Verdict{but(on("a", VerdictPass), func(v *Verdict) { v.CheckSHA256 = "old" })},
			Unverified},
		"rejected by the check as it was": {due("a"), []*Verdict{but(on("a", VerdictReject), func(v *Verdict) { v.CheckSHA256 = "old" }), on("a", VerdictPass)},
			"admitted"},
		"of another answer":         {due("a"), []*Verdict{but(on("a", VerdictPass), func(v *Verdict) { v.AnswerSHA256 = "x" })}, Unverified},
		"of another turn":           {due("a"), []*Verdict{but(on("a", VerdictPass), func(v *Verdict) { v.Turn = "t_2" })}, Unverified},
		"of another entry":          {due("a"), []*Verdict{but(on("a", VerdictPass), func(v *Verdict) { v.Answer = 8 })}, Unverified},
		"rejected, another answer":  {due("a"), []*Verdict{but(on("a", VerdictReject), func(v *Verdict) { v.AnswerSHA256 = "x" }), on("a", VerdictPass)}, "admitted"},
		"a word nobody knows":       {due("a"), []*Verdict{on("a", "perhaps")}, Unverified},
		"reject, then pass of same": {due("a"), []*Verdict{on("a", VerdictReject), on("a", VerdictPass)}, "admitted"},
	} {
		got := Decide(a, 7, tt.due, tt.verdicts)
		said := got.Withheld
		if got.Admitted {
			said += "admitted"
		}
		if said != tt.want || got.By != "checks" || got.Turn != "t_1" || got.Answer != 7 || !slices.Equal(got.Checks, tt.due) {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}

// guards K4
func TestTheHashOfAnAnswerIsOfAllItSays(t *testing.T) {
	seen := map[string]string{}
	for name, parts := range map[string][]Part{
		"none": nil, "text": {text("ab")}, "text in two": {text("a"), text("b")}, "reasoning": {reasoning("ab")}, "both": {reasoning("a"), text("b")},
		"call": {call("c", "n", "{}")}, "another call": {call("c", "n{", "}")}, "another id": {call("d", "n", "{}")},
		"extra": {{Type: PartText, Text: "ab", Extra: []byte(`{"s":1}`)}},
	} {
		a := &Answer{Parts: parts}
		sum := a.SHA256()
		if other, again := seen[sum]; again {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[sum] = name
		if b := (&Answer{Turn: "t", State: Stopped, Parts: parts}); b.SHA256() != sum {
			t.Errorf("%s: how it ended is in the hash", name)
		}
	}
	// What is read back has the hash of what was said, whatever bytes that was.
	for _, s := range []string{"\xff\xc3(", "ü\u2028", "a\xf0\x9f\x98"} {
		a := &Answer{Parts: []Part{text(s), call("c", s, s)}}
		data, err := encodeBody(a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := decodeBody(KindAnswer, data)
		if err != nil || b.(*Answer).SHA256() != a.SHA256() {
			t.Errorf("%q has another hash when it is read: %v", s, err)
		}
	}
}

// guards K5, M4, invariant 4
func TestALatePassAdmitsOnlyInTheLastTurn(t *testing.T) {
	for _, last := range []bool{true, false} {
		s := openStore(t, Options{})
		l := newSession(t, s)
		exchange(t, l, "first", "one")
		a, seq := checked(t, l, "second", text("two"), call("c", "read", "{}"))
		failed := verdictOn(a, seq, "a", VerdictError)
		if _, _, _, err := l.Judge(t.Context(), a.Turn, seq, due("a"), nil); !errors.Is(err, ErrTurnOpen) {
			t.Errorf("while the turn runs: %v", err)
		}
		add(t, l, failed, Decide(a, seq, due("a"), []*Verdict{failed}), &TurnEnded{Turn: a.Turn, Outcome: TurnFailed, Cause: Unverified})
		receipt := &ToolSettled{Turn: a.Turn, Step: 1, Call: "c", Name: "read", State: ToolNotStarted, Cause: CauseWithheld, Output: "[not run]"}

		if got, admitted, appended, err := l.Judge(t.Context(), a.Turn, seq, due("a"), []*ToolSettled{receipt}); err != nil || admitted || appended != nil || got.Withheld != Unverified {
			t.Errorf("with nothing new: %+v, %v, %s, %v", got, admitted, kinds(appended), err)
		}
		before := ""
		if !last {
			_, sent := exchange(t, l, "third", "three")
			before = string(input(t, s, sent.Request).Body)
		}
		add(t, l, verdictOn(a, seq, "a", VerdictPass))
		got, admitted, appended, err := l.Judge(t.Context(), a.Turn, seq, due("a"), []*ToolSettled{receipt})
		want := map[bool]string{true: "admission tool.settled", false: ""}[last]
		if err != nil || !got.Admitted || admitted != last || kinds(appended) != want {
			t.Errorf("last %v: %+v, %v, %s, %v", last, got, admitted, kinds(appended), err)
		}
		if _, again, appended, err := l.Judge(t.Context(), a.Turn, seq, due("a"), []*ToolSettled{receipt}); err != nil || again != last || appended != nil {
			t.Errorf("decided again: %v, %s, %v", again, kinds(appended), err)
		}
		_, sent := start(t, l, "next")
		in := input(t, s, sent.Request)
		if held := strings.Contains(string(in.Body), `"content":"two"`); held != last || !in.Verified {
			t.Errorf("last %v: the input holds the answer: %v: %s", last, held, in.Body)
		}
		if before != "" && !strings.HasPrefix(string(in.Body), strings.TrimSuffix(before, `],"stream":true}`)) {
			t.Errorf("the earlier input has changed:\n%s\n%s", before, in.Body)
		}
		wantClean(t, s)
	}
}

// guards K4
func TestVerifyFindsAnAdmissionThatNoVerdictCarries(t *testing.T) {
	for name, tt := range map[string]struct {
		bodies func(a *Answer, seq int64) []Body
		want   string
	}{
		"in order": {func(a *Answer, seq int64) []Body {
			v := verdictOn(a, seq, "a", VerdictPass)
			return []Body{v, Decide(a, seq, due("a"), []*Verdict{v})}
		}, ""},
		"no verdict": {func(a *Answer, seq int64) []Body {
			return []Body{&Admission{Turn: a.Turn, Step: 1, Answer: seq, Admitted: true, By: "checks", Checks: due("a")}}
		}, "is not what the verdicts about it come to"},
		"no check": {func(a *Answer, seq int64) []Body {
			return []Body{&Admission{Turn: a.Turn, Step: 1, Answer: seq, Admitted: true, By: "checks"}}
		}, "is not what the verdicts about it come to"},
		"a reject": {func(a *Answer, seq int64) []Body {
			return []Body{verdictOn(a, seq, "a", VerdictReject), &Admission{Turn: a.Turn, Step: 1, Answer: seq, Admitted: true, By: "checks", Checks: due("a")}}
		}, "is not what the verdicts about it come to"},
		"another check": {func(a *Answer, seq int64) []Body {
			return []Body{verdictOn(a, seq, "b", VerdictPass), &Admission{Turn: a.Turn, Step: 1, Answer: seq, Admitted: true, By: "checks", Checks: due("a")}}
		}, "is not what the verdicts about it come to"},
		"withheld without a reason": {func(a *Answer, seq int64) []Body {
			return []Body{verdictOn(a, seq, "a", VerdictPass), &Admission{Turn: a.Turn, Step: 1, Answer: seq, By: "checks", Checks: due("a"), Withheld: Rejected}}
		}, "is not what the verdicts about it come to"},
		"a verdict on other words": {func(a *Answer, seq int64) []Body {
			return []Body{verdictOn(&Answer{Turn: a.Turn, Step: 1, Parts: []Part{text("other")}}, seq, "a", VerdictPass)}
		}, `the verdict of "a" is not about the answer`},
		"a verdict on no answer": {func(a *Answer, seq int64) []Body {
			return []Body{verdictOn(a, 1, "a", VerdictPass)}
		}, `the verdict of "a" is about entry 1, which is no answer`},
	} {
		s := openStore(t, Options{})
		l := newSession(t, s)
		a, seq := checked(t, l, "q", text("x"))
		add(t, l, append(tt.bodies(a, seq), &TurnEnded{Turn: a.Turn, Outcome: TurnFailed})...)
		got := fmt.Sprint(verify(t, s).Problems)
		if tt.want == "" && got != "[]" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", name, got, tt.want)
		}
	}
}

// guards C2, K1: a missing verdict withholds.
func TestAnAnswerWhoseChecksWereCutByAKillIsNotAdmitted(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	a, seq := checked(t, l, "q", text("unjudged"), call("c", "write", "{}"))
	add(t, l, verdictOn(a, seq, "a", VerdictPass))
	got, err := l.Repair(t.Context(), nil)
	if err != nil || kinds(got) != "turn.ended" {
		t.Fatalf("%s, %v", kinds(got), err)
	}
	_, sent := start(t, l, "next")
	if in := input(t, s, sent.Request); strings.Contains(string(in.Body), "unjudged") || in.Info.N != 2 {
		t.Errorf("%s", in.Body)
	}
	wantClean(t, s)
}

// guards K2
func TestATranscriptShowsWithheldAnswersWithEachVerdict(t *testing.T) {
	a := &Answer{Turn: "t_1", Step: 1, State: Complete, Parts: []Part{text("The key is here."), call("c", "run", "{}")}}
	reject := verdictOn(a, 2, "secrets", VerdictReject)
	reject.Reason = "a *key* is in the text"
	pass := verdictOn(a, 2, "style", VerdictPass)
	for _, tt := range []struct {
		rest []Body
		want []string
	}{
		{[]Body{reject, pass, Decide(a, 2, due("lint", "secrets", "style"), []*Verdict{reject, pass}), &TurnEnded{Turn: "t_1", Outcome: TurnFailed}},
			[]string{"**Withheld, not part of the model input**: a check rejects it", "> The key is here.", "+ Check `secrets` rejects it: a \\*key\\* is in the text",
				"+ Check `style` passes", "+ Check `lint` gave no verdict", "+ `run`: not run, the answer is withheld"}},
		{[]Body{pass, Decide(a, 2, due("style"), []*Verdict{pass})}, []string{"\nThe key is here.", "+ Check `style` passes"}},
		{[]Body{pass}, []string{"**Not part of the model input yet**: its checks are running", "+ Check `style` passes"}},
		{[]Body{&TurnEnded{Turn: "t_1", Outcome: TurnAbandoned}}, []string{"**Withheld, not part of the model input**: not verified", "> The key is here."}},
	} {
		log := []Entry{{Seq: 1, Body: prompt("t_1", "q")}, {Seq: 2, Body: a}}
		for i, b := range tt.rest {
			log = append(log, Entry{Seq: int64(3 + i), Body: b})
		}
		var out strings.Builder
		if _, err := Markdown(&out, SessionInfo{ID: "s_1"}, log); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
}
