package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// signed are the deltas of an answer with two blocks of reasoning, the first signed at its end, and one that is encrypted,
// as [Log.Journal] and [Log.JournalExtra] are given them; part -1 is text.
var signed = []struct {
	part  int
	typ   PartType
	text  string
	extra string
}{
	{part: 0, typ: PartReasoning, extra: `{"block":0}`},
	{part: -1, typ: PartReasoning, text: "First, "},
	{part: -1, typ: PartReasoning, text: "I look."},
	{part: 0, typ: PartReasoning, extra: `{"block":0,"signature":"A\/<b>=="}`},
	{part: 1, typ: PartReasoning, extra: `{"block":1}`},
	{part: -1, typ: PartReasoning, text: "Then I "},
	{part: 2, typ: PartReasoning, extra: `{"data":"gA=="}`},
	{part: 3, typ: PartReasoning}, // begins, and nothing of it comes
	{part: 4, typ: PartReasoning},
	{part: -1, typ: PartReasoning, text: "plain"},
	{part: -1, typ: PartText, text: "Half a"},
	{part: -1, typ: PartText, text: " wo"},
	{part: 1, typ: PartReasoning, extra: `{"block":1,"signature":"late"}`},
	{part: 9, typ: PartReasoning, extra: `{"no":"such part"}`},
}

const signedParts = `reasoning "First, I look." {"block":0,"signature":"A\/<b>=="}
reasoning "Then I " {"block":1,"signature":"late"}
reasoning "" {"data":"gA=="}
reasoning "plain"
text "Half a wo"`

func partsText(parts []Part) string {
	var lines []string
	for _, p := range parts {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %q %s", p.Type, p.Text, p.Extra)))
	}
	return strings.Join(lines, "\n")
}

func journalSigned(t *testing.T, l *Log, turn TurnID, r RequestID) (said Spoken) {
	t.Helper()
	for _, d := range signed {
		var err error
		if d.part < 0 {
			said.Say(d.typ, d.text)
			err = l.Journal(r, turn, 1, d.typ, d.text)
		} else {
			extra := json.RawMessage(d.extra)
			if d.extra == "" {
				extra = nil
			}
			said.Carry(d.part, d.typ, extra)
			err = l.JournalExtra(r, d.part, d.typ, extra)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return said
}

// guards T3, C1, T1
func TestWhatGoesBackWithAPartIsJournalledWhenItCame(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	said := journalSigned(t, l, turn, sent.Request)
	if got := partsText(said.Parts()); got != signedParts {
		t.Errorf("the parts are\n%s\nwant\n%s", got, signedParts)
	}
	if err := l.JournalExtra(sent.Request, 0, PartReasoning, json.RawMessage(`{"cut":`)); err == nil {
		t.Error("an extra that is no JSON was journalled")
	}
	other := openAt(t, s.Path(), Options{}) // kill -9: another process opens the file
	l = reopen(t, other, l.Session())
	tamper(t, other, `INSERT INTO journal (sid, request, n, part, text) SELECT sid, request, 99, 'extra', '{broken' FROM journal LIMIT 1`)
	entries, err := l.Repair(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := entries[1].Body.(*Answer)
	if got := partsText(a.Parts); got != signedParts || a.State != Broken {
		t.Errorf("the repaired answer is %s\n%s\nwant\n%s", a.State, got, signedParts)
	}
	wantClean(t, other)
}

// guards S6: what nobody was shown is no answer
func TestAnEncryptedBlockAloneIsNoAnswer(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	_, sent := start(t, l, "q")
	if err := l.JournalExtra(sent.Request, 0, PartReasoning, json.RawMessage(`{"data":"gA=="}`)); err != nil {
		t.Fatal(err)
	}
	got, err := l.Repair(t.Context(), nil)
	if err != nil || kinds(got) != "request.ended turn.ended" || !got[1].Body.(*TurnEnded).Silent {
		t.Errorf("%s, %v", kinds(got), err)
	}
	wantClean(t, s)
}

// guards C4: a reader in another process counts it, and takes none of it for text
func TestNewsTellsOnlyWhatWasSaid(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "q")
	want := journalSigned(t, l, turn, sent.Request)
	_, news, err := s.News(t.Context(), l.Session(), Place{})
	if err != nil || len(news) != len(signed) {
		t.Fatalf("%d deltas, %v", len(news), err)
	}
	said := map[PartType]string{}
	for i, d := range news {
		if said[d.Part] += d.Text; d.N != int64(i+1) {
			t.Errorf("delta %d has number %d", i+1, d.N)
		}
	}
	a := Answer{Parts: want.Parts()}
	if said[""] != "" || said[PartText] != a.Text() || said[PartReasoning] != a.Reasoning() {
		t.Errorf("told were %q", said)
	}
	if _, more, err := s.News(t.Context(), l.Session(), Place{Seq: l.Seq(), Request: sent.Request, N: news[len(news)-1].N}); err != nil || len(more) > 0 {
		t.Errorf("%d more, %v", len(more), err)
	}
}
