package agent

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tools"
	"fermata/transcript"
)

// send sends a message into the world's session and wants a state.
func (w *world) send(m *Message, s Start, state transcript.MessageState) Receipt {
	w.t.Helper()
	r, err := m.Send(w.t.Context(), s)
	if err != nil || r.State != state {
		w.t.Fatalf("the message is %+v, %v; want %s; the log: %s", r, err, state, w.dump())
	}
	return r
}

func (w *world) queue(text string) Receipt {
	w.t.Helper()
	return w.send(w.agent.ReserveMessage(w.s.ID()), say(text), transcript.MessageWaiting)
}

func (w *world) logged(kind transcript.Kind) (n int) {
	w.t.Helper()
	entries, err := w.store.Entries(w.t.Context(), w.s.ID(), 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind() == kind {
			n++
		}
	}
	return n
}

// contents are the messages of the nth request, each as role: content.
func (w *world) contents(n int) (out []string) {
	w.t.Helper()
	for _, m := range w.model.messages(w.t, n) {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		out = append(out, m.Role+": "+text)
	}
	return out
}

func (w *world) wantContents(n int, want ...string) {
	w.t.Helper()
	got := w.contents(n)
	if len(got) != len(want) {
		w.t.Fatalf("request %d holds\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range want {
		if prefix, ok := strings.CutSuffix(want[i], "…"); ok && strings.HasPrefix(got[i], prefix) {
			continue
		}
		if got[i] != want[i] {
			w.t.Errorf("message %d of request %d is %q, want %q", i+1, n, got[i], want[i])
		}
	}
}

// guards S10, M4: steering
func TestAMessageIsDeliveredAfterTheNextToolResults(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, tools.All(),
		func(r *reply) { r.say("I look."); <-goOn; r.call("c1", "list_dir", "{}"); r.done() },
		func(r *reply) { r.say("Seen."); r.done() },
		func(r *reply) { r.say("Yes."); r.done() })
	turn, out := w.start(say("Look."))
	w.until(deltaEndsWith("I look."))
	first := w.queue("Look at the tests, too.")
	if w.logged(transcript.KindMessageQueued) != 1 || first.Turn != turn.ID() { // durable before it is acknowledged
		t.Errorf("acknowledged as %+v before it was in the log", first)
	}
	w.queue("And be quick.")
	close(goOn)
	if rep := <-out; rep.Outcome != transcript.TurnCompleted || rep.Returned != nil {
		t.Errorf("%+v", rep)
	}
	steered := []string{"user: Look.", "assistant: I look.", "tool: …", "user: Look at the tests, too.", "user: And be quick."}
	w.wantContents(2, steered...)
	w.run(say("Sure?"))
	w.wantContents(3, append(steered, "assistant: Seen.", "user: Sure?")...)
	if !strings.HasPrefix(w.model.body(3), strings.TrimSuffix(w.model.body(2), "]}")) {
		t.Error("the later input does not extend the one with the delivered messages")
	}
	if n := w.logged(transcript.KindMessageDelivered); n != 2 {
		t.Errorf("%d messages were delivered; the log: %s", n, w.dump())
	}
}

// guards S10
func TestWhatWaitsBehindATurnThatEndsByItselfStartsTheNext(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, nil,
		func(r *reply) { r.say("One "); <-goOn; r.say("done."); r.done() },
		func(r *reply) { r.say("Two."); r.done() })
	start := say("First.")
	start.Anchor = &transcript.Anchor{URI: "file:///a", StartLine: 3, EndLine: 3}
	_, out := w.start(start)
	w.until(deltaEndsWith("One "))
	a, b := w.queue("Second."), w.queue("Third.")
	close(goOn)
	rep := <-out
	var next *transcript.TurnStarted
	w.until(func(ev Event) bool {
		s, ok := entry[*transcript.TurnStarted](ev)
		if ok && s.Turn != rep.Turn {
			next = s
		}
		return next != nil
	})
	w.until(is[*transcript.TurnEnded])
	if !slices.Equal(next.Queued, []transcript.MessageID{a.Message, b.Message}) || next.Notice != "" || next.Anchor == nil || next.Anchor.StartLine != 3 {
		t.Errorf("the next turn started as %+v", next)
	}
	w.wantContents(2, "user: First.", "assistant: One done.", "user: Second.\n\nThird.")
	if r, err := w.agent.Stop(t.Context(), next.Turn, ErrStopped); err != nil || r.Outcome != transcript.TurnCompleted || len(r.Prompt) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// guards S10
