package transcript

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// guards P3, M2, M3, M7
func TestInputShowsTheBytesThatWereSent(t *testing.T) {
	s := openStore(t, Options{})
	l := talk(t, s)
	requests, err := s.Requests(t.Context(), l.Session())
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) != 5 {
		t.Fatalf("%d requests, want 5", len(requests))
	}
	for _, r := range requests {
		in := input(t, s, r.ID)
		if !in.Verified || in.SHA256 != r.SHA256 || int64(len(in.Body)) != r.Bytes || shaOf(in.Body) != r.SHA256 {
			t.Errorf("%s: verified %v, %d bytes of %d", r.ID, in.Verified, len(in.Body), r.Bytes)
		}
		if got := readBody(t, s, r.ID); !bytes.Equal(got, in.Body) {
			t.Errorf("%s: Body and Input differ", r.ID)
		}
		if in.Info.ID != r.ID || in.Info.Outcome != r.Outcome || in.Info.Model != r.Model || r.Model == "" {
			t.Errorf("%s: info is %+v", r.ID, in.Info)
		}
		wantParts(t, in)
	}
	wantClean(t, s)
}

// wantParts checks that the parts cover the body but for the commas between messages.
func wantParts(t *testing.T, in *Input) {
	t.Helper()
	var at int64
	for i, p := range in.Parts {
		if i > 1 && i < len(in.Parts)-1 {
			if in.Body[at] != ',' {
				t.Errorf("no comma before part %d", i)
			}
			at++
		}
		if p.Offset != at {
			t.Errorf("part %d begins at %d, want %d", i, p.Offset, at)
		}
		if (p.Kind == "message") != (p.Source > 0 && p.Role != "" && p.Turn != "") {
			t.Errorf("part %d: %+v", i, p)
		}
		at += p.Length
	}
	if at != int64(len(in.Body)) {
		t.Errorf("parts cover %d bytes of %d", at, len(in.Body))
	}
}

// guards M4
func TestInputsOfAnEpochOnlyGrow(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	var bodies [][]byte
	for range 5 {
		_, sent := exchange(t, l, prose(200), prose(300))
		bodies = append(bodies, readBody(t, s, sent.Request))
	}
	tail := len(sendOf("t", 1, nil).Tail)
	for i := 1; i < len(bodies); i++ {
		was := bodies[i-1][:len(bodies[i-1])-tail]
		if !bytes.HasPrefix(bodies[i], was) {
			t.Errorf("request %d does not extend request %d", i+1, i)
		}
	}
	r, _ := s.Requests(t.Context(), l.Session())
	in := input(t, s, r[4].ID)
	if in.Previous != r[3].ID || in.SharedPrefix != int64(len(bodies[3])-tail) {
		t.Errorf("previous %s, shared %d; want %s, %d", in.Previous, in.SharedPrefix, r[3].ID, len(bodies[3])-tail)
	}
}

// guards M4, M5
func TestANewEpochHasAReason(t *testing.T) {
	base := sendOf("", 1, nil)
	for _, tt := range []struct {
		want   string
		change func(*Send)
	}{
		{"", func(*Send) {}},
		{ReasonModel, func(s *Send) { s.Model = "other" }},
		{ReasonModel, func(s *Send) { s.Provider = "other" }},
		{ReasonModel, func(s *Send) { s.Enc = plain{"2"} }},
		{ReasonTools, func(s *Send) { s.Head, s.Tools = []byte(`{"x":1,"messages":[`), "t2" }},
		{ReasonInstructions, func(s *Send) { s.Head, s.Instructions = []byte(`{"y":1,"messages":[`), "i2" }},
		{ReasonSettings, func(s *Send) { s.Tail = []byte(`],"temperature":0}`) }},
	} {
		for _, cold := range []bool{false, true} {
			s := openStore(t, Options{})
			l := newSession(t, s)
			_, first := exchange(t, l, "a", "b")
			if cold {
				l = reopen(t, s, l.Session())
			}
			next := base
			next.Turn = NewTurnID()
			next.Started = prompt(next.Turn, "c")
			tt.change(&next)
			sent := send(t, l, next)
			got := ""
			for _, e := range sent.Entries {
				if b, ok := e.Body.(*EpochOpened); ok {
					got = b.Reason
				}
			}
			if got != tt.want {
				t.Errorf("cold %v: reason %q, want %q", cold, got, tt.want)
			}
			in := input(t, s, sent.Request)
			if in.Info.N != 3 || !in.Verified || in.Previous != first.Request {
				t.Errorf("cold %v, %s: %d messages, verified %v", cold, tt.want, in.Info.N, in.Verified)
			}
			want := int64(common(in.Body, readBody(t, s, first.Request)))
			if in.SharedPrefix != want {
				t.Errorf("cold %v, %s: shared prefix %d, want %d", cold, tt.want, in.SharedPrefix, want)
			}
			wantClean(t, s)
		}
	}
}

