package transcript

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func fork(t testing.TB, s *Store, parent SessionID, after TurnID) *Log {
	t.Helper()
	l, err := s.Fork(t.Context(), parent, after)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func turnsOf(e []Entry) (ids []TurnID) {
	for _, e := range e {
		if b, ok := e.Body.(*TurnStarted); ok {
			ids = append(ids, b.Turn)
		}
	}
	return ids
}

// changes appends file changes and an output, each with blobs, in a turn of its own.
func changes(t testing.TB, l *Log, content string) {
	t.Helper()
	before, err := l.PutBlob(t.Context(), []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	turn, sent := start(t, l, "change it")
	conclude(t, l, turn, 1, sent.Request, Complete, "", call("c", "edit", `{}`))
	add(t, l, &ToolStarted{Turn: turn, Step: 1, Call: "c", Name: "edit"},
		&FileChanged{Turn: turn, Step: 1, Call: "c", Path: "a.go", Before: before},
		&ToolSettled{Turn: turn, Step: 1, Call: "c", Name: "edit", State: ToolDone, Output: "ok", Full: before},
		&TurnEnded{Turn: turn, Outcome: TurnCompleted})
}

// guards M4, P3: the fork's first input begins with the parent's messages, byte for byte, and says why it has an epoch.
func TestAForkGoesOnWithTheVeryBytesOfItsParent(t *testing.T) {
	s := openStore(t, Options{})
	parent := talk(t, s)
	changes(t, parent, "package a")
	all := entries(t, s, parent.Session())
	turns := turnsOf(all)
	for i, after := range append(slices.Clone(turns), "") {
		l := fork(t, s, parent.Session(), after)
		next := NewTurnID()
		request := sendOf(next, 1, prompt(next, "and now this"))
		request.Model = "n" // as the parent's last epoch
		got := input(t, s, send(t, l, request).Request)

		// The same question in the parent, where that is what the fork's beginning is.
		if after == "" || i == len(turns)-1 {
			again := NewTurnID()
			want := sendOf(again, 1, prompt(again, "and now this"))
			want.Model = "n"
			sent := send(t, parent, want)
			if body := readBody(t, s, sent.Request); !bytes.Equal(got.Body, body) {
				t.Errorf("the fork is sent\n%s\nthe parent\n%s", got.Body, body)
			}
			conclude(t, parent, again, 1, sent.Request, Stopped, TurnStopped)
			parent = fork(t, s, parent.Session(), turnsOf(entries(t, s, parent.Session()))[len(turns)-1]) // as it was before
		}

		forked := entries(t, s, l.Session())
		opened := forked[0].Body.(*SessionOpened)
		if opened.Parent == "" || opened.ParentSeq == 0 || opened.Copied < 2 {
			t.Errorf("session.opened is %+v", opened)
		}
		for _, e := range forked {
			if b, ok := e.Body.(*EpochOpened); ok && (b.Reason != ReasonForked || e.Seq != opened.Copied+2) {
				t.Errorf("entry %d opens an epoch: %s", e.Seq, b.Reason)
			}
			if r, ok := e.Body.(*RequestSent); ok && r.Turn != next {
				t.Errorf("entry %d is a request of the parent", e.Seq)
			}
		}
		if n := len(turnsOf(forked)); i < len(turns) && n != i+2 {
			t.Errorf("after turn %d: %d turns", i+1, n)
		}
	}
	wantClean(t, s)
}

func TestAForkIsCompleteWithoutItsParent(t *testing.T) {
	s := openStore(t, Options{})
	parent := talk(t, s)
	changes(t, parent, "package a")
	l := fork(t, s, parent.Session(), "")
	render := func(id SessionID) string {
		info, err := s.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := Markdown(&b, info, entries(t, s, id)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := render(l.Session())
	if !strings.Contains(before, "half a wo") || !strings.Contains(before, "Forked from session") {
		t.Errorf("the fork is shown as %s", before)
	}
	if _, err := s.Delete(t.Context(), parent.Session()); err != nil {
		t.Fatal(err)
	}
	if after := render(l.Session()); after != before {
		t.Errorf("it is shown otherwise now: %s", after)
	}
	exchange(t, l, "goes on", "yes")
	second := fork(t, s, l.Session(), "")
	exchange(t, second, "and on", "yes")
	wantClean(t, s)
}

// guards T2: a copied answer keeps which model said it.
func TestAForkKnowsWhichModelSaidWhat(t *testing.T) {
	s := openStore(t, Options{})
	parent := talk(t, s)
	l := fork(t, s, fork(t, s, parent.Session(), "").Session(), "") // of a fork
	got := map[string]bool{}
	for _, e := range entries(t, s, l.Session()) {
		if a, ok := e.Body.(*Answer); ok {
			got[a.From.Model] = true
		}
	}
	if !reflect.DeepEqual(got, map[string]bool{"m": true, "n": true}) {
		t.Errorf("answers are of %v", got)
	}
}

func TestAForkKeepsTheTimesAndTakesNoIdOfItsParent(t *testing.T) {
	s := openStore(t, Options{})
	parent := newSession(t, s)
	turn := NewTurnID()
	started := prompt(turn, "q")
	started.ClientID = "once"
	sent := send(t, parent, sendOf(turn, 1, started))
	add(t, parent, &MessageQueued{Message: "m_1", Prompt: started.Prompt, ClientID: "twice"}, &MessageReturned{Message: "m_1", Cause: "shutdown"},
		&MessageQueued{Message: "m_2", Prompt: started.Prompt}) // starts the next turn, which the fork has not
	conclude(t, parent, turn, 1, sent.Request, Complete, TurnCompleted, text("a"))
	next := NewTurnID()
	second := prompt(next, "q2")
	second.Queued, second.Redirects = []MessageID{"m_2"}, turn
	add(t, parent, second, &TurnEnded{Turn: next, Outcome: TurnStopped, Silent: true})

	l := fork(t, s, parent.Session(), turn)
	copied := entries(t, s, l.Session())
	for _, e := range copied[1:] {
		switch b := e.Body.(type) {
		case *TurnStarted:
			if b.Turn == turn || b.ClientID != "" {
				t.Errorf("%+v", b)
			}
		case *MessageQueued:
			if b.Message == "m_1" || b.Message == "m_2" || b.ClientID != "" {
				t.Errorf("%+v", b)
			}
		}
	}
	if want := "session.opened turn.started message.queued message.returned answer admission turn.ended"; kinds(copied) != want {
		t.Errorf("the fork holds %s", kinds(copied))
	}
	whole := entries(t, s, fork(t, s, parent.Session(), "").Session())
	var ids []TurnID
	for _, e := range whole {
		if b, ok := e.Body.(*TurnStarted); ok {
			if ids = append(ids, b.Turn); len(ids) == 2 && (b.Redirects != ids[0] || len(b.Queued) != 1 || b.Queued[0] == "m_2") {
				t.Errorf("the links of the second turn are not the fork's: %+v", b)
			}
		}
	}
	if all := entries(t, s, parent.Session()); !copied[1].At.Equal(all[1].At) {
		t.Errorf("said at %v, copied as %v", all[1].At, copied[1].At)
	}
	info, err := s.Session(t.Context(), l.Session())
	if err != nil || info.Parent != parent.Session() || info.Title != "q (fork)" || time.Since(info.Updated) > time.Hour {
		t.Errorf("%+v, %v", info, err)
	}
	wantClean(t, s)
}

func TestAForkWhileATurnRunsEndsBeforeIt(t *testing.T) {
	s := openStore(t, Options{})
	parent := newSession(t, s)
	first, _ := exchange(t, parent, "q", "a")
	running, _ := start(t, parent, "q2")
	_, err := s.Fork(t.Context(), parent.Session(), running)
	wantErr(t, err, ErrTurnOpen)
	_, err = s.Fork(t.Context(), parent.Session(), "t_none")
	wantErr(t, err, ErrNoTurn)
	_, err = s.Fork(t.Context(), "s_none", "")
	wantErr(t, err, ErrNoSession)
	other := newSession(t, s)
	_, err = s.Fork(t.Context(), other.Session(), first)
	wantErr(t, err, ErrNoTurn)
	if got := kinds(entries(t, s, fork(t, s, other.Session(), "").Session())); got != "session.opened" {
		t.Errorf("a fork of nothing holds %s", got)
	}
	if n := len(turnsOf(entries(t, s, fork(t, s, parent.Session(), "").Session()))); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// guards C5
func TestAForkOfADamagedSessionHoldsWhatCanBeRead(t *testing.T) {
	s := openStore(t, Options{})
	tamper(t, s, `DROP TRIGGER entry_fixed`)
	damaged := map[SessionID]int64{} // the fork → the entry of its parent
	for seq := int64(1); ; seq++ {
		parent := talk(t, s)
		if seq > parent.Seq() {
			break
		}
		tamper(t, s, fmt.Sprintf(`UPDATE entry SET body = substr(body, 1, 9) WHERE sid = %d AND seq = %d`, parent.sid, seq))
		l := fork(t, s, parent.Session(), "")
		exchange(t, l, "goes on", "yes")
		damaged[l.Session()] = seq
	}
	for _, p := range verify(t, s).Problems {
		if seq, ok := damaged[p.Session]; ok {
			t.Errorf("entry %d damaged: %v", seq, p)
		}
	}
}

// The copier finds ids by their types and answers by the name of the field. A kind of entry that names one of them in
// another way would be copied with a stranger's id in it.
func TestAForkRenamesWhatEveryKindNames(t *testing.T) {
	known := map[string]bool{"Answer": true, "Revert": true, "Undoes": true, "ParentSeq": true, "Copied": true, "Bytes": true, "FirstDelta": true, "Millis": true, "StopMillis": true}
	for _, of := range everyBody {
		k := of.Kind()
		b := newBody(k)
		v := reflect.ValueOf(b).Elem()
		c := copier{turns: map[TurnID]TurnID{"t_old": "t_new"}, messages: map[MessageID]MessageID{"m_old": "m_new"}, seqs: map[int64]int64{7: 9}}
		for f, field := range v.Fields() {
			switch field.Interface().(type) {
			case TurnID:
				field.SetString("t_old")
			case MessageID:
				field.SetString("m_old")
			case []MessageID:
				field.Set(reflect.ValueOf([]MessageID{"m_old"}))
			case int64:
				if !known[f.Name] {
					t.Errorf("%s.%s: is it the seq of an entry? Then rename has to know it; else name it here", k, f.Name)
				}
				if f.Name == "Answer" || f.Name == "Revert" || f.Name == "Undoes" {
					field.SetInt(7)
				}
			}
		}
		if !c.rename(v) {
			t.Errorf("%s was not copied", k)
		}
		data, err := encodeBody(b)
		if err != nil || strings.Contains(string(data), "_old") || strings.Contains(string(data), `":7`) {
			t.Errorf("%s became %s, %v", k, data, err)
		}
	}
}

// guards K4: verdicts are about the copy of the answer that they judged.
func TestAForkKeepsWhatChecksDecided(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	for _, word := range []VerdictWord{VerdictPass, VerdictReject} {
		turn, sent := start(t, l, "q")
		e, err := l.Conclude(t.Context(), Conclusion{Ended: RequestEnded{Request: sent.Request, Outcome: "complete"}, Checked: true,
			Answer: &Answer{Turn: turn, Step: 1, Request: sent.Request, State: Complete, Parts: []Part{text("said " + string(word))}}})
		if err != nil {
			t.Fatal(err)
		}
		a, seq := e[1].Body.(*Answer), e[1].Seq
		v := &Verdict{Turn: turn, Step: 1, Answer: seq, AnswerSHA256: a.SHA256(), Check: "c", CheckSHA256: "d", Verdict: word}
		add(t, l, v, Decide(a, seq, []CheckRef{{"c", "d"}}, []*Verdict{v}), &TurnEnded{Turn: turn, Outcome: TurnCompleted})
	}
	forked := fork(t, s, l.Session(), "")
	_, sent := exchange(t, forked, "and now", "yes")
	if body := string(readBody(t, s, sent.Request)); !strings.Contains(body, "said pass") || strings.Contains(body, "said reject") {
		t.Errorf("the fork's model was sent %s", body)
	}
	wantClean(t, s)
}
