package transcript

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func queuedMessage(id MessageID, text string) *MessageQueued {
	return &MessageQueued{Message: id, Prompt: []PromptPart{{Type: "text", Text: text}}, ClientID: "c-" + string(id)}
}

func stateOf(t *testing.T, s *Store, session SessionID, id MessageID) MessageInfo {
	t.Helper()
	i, found, err := s.MessageByClientID(t.Context(), session, "c-"+string(id))
	if err != nil || !found {
		t.Fatalf("message %s: %v, %v", id, found, err)
	}
	return i
}

// guards S10, M1, M4: a delivered message is a user message of its own, behind the results, in the transaction of its request
func TestADeliveredMessageIsPartOfTheRequestThatDeliversIt(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "look")
	conclude(t, l, turn, 1, sent.Request, Complete, "", text("I look."), call("c1", "read", `{"path":"a.go"}`))
	long := prose(3000)
	add(t, l, queuedMessage("m_1", long), &ToolStarted{Turn: turn, Step: 1, Call: "c1", Name: "read"},
		&ToolSettled{Turn: turn, Step: 1, Call: "c1", Name: "read", State: ToolDone, Output: "ok"})
	if i := stateOf(t, s, l.Session(), "m_1"); i.State != MessageWaiting {
		t.Errorf("queued it is %+v", i)
	}
	next := sendOf(turn, 2, nil)
	next.Delivered = []*MessageDelivered{{Message: "m_1", Turn: turn, Step: 2, Prompt: queuedMessage("", long).Prompt}}
	sent = send(t, l, next)
	in := input(t, s, sent.Request)
	if p := in.Parts[len(in.Parts)-2]; !in.Verified || p.Role != RoleUser || p.Turn != turn || !strings.Contains(string(in.Body), `\tline 3: if x`) {
		t.Errorf("the input ends with %+v", p)
	}
	var stored int
	if err := s.reads.QueryRowContext(t.Context(), `SELECT max(length(parts)) FROM fragment`).Scan(&stored); err != nil || stored > 200 {
		t.Errorf("its fragment is stored in %d bytes, %v: the text stands in the entry already", stored, err)
	}
	conclude(t, l, turn, 2, sent.Request, Complete, TurnCompleted, text("Done."))
	if i := stateOf(t, s, l.Session(), "m_1"); i.State != MessageInTurn || i.Turn != turn {
		t.Errorf("delivered it is %+v", i)
	}
	wantClean(t, s)
	again := reopen(t, s, l.Session()) // a view made from the database goes on the same
	turn = NewTurnID()
	started := prompt(turn, "and")
	first := sendOf(turn, 1, started)
	first.Queued, started.Queued = queuedMessage("m_2", "and"), []MessageID{"m_2"}
	sent = send(t, again, first)
	conclude(t, again, turn, 1, sent.Request, Complete, TurnCompleted, text("Yes."))
	if i := stateOf(t, s, l.Session(), "m_2"); i.State != MessageStarted || i.Turn != turn {
		t.Errorf("the message that started a turn is %+v", i)
	}
	if e := entries(t, s, l.Session()); !strings.Contains(kinds(e), "message.queued turn.started request.sent") {
		t.Errorf("the log is %s", kinds(e))
	}
	wantClean(t, s)
}

// guards S10, C2
func TestRepairHandsBackTheMessagesOfADeadDaemon(t *testing.T) {
	for name, betweenTurns := range map[string]bool{"behind an open turn": false, "between two turns": true} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{})
			l := newSession(t, s)
			exchange(t, l, "a", "b")
			turn, sent := start(t, l, "look")
			add(t, l, queuedMessage("m_1", "one"), queuedMessage("m_2", "two"), &MessageReturned{Message: "m_1", Cause: CauseStoppedByUser})
			if betweenTurns {
				conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text("Done."))
			}
			if r := verify(t, s); len(r.Problems) != 0 || len(r.Open) != 1 {
				t.Errorf("before the repair %+v", r)
			}
			out, err := l.Repair(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := "message.returned"
			if !betweenTurns {
				want = "request.ended message.returned turn.ended"
			}
			if kinds(out) != want {
				t.Errorf("it wrote %s, want %s", kinds(out), want)
			}
			if i := stateOf(t, s, l.Session(), "m_2"); i.State != MessageHandedOut || i.Cause != CauseDaemonDied {
				t.Errorf("%+v", i)
			}
			if out, err := l.Repair(context.Background(), nil); out != nil || err != nil {
				t.Errorf("repaired twice: %s, %v", kinds(out), err)
			}
			if r := wantClean(t, s); len(r.Open) != 0 {
				t.Errorf("after the repair %+v", r)
			}
		})
	}
}