// guards M1: the same log gives the same input, whoever folds it and from where.
func TestAColdLogSendsWhatAWarmOneWould(t *testing.T) {
	steps := func(cold bool) (bodies [][]byte) {
		s := openStore(t, Options{})
		l := newSession(t, s)
		again := func() {
			if cold {
				l = reopen(t, s, l.Session())
			}
		}
		keep := func(sent Sent) RequestID {
			again()
			bodies = append(bodies, readBody(t, s, sent.Request))
			return sent.Request
		}
		turn := TurnID("t_1")
		r := keep(send(t, l, sendOf(turn, 1, prompt(turn, prose(100)))))
		conclude(t, l, turn, 1, r, Broken, "", text("no"))
		again()
		try := sendOf(turn, 1, nil)
		try.Try = 2
		r = keep(send(t, l, try))
		conclude(t, l, turn, 1, r, Complete, "", text("yes"), call("c", "read", `{}`))
		add(t, l, &ToolSettled{Turn: turn, Step: 1, Call: "c", State: ToolDone, Output: prose(90)})
		again()
		r = keep(send(t, l, sendOf(turn, 2, nil)))
		conclude(t, l, turn, 2, r, Stopped, TurnStopped, text("half"))
		turn = "t_2"
		try = sendOf(turn, 1, prompt(turn, "another model"))
		try.Model = "n"
		r = keep(send(t, l, try))
		conclude(t, l, turn, 1, r, Complete, "", text("yes"), call("c", "read", `{}`))
		add(t, l, &ToolSettled{Turn: turn, Step: 1, Call: "c", State: ToolDone, Output: "o"})
		r = keep(send(t, l, sendOf(turn, 2, nil))) // back to the first, within a turn
		conclude(t, l, turn, 2, r, Complete, "", call("d", "read", `{}`))
		add(t, l, &ToolSettled{Turn: turn, Step: 2, Call: "d", State: ToolDone, Output: "o"})
		keep(send(t, l, sendOf(turn, 3, nil)))
		wantClean(t, s)
		return bodies
	}
	warm, cold := steps(false), steps(true)
	for i := range warm {
		if !bytes.Equal(warm[i], cold[i]) {
			t.Errorf("request %d:\nwarm %s\ncold %s", i+1, warm[i], cold[i])
		}
	}
}

func TestAMidstateThatCannotBeReadIsMadeAgain(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	exchange(t, l, prose(500), prose(500))
	tamper(t, s, `DROP TRIGGER request_fixed`, `UPDATE request SET midstate = x'00'`)
	l = reopen(t, s, l.Session())
	_, sent := exchange(t, l, "next", "x")
	if in := input(t, s, sent.Request); !in.Verified || in.Info.Epoch != 1 {
		t.Errorf("verified %v in epoch %d", in.Verified, in.Info.Epoch)
	}
}

// guards C5: a message that was sent and cannot be read any more opens a new epoch; nothing new is swallowed.
func TestADamagedMessageOpensANewEpoch(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "asked and then damaged")
	conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text("answered"))
	tamper(t, s, `DROP TRIGGER entry_fixed`, `UPDATE entry SET body = 'x' WHERE seq = 2`)
	l = reopen(t, s, l.Session())
	_, sent = start(t, l, "asked later")
	in := input(t, s, sent.Request)
	if !in.Verified || in.Info.Epoch != 2 || !bytes.Contains(in.Body, []byte("asked later")) || !bytes.Contains(in.Body, []byte("answered")) {
		t.Errorf("epoch %d, verified %v: %s", in.Info.Epoch, in.Verified, in.Body)
	}
}

// guards P5, F1
func TestABrokenAnswerIsInNoInput(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	conclude(t, l, turn, 1, sent.Request, Broken, TurnFailed, text("SECRET"))
	_, sent = start(t, l, "again")
	if b := readBody(t, s, sent.Request); bytes.Contains(b, []byte("SECRET")) {
		t.Errorf("the input holds a withheld answer: %s", b)
	}
}

// guards F4
func TestAnAdoptedAnswerIsInTheNextInput(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	e := conclude(t, l, turn, 1, sent.Request, Broken, TurnFailed, text("worth keeping"))
	add(t, l, &Admission{Turn: turn, Step: 1, Answer: e[1].Seq, Admitted: true, By: "user"})
	_, sent = start(t, l, "again")
	if b := readBody(t, s, sent.Request); !bytes.Contains(b, []byte("worth keeping")) {
		t.Errorf("the input lacks an adopted answer: %s", b)
	}
}

