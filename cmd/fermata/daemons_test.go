package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// second starts another daemon of the same user, which the editor returned talks to.
func (e *editor) second(o peer.Options) *editor {
	e.t.Helper()
	other := *e
	other.start(o)
	return &other
}

// What was shown is in the transcript at once, whether its daemon lives or was killed: nothing has to open the session first.
//
// guards C1, P4
func TestATranscriptShowsAnAnswerThatNoEntryHoldsYet(t *testing.T) {
	t.Parallel()
	e := newEditor(t, script("Count.", `think "Hm. "`, `say "One, "`, `say "two"`, "hang"), peer.Options{})
	e.Initialize(e.root, nil)
	e.ask(e.NewSession(e.root), "Count.")
	e.Event("the words", func(ev peer.Event) bool { return strings.Contains(ev.Text, "two") })
	const want = "\n*Being said, or cut off when fermata itself ended:*\n\n> *Reasoning*\n>\n> Hm.\n\nOne, two\n\n"
	for _, when := range []string{"while it is said", "after a kill"} {
		if out, code := e.command("transcript"); code != 0 || !strings.HasSuffix(out, want) {
			t.Errorf("%s: %d\n%s", when, code, out)
		}
		other := e.second(peer.Options{})
		other.Initialize(e.root, nil)
		var shown struct{ URI string }
		other.Must("workspace/executeCommand", map[string]any{"command": "fermata.openTranscript"}, &shown)
		if text, err := os.ReadFile(strings.TrimPrefix(shown.URI, "file://")); err != nil || !strings.HasSuffix(string(text), want) {
			t.Errorf("%s the command shows %v\n%s", when, err, text)
		}
		other.quit()
		e.Kill()
	}
}

// One daemon runs a turn; the other one's client sees it as it is said, is refused a turn of its own, and goes on when the
// first daemon was killed.
//
// guards C4, C1, C2, P4
func TestASecondDaemonFollowsIsRefusedAndTakesOver(t *testing.T) {
	t.Parallel()
	a := newEditor(t, script("Count.", "size 4000", `think "Hm. "`, `say "One, "`, "wait 300ms", `say "two, "`, "wait 300ms", `say "three"`, "hang")+thenGood, peer.Options{})
	a.Initialize(a.root, nil)
	session := a.NewSession(a.root)
	b := a.second(peer.Options{})
	b.Initialize(b.root, nil)
	b.Must("fermata/session/open", map[string]any{"session": session}, nil)

	a.ask(session, "Count.")
	var started struct{ Turn string }
	if err := json.Unmarshal(b.Kind("turn.started").Entry, &started); err != nil {
		t.Fatal(err)
	}
	three := func(ev peer.Event) bool { return strings.Contains(ev.Text, "three") }
	seen := b.Event("the words", three).At.Sub(a.Event("the words", three).At)
	t.Logf("the second client saw the last word %v after the first", seen)
	if seen > 2*time.Second { // 0.1 s on a machine of its own
		t.Errorf("the second client saw it %v later", seen)
	}
	for _, part := range []string{"text", "reasoning"} {
		if is, want := b.Shown(started.Turn, 1, part), a.Shown(started.Turn, 1, part); is != want {
			t.Errorf("the second client was shown the %s %q, the first %q", part, is, want)
		}
	}

	refused := func(what string, err *peer.Error) {
		t.Helper()
		var data struct{ Kind, Hint string }
		if err == nil || json.Unmarshal(err.Data, &data) != nil || data.Kind != "in_use" || data.Hint == "" || !strings.Contains(err.Message, "in use by another daemon") {
			t.Errorf("%s: %+v, want in_use", what, err)
		}
	}
	refused("a turn", b.Call("fermata/turn/start", map[string]any{"session": session, "prompt": peer.Text("Go on.")}, nil))
	refused("a stop", b.Call("fermata/turn/stop", map[string]any{"turn": started.Turn}, nil))

	a.Kill()
	killed := time.Now()
	end := b.Event("the end", func(ev peer.Event) bool {
		return ev.Kind == "turn.ended" && strings.Contains(string(ev.Entry), started.Turn)
	})
	if took := end.At.Sub(killed); took > transcript.LeaseTime || !strings.Contains(string(end.Entry), `"abandoned"`) {
		t.Errorf("the turn ended %s, %v after its daemon was killed", end.Entry, took)
	}
	g := &badInput{editor: b}
	got := g.goesOn(session)
	if last := got[len(got)-1].text(); !strings.HasPrefix(last, "[The last turn was cut off when fermata itself ended.") {
		t.Errorf("the model was told %q", last)
	}
	if kept, _ := g.answers(session, started.Turn); kept != a.Shown(started.Turn, 1, "text") {
		t.Errorf("the transcript has %q", kept)
	}
	b.quit()
}

// Retry and keep said that nothing was asked in a session yet, when another daemon ran its first turn.
//
// guards C4
func TestRetryAndKeepSayThatAnotherDaemonRunsTheTurn(t *testing.T) {
	t.Parallel()
	e := newEditor(t, script("Count.", `say "One, "`, "hang"), peer.Options{})
	e.Initialize(e.root, nil)
	session := e.NewSession(e.root)
	e.ask(session, "Count.")
	e.said("One, ")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"retry", "keep"} { // what the other daemon's turn says is no answer of theirs
		cmd := exec.CommandContext(t.Context(), exe, command)
		cmd.Dir, cmd.Env = e.root, e.env
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitOther || !strings.HasPrefix(string(out), "fermata: ") || !strings.Contains(string(out), "in use by another daemon") || !strings.HasSuffix(string(out), ": wait until its turn ends, or stop it there\n") {
			t.Errorf("%s: exit code %d and %q", command, code, out)
		}
	}
}