func TestAMessageWhereNoTurnRunsStartsOne(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("Here."); r.done() })
	r := w.send(w.agent.ReserveMessage(w.s.ID()), say("Hello."), transcript.MessageStarted)
	w.until(is[*transcript.TurnEnded])
	w.wantContents(1, "user: Hello.")
	info, err := w.store.Turn(t.Context(), r.Turn)
	if err != nil || !slices.Equal(info.Started.Queued, []transcript.MessageID{r.Message}) {
		t.Errorf("%+v, %v", info.Started, err)
	}
}

// guards S10, S8: never dropped, never sent by themselves, whatever ended the turn
func TestAStopHandsBackWhatWaits(t *testing.T) {
	sleep := func(r *reply) {
		r.say("So ")
		r.call("c1", "run", `{"command":"echo ready; sleep 600"}`)
		r.done()
	}
	cut := make(chan struct{})
	cases := map[string]struct {
		model func(*reply)
		until func(Event) bool
		end   func(w *world, turn *Turn)
		cause string
	}{
		"the user stops":     {nil, nil, func(_ *world, turn *Turn) { turn.Stop(ErrStopped) }, "stopped_by_user"},
		"the client is gone": {nil, nil, func(_ *world, turn *Turn) { turn.Stop(ErrClientGone) }, "client_gone"},
		"the daemon ends":    {nil, nil, func(_ *world, turn *Turn) { turn.Stop(ErrShutdown) }, "shutdown"},
		"the user stops a tool": {sleep, func(ev Event) bool { return ev.Output != nil && strings.Contains(ev.Output.Text, "ready") },
			func(_ *world, turn *Turn) { turn.Stop(ErrStopped) }, "stopped_by_user"},
		"the answer breaks off": {nil, nil, func(w *world, _ *Turn) { w.model.server.CloseClientConnections() }, "turn_failed"},
		"the answer has no end": {func(r *reply) { r.say("So "); <-cut }, nil, func(*world, *Turn) { close(cut) }, "turn_failed"},
		"the user redirects": {nil, nil, func(w *world, turn *Turn) {
			rep := <-w.runIn(w.agent.ReserveRedirect(turn.ID()), say("Other."))
			if len(rep.Returned) != 2 {
				w.t.Errorf("the redirect reports %+v", rep)
			}
		}, "stopped_by_user"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.model == nil {
				c.model = func(r *reply) { r.say("So "); r.hang() }
			}
			w := newWorld(t, tools.All(), c.model, func(r *reply) { r.say("Good."); r.done() })
			turn, out := w.start(say("Tell."))
			w.until(deltaEndsWith("So "))
			if c.until != nil {
				w.until(c.until)
			}
			a, b := w.queue("Later 1."), w.queue("Later 2.")
			c.end(w, turn)
			rep := <-out
			if len(rep.Returned) != 2 || rep.Returned[0].Message != a.Message || rep.Returned[1].Message != b.Message ||
				rep.Returned[0].Prompt[0].Text != "Later 1." || rep.Returned[0].Cause != c.cause {
				t.Errorf("returned %+v; the log: %s", rep.Returned, w.dump())
			}
			again, err := w.agent.Stop(t.Context(), turn.ID(), ErrStopped)
			if err != nil || len(again.Returned) != 2 {
				t.Errorf("stopped again it reports %+v, %v", again, err)
			}
			w.run(say("Go on."))
			w.model.mu.Lock()
			defer w.model.mu.Unlock()
			for _, body := range w.model.bodies {
				if strings.Contains(string(body), "Later") {
					t.Errorf("a message that was handed back was sent: %s", body)
				}
			}
		})
	}
}

// guards S10, S12
func TestAMessageIsQueuedAndHandedBackInTheBackOff(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { panic(http.ErrAbortHandler) })
	w.agent.o.Retry = Retry{Tries: 3, Base: time.Hour, Max: time.Hour}
	turn, out := w.start(say("Tell."))
	w.until(func(ev Event) bool { return ev.Retracted != nil })
	w.queue("Later.")
	turn.Stop(ErrStopped)
	if rep := <-out; rep.Outcome != transcript.TurnStopped || len(rep.Returned) != 1 {
		t.Errorf("%+v", rep)
	}
}