func TestVerifyFindsAMessageWithTwoEndsOrNoBeginning(t *testing.T) {
	s := openStore(t, Options{})
	l := newSession(t, s)
	turn, sent := start(t, l, "look")
	back := &MessageReturned{Message: "m_1", Cause: CauseTurnFailed}
	add(t, l, queuedMessage("m_1", "one"), back, back, &MessageReturned{Message: "m_none", Cause: CauseTurnFailed})
	conclude(t, l, turn, 1, sent.Request, Complete, TurnCompleted, text("Done."))
	r := verify(t, s)
	if len(r.Problems) != 2 || !strings.Contains(r.Problems[0].String(), "message m_1 ended without being queued, or twice") {
		t.Errorf("%v", r.Problems)
	}
}

// guards F3: a retry's user message is its notice; what is asked stands in the input already
func TestARetryRepeatsNothingInTheInput(t *testing.T) {
	b := prompt("t_2", "the question")
	b.Retries, b.Notice = "t_1", "[Go on.]"
	if got := b.UserText(); got != "[Go on.]" {
		t.Errorf("it says %q", got)
	}
	if got := b.PromptText(); got != "the question" {
		t.Errorf("its prompt is %q", got)
	}
}

// guards D5, S10: every message and retry is shown once, with what became of it
func TestTheTranscriptShowsWhatBecameOfMessagesAndRetries(t *testing.T) {
	retry := prompt("t_3", "Start.")
	retry.Retries, retry.Notice = "t_2", "[Go on.]"
	second := prompt("t_2", "Start.")
	second.Queued = []MessageID{"m_3"}
	bodies := []Body{
		&SessionOpened{}, prompt("t_1", "Look."),
		queuedMessage("m_1", "steer *me*"), queuedMessage("m_2", "given back"), queuedMessage("m_3", "Start."),
		&MessageDelivered{Message: "m_1", Turn: "t_1", Step: 2, Prompt: queuedMessage("", "steer *me*").Prompt},
		&MessageReturned{Message: "m_2", Cause: CauseTurnFailed}, &TurnEnded{Turn: "t_1", Outcome: TurnCompleted},
		second, &TurnEnded{Turn: "t_2", Outcome: TurnFailed, Cause: "idle"},
		retry, queuedMessage("m_4", "waits"), &TurnEnded{Turn: "t_3", Outcome: TurnCompleted},
	}
	var log []Entry
	for i, b := range bodies {
		log = append(log, Entry{Seq: int64(i + 1), Body: b})
	}
	var out bytes.Buffer
	refs, err := Markdown(&out, SessionInfo{ID: "s_1"}, log)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Conversation

Session ` + "`s_1`" + `

## You, 0001-01-01 00:00:00 UTC

> Look.

*You queued a message; it was delivered below*

*You queued, and were handed back* (the turn had failed, not sent):

> given back

*You queued a message; the next turn starts with it*

*You, delivered before step 2:*

> steer *me*

## You, 0001-01-01 00:00:00 UTC

> Start.

*Failed:* idle

### You retry, 0001-01-01 00:00:00 UTC

*\[Go on.\]*

*You queued:*

> waits

`
	if out.String() != want {
		t.Errorf("the transcript is\n%s\nwant\n%s", out.String(), want)
	}
	lines := strings.Split(out.String(), "\n")
	for _, r := range refs {
		if r.Seq == 6 && !strings.HasPrefix(lines[r.Line-1], "*You, delivered") {
			t.Errorf("entry 6 is at line %d: %q", r.Line, lines[r.Line-1])
		}
	}
}

// guards P1: what the model takes for the user's words is what the user said
func TestWhatAFileHoldsStaysWithinItsFence(t *testing.T) {
	for _, text := range []string{"", "a", "a\n", "```", "a\n```\nb", "`````\n", "a ````", "```sh\nmake\n```\n", "\n```", "é```\r\n```"} {
		for _, path := range []string{"a.go", "a\nb", "a, lines 1-2:\n```\nx"} {
			user := &TurnStarted{Prompt: []PromptPart{{Type: "file", Path: path, Start: 1, End: 2, Text: text}, {Type: "text", Text: "said"}}}
			name, rest, _ := strings.Cut(user.UserText(), "\n")
			fence, rest, _ := strings.Cut(rest, "\n")
			within, after, ok := strings.Cut(rest, fence)
			if !ok || strings.Trim(fence, "`") != "" || after != "\n\nsaid" || strings.TrimSuffix(within, "\n") != strings.TrimSuffix(text, "\n") {
				t.Errorf("%q of %q is sent as %q", text, path, user.UserText())
			}
			if !strings.HasSuffix(name, ", lines 1-2:") {
				t.Errorf("%q is named %q", path, name)
			}
		}
	}
}