// All are busy at once, each with sessions of its own and with one that all want. Nobody is told of a lock.
//
// guards C4
func TestTwentyDaemonsShareADatabase(t *testing.T) {
	t.Parallel()
	const daemons, sessions, turns = 20, 3, 2
	a := newEditor(t, "loop\nreply\nsize 400\nwords 100\n", peer.Options{})
	a.Initialize(a.root, nil)
	shared := a.NewSession(a.root)
	all := []*editor{a}
	for range daemons - 1 {
		all = append(all, a.second(peer.Options{}))
	}
	var ready, done sync.WaitGroup
	ready.Add(daemons)
	var mu sync.Mutex
	shares := 0
	for i, e := range all {
		done.Go(func() {
			b := &busy{editor: e}
			if i > 0 {
				b.answer(e.Go("initialize", map[string]any{"rootUri": "file://" + e.root, "capabilities": map[string]any{}}), nil)
				e.Notify("initialized", map[string]any{})
			}
			ready.Done()
			ready.Wait()
			for s := range sessions {
				var session struct{ Session string }
				b.answer(e.Go("fermata/session/new", map[string]any{"workspace": e.root}), &session)
				for n := range turns {
					b.completes(e.ask(session.Session, fmt.Sprintf("Daemon %d, session %d, turn %d.", i, s, n)))
				}
			}
			if b.takes(e.ask(shared, fmt.Sprintf("Daemon %d.", i))) {
				mu.Lock()
				shares++
				mu.Unlock()
			}
			b.answer(e.Go("shutdown", nil), nil)
			e.Notify("exit", nil)
			e.Exit()
		})
	}
	done.Wait()
	if shares == 0 {
		t.Errorf("nobody got a turn in the session that all wanted")
	}
	store, err := transcript.Open(a.database(), transcript.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list, _, err := store.Sessions(t.Context(), transcript.SessionQuery{Limit: 1000})
	if err != nil || len(list) != 1+daemons*sessions {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	for _, s := range list {
		if want := turns; s.ID != transcript.SessionID(shared) && s.Turns != want || s.LastOutcome != transcript.TurnCompleted {
			t.Errorf("session %+v, want %d completed turns", s, want)
		}
	}
}

// busy is one of many editors; it is used in a goroutine of its own, so it only reports.
type busy struct{ *editor }

// answer waits for a reply that must be no error.
func (b *busy) answer(id string, result any) {
	m := b.reply(id)
	if m.Error != nil {
		b.t.Errorf("request %s: %v", id, m.Error)
		return
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Errorf("request %s: %v", id, err)
		}
	}
}

func (b *busy) reply(id string) (m peer.Message) {
	b.Until(func(_ []peer.Event, replies map[string]peer.Message) (ok bool) { m, ok = replies[id]; return ok })
	return m
}

func (b *busy) completes(id string) {
	var r turnResult
	if b.answer(id, &r); r.Outcome != "completed" {
		b.t.Errorf("the turn ended %+v", r)
	}
}

// takes waits for a turn in a session that others want too: it is completed, or refused because another one runs there.
func (b *busy) takes(id string) bool {
	m := b.reply(id)
	if m.Error == nil {
		return true
	}
	if !strings.Contains(m.Error.Message, "in use by another daemon") {
		b.t.Errorf("a turn in the shared session: %v", m.Error)
	}
	return false
}

// The turn to redirect was of a daemon before this one, as after a restart of the editor.
//
// guards D2, D3
func TestARedirectThatNamesNoTurnTakesTheLastOneAlsoOfADaemonBefore(t *testing.T) {
	t.Parallel()
	for method, params := range map[string]map[string]any{
		"fermata/turn/redirect":    {"prompt": peer.Text("Rather so.")},
		"workspace/executeCommand": {"command": "fermata.redirect", "arguments": []any{map[string]any{"prompt": "Rather so."}}},
	} {
		e := newEditor(t, script("Count.", `say "One, two"`, "hang")+script("Rather so.", `say "Better."`), peer.Options{})
		e.Initialize(e.root, nil)
		id := e.ask(e.NewSession(e.root), "Count.")
		e.Kind("delta")
		e.Must("fermata/turn/stop", nil, nil)
		stopped := e.turn(id)
		e.quit()

		e.start(peer.Options{})
		e.Initialize(e.root, nil)
		e.Must(method, params, nil)
		ended := e.Kind("turn.ended")
		if n := len(e.model.Requests()); n != 2 {
			t.Fatalf("%s: %d requests, then %s", method, n, ended.Entry)
		}
		got := strings.Join(messages(t, e.model.Requests()[1].Body), "\n")
		if started := string(e.Kind("turn.started").Entry); !strings.Contains(started, stopped.Turn) || !matches("…One,…first attempt…Rather so.…", got) {
			t.Errorf("%s: %s, sent %s", method, started, got)
		}
	}
}