// guards S2, S10
func TestTheOrderInWhichMessageAndStopCameDecides(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() }, func(r *reply) { r.say("Good."); r.done() })
	turn, out := w.start(say("Tell."))
	w.until(deltaEndsWith("So "))
	before := w.agent.ReserveMessage(w.s.ID())
	turn.Stop(ErrStopped)
	after := w.agent.ReserveMessage(w.s.ID())
	started := make(chan Receipt, 1)
	go func() {
		r, err := after.Send(context.Background(), say("After."))
		if err != nil {
			t.Error(err)
		}
		started <- r
	}()
	w.send(before, say("Before."), transcript.MessageHandedOut)
	if rep := <-out; len(rep.Returned) != 1 || rep.Returned[0].Prompt[0].Text != "Before." {
		t.Errorf("%+v", rep)
	}
	if r := <-started; r.State != transcript.MessageStarted {
		t.Errorf("%+v", r)
	}
	w.until(func(ev Event) bool { e, ok := entry[*transcript.TurnEnded](ev); return ok && e.Turn != turn.ID() })
	w.wantContents(2, "user: Tell.", "assistant: So ", "user: [The user stopped your answer above where it ends.]\n\nAfter.")
}

// guards S10
func TestARepeatedMessageIsSentOnce(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, nil, func(r *reply) { r.say("So "); <-goOn; r.done() }, func(r *reply) { r.say("Good."); r.done() })
	_, out := w.start(say("Tell."))
	w.until(deltaEndsWith("So "))
	later := say("Later.")
	later.ClientID = "k1"
	one, two := w.agent.ReserveMessage(w.s.ID()), w.agent.ReserveMessage(w.s.ID())
	both := make(chan Receipt, 2)
	for _, m := range []*Message{one, two} {
		go func() {
			r, err := m.Send(context.Background(), later)
			if err != nil {
				t.Error(err)
			}
			both <- r
		}()
	}
	a, b := <-both, <-both
	if a.State != transcript.MessageWaiting || b.State != transcript.MessageWaiting || w.logged(transcript.KindMessageQueued) != 1 {
		t.Errorf("%+v, %+v; the log: %s", a, b, w.dump())
	}
	close(goOn)
	rep := <-out
	w.until(func(ev Event) bool { e, ok := entry[*transcript.TurnEnded](ev); return ok && e.Turn != rep.Turn })
	again := w.send(w.agent.ReserveMessage(w.s.ID()), later, transcript.MessageStarted)
	if again.Turn == "" || again.Turn == rep.Turn || w.logged(transcript.KindTurnStarted) != 2 {
		t.Errorf("%+v; the log: %s", again, w.dump())
	}
}

func TestAMessageThatCannotBeSentIsRefused(t *testing.T) {
	w := newWorld(t, nil, func(r *reply) { r.say("So "); r.hang() })
	turn, out := w.start(say("Tell."))
	w.until(deltaEndsWith("So "))
	if _, err := w.agent.ReserveMessage(w.s.ID()).Send(t.Context(), say(" ")); err == nil || !strings.Contains(err.Error(), "it says nothing") {
		t.Errorf("an empty message: %v", err)
	}
	w.agent.ReserveMessage(w.s.ID()).Release()
	w.queue("Later.") // those before are in nobody's way
	turn.Stop(ErrStopped)
	if rep := <-out; len(rep.Returned) != 1 {
		t.Errorf("%+v", rep)
	}
}

// guards S10, C2: what waited when the daemon died is handed back when the session is opened again.
func TestMessagesOfADeadDaemonAreHandedBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	store, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log, err := store.NewSession(t.Context(), transcript.SessionOpened{})
	if err != nil {
		t.Fatal(err)
	}
	prompt := say("x").Prompt
	if _, err := log.Append(t.Context(),
		&transcript.TurnStarted{Turn: "t_1", Prompt: prompt},
		&transcript.MessageQueued{Message: "m_1", Prompt: prompt}); err != nil {
		t.Fatal(err)
	}
	a := New(Options{Store: store, Client: &world{}})
	if _, err := a.Open(t.Context(), log.Session()); err != nil {
		t.Fatal(err)
	}
	r, err := a.Stop(t.Context(), "t_1", ErrStopped)
	if err != nil || r.Outcome != transcript.TurnAbandoned || len(r.Returned) != 1 || r.Returned[0].Cause != transcript.CauseDaemonDied {
		t.Errorf("%+v, %v", r, err)
	}
	if err := a.Close(t.Context(), ErrShutdown); err != nil {
		t.Error(err)
	}
}