// guards C4: the log is the truth, also when another process wrote into it.
func TestTwoWritersOfOneSessionInterleave(t *testing.T) {
	s := openStore(t, Options{})
	a := newSession(t, s)
	other := openAt(t, s.Path(), Options{})
	b := reopen(t, other, a.Session())
	for i := range 4 {
		l, st := a, s
		if i%2 == 1 {
			l, st = b, other
		}
		_, sent := exchange(t, l, "q", "a")
		if in := input(t, st, sent.Request); in.Info.N != 2*i+1 || !in.Verified || in.Info.Epoch != 1 {
			t.Errorf("request %d: %+v", i, in.Info)
		}
	}
	wantClean(t, s)
}

func TestAFailedSendChangesNothing(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	exchange(t, l, "q", "a")
	before := kinds(entries(t, s, l.Session()))
	turn := NewTurnID()
	bad := sendOf(turn, 1, prompt(turn, "q2"))
	bad.Enc = failing{plain{"1"}}
	if _, err := l.Send(t.Context(), bad); !errors.Is(err, errEncode) {
		t.Fatal("got", err)
	}
	if after := kinds(entries(t, s, l.Session())); after != before {
		t.Errorf("the log grew: %s", after)
	}
	_, sent := exchange(t, l, "q2", "a2")
	if in := input(t, s, sent.Request); in.Info.N != 3 || in.Info.Epoch != 1 {
		t.Errorf("%+v", in.Info)
	}
	wantClean(t, s)
}

var errEncode = errors.New("cannot encode")

type failing struct{ plain }

func (failing) Encode(Message) ([]byte, error) { return nil, errEncode }

func TestABodyIsReadWithoutHoldingUpTheLog(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	for range 40 {
		exchange(t, l, prose(8000), prose(8000))
	}
	_, sent := start(t, l, "last")
	rc, _, err := s.Body(t.Context(), sent.Request)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var got bytes.Buffer
	if _, err := io.CopyN(&got, rc, 300<<10); err != nil {
		t.Fatal(err)
	}
	if n := s.reads.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use between two reads", n)
	}
	var busy, pages, folded int
	if err := s.w.conn.QueryRowContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &folded); err != nil || busy != 0 {
		t.Errorf("a checkpoint is held up: %d, %v", busy, err)
	}
	if _, err := io.Copy(&got, rc); err != nil {
		t.Fatal(err)
	}
	if shaOf(got.Bytes()) != sent.SHA256 {
		t.Error("other bytes than were hashed")
	}
}

func TestAChangedBodyIsNeverReadToItsEnd(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	_, sent := start(t, l, "question")
	tamper(t, s, `DROP TRIGGER fragment_fixed`, `UPDATE fragment SET parts = replace(parts, 'question', 'Question')`)
	rc, _, err := s.Body(t.Context(), sent.Request)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(rc)
	wantErr(t, err, ErrDamaged)
	if strings.Contains(string(b), "stream") {
		t.Error("the tail was given out")
	}
	if in := input(t, s, sent.Request); in.Verified {
		t.Error("Input says it is verified")
	}
}

func TestABodyEndsWithItsContext(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	for range 40 {
		exchange(t, l, prose(8000), prose(8000))
	}
	_, sent := start(t, l, "last")
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	rc, _, err := s.Body(ctx, sent.Request)
	if err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	_, err = io.ReadAll(rc)
	wantErr(t, err, cause)
}

func TestTheNewestRequestIsFoundBySessionAndWorkspace(t *testing.T) {
	s := openStore(t, Options{})
	if _, err := s.NewestRequest(t.Context(), "", ""); !errors.Is(err, ErrNoRequest) {
		t.Fatal("got", err)
	}
	a := newSession(t, s)
	b, err := s.NewSession(t.Context(), SessionOpened{Workspace: "/other"})
	if err != nil {
		t.Fatal(err)
	}
	_, first := exchange(t, a, "q", "a")
	_, second := exchange(t, b, "q", "a")
	for _, tt := range []struct {
		session   SessionID
		workspace string
		want      RequestID
	}{
		{"", "", second.Request}, {a.Session(), "", first.Request}, {"", "/w", first.Request}, {"", "/other", second.Request},
	} {
		if got, err := s.NewestRequest(t.Context(), tt.session, tt.workspace); got != tt.want || err != nil {
			t.Errorf("%q %q: %s, %v; want %s", tt.session, tt.workspace, got, err, tt.want)
		}
	}
}
