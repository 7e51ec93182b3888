package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/cmd/internal/peer"
	"fermata/transcript"
)

// crashScenario is what the model says in a crash walk. Parts of an answer alternate, so that each is a delta of its own and
// every walk comes to the same places.
var crashScenario = script("Change it.",
	"size 4000", `think "Let me see. "`, `say "I look, "`, `think "then write. "`, `say "then run."`,
	`call read_file {"path":"old.txt"}`,
	`call edit_file {"path":"old.txt","old":"before","new":"after"}`,
	`call write_file {"path":"new.txt","content":"new\n"}`,
	`call run {"command":"echo ran >> ran.txt"}`) +
	script("Change it.", "size 4000", `say "All is done."`) +
	script("Say half.", "size 4000", piece(0, "text", "Hm. "), piece(0, "signature", "Eq0/one=="), piece(1, "text", "So. "), `say "half a wo"`, "hang") +
	script("Rather so.", "size 4000", `say "Better. "`,
		`call run {"command":"echo ready; exec sleep 10"}`, `call write_file {"path":"never.txt","content":"x"}`) + thenGood

// crashed is a daemon that dies somewhere on a fixed way, and what its client saw of it.
type crashed struct {
	*editor
	places  string // file: one line for each place that it came to
	session string
	events  []peer.Event
	replies []turnResult
}

// walkUntilDead starts a daemon that dies at its kth place and goes the fixed way with it: a turn with a reading tool and
// three that change something, a turn that is stopped in its answer, and a redirect that is stopped in a tool.
func walkUntilDead(t *testing.T, k int) *crashed {
	t.Helper()
	c := &crashed{places: filepath.Join(t.TempDir(), "places")}
	c.editor = newUser(t, crashScenario, "")
	c.behind("openrouter")
	c.start(peer.Options{
		Env:    []string{fmt.Sprintf("%s=%d %s", faultAt, k, c.places)},
		Answer: func(string, json.RawMessage) (any, *peer.Error) { return map[string]any{"answer": "once"}, nil },
	})
	if err := os.WriteFile(filepath.Join(c.root, "old.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.walk()
	c.Exit()
	c.events = c.Events()
	return c
}

// walk returns where the daemon died, or when it has left in order.
func (c *crashed) walk() {
	var session struct{ Session string }
	if !c.answer(c.Go("initialize", map[string]any{"rootUri": "file://" + c.root,
		"capabilities": map[string]any{"experimental": map[string]any{"fermata": map[string]any{"protocol": 1}}}}), nil) {
		return
	}
	c.Notify("initialized", map[string]any{})
	if !c.answer(c.Go("fermata/session/new", map[string]any{"workspace": c.root}), &session) {
		return
	}
	c.session = session.Session
	if !c.turn(c.ask(c.session, "Change it.")) {
		return
	}
	start := c.ask(c.session, "Say half.")
	if !c.sees("half a wo") || !c.turn(c.Go("fermata/turn/stop", nil), start) {
		return
	}
	start = c.Go("fermata/turn/redirect", map[string]any{"prompt": peer.Text("Rather so.")})
	if !c.sees("ready") || !c.turn(c.Go("fermata/turn/stop", nil), start) {
		return
	}
	if c.answer(c.Go("shutdown", nil), nil) {
		c.Notify("exit", nil)
	}
}

// answer waits for a reply; false when the daemon died first.
func (c *crashed) answer(id string, result any) bool {
	c.t.Helper()
	var m peer.Message
	if !c.Until(func(_ []peer.Event, replies map[string]peer.Message) (ok bool) { m, ok = replies[id]; return ok }) {
		return false
	}
	if m.Error != nil {
		c.t.Fatalf("request %s: %v", id, m.Error)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			c.t.Fatal(err)
		}
	}
	return true
}

func (c *crashed) turn(ids ...string) bool {
	for _, id := range ids {
		var r turnResult
		if !c.answer(id, &r) {
			return false
		}
		c.replies = append(c.replies, r)
	}
	return true
}

func (c *crashed) sees(text string) bool {
	return c.Until(func(events []peer.Event, _ map[string]peer.Message) bool {
		for _, ev := range events {
			if strings.Contains(ev.Text, text) {
				return true
			}
		}
		return false
	})
}

func (c *crashed) cameTo() []string {
	b, err := os.ReadFile(c.places)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// Each commit of a fixed conversation is a place before which and a place behind which the daemon is killed. Whatever that
// place was, the log of the next daemon holds all that the client was told, the tools are settled as the files are, and the
// session goes on.
//
// guards C1, C2, C3, P1, P2, P4, T3, invariants 1, 2 and 4
func TestADaemonKilledAtAnyCommitLosesNothingThatWasShown(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the commands of the walk are for a Unix shell; transcript and tools have their own tests there
	}
	t.Parallel()
	whole := walkUntilDead(t, 0)
	places := whole.cameTo()
	whole.checkAfter()
	var covered atomic.Int64
	t.Run("place", func(t *testing.T) {
		for k := 1; k <= len(places); k++ {
			t.Run(fmt.Sprintf("%d %s", k, places[k-1]), func(t *testing.T) {
				t.Parallel()
				for range 3 { // a slow machine can renew a lease in between
					c := walkUntilDead(t, k)
					if came := c.cameTo(); len(came) < k {
						continue
					}
					c.checkAfter()
					covered.Add(1)
					return
				}
				t.Errorf("no walk came to this place")
			})
		}
	})
	t.Logf("%d places before and behind commits, %d of them covered", len(places), covered.Load())
	if int(covered.Load()) != len(places) {
		t.Errorf("%d of %d places are covered", covered.Load(), len(places))
	}
}

// checkAfter starts the next daemon and looks at what the one before has left.
func (c *crashed) checkAfter() {
	c.t.Helper()
	c.start(peer.Options{})
	c.Initialize(c.root, nil)
	if c.session == "" {
		c.session = c.NewSession(c.root)
	}
	var opened struct{ Entries []logEntry }
	c.Must("fermata/session/open", map[string]any{"session": c.session}, &opened)
	c.checkTold(opened.Entries)
	c.checkTools(opened.Entries)

	b := &badInput{editor: c.editor}
	b.goesOn(c.session)
	b.quit()
}

// checkTold wants every entry that the client was told, every byte it was shown and every reply in the log.
func (c *crashed) checkTold(log []logEntry) {
	c.t.Helper()
	said := map[string]string{}
	ended := map[string]*transcript.TurnEnded{}
	key := func(turn string, step int, part transcript.PartType) string {
		return fmt.Sprint(turn, " ", step, " ", part)
	}
	for _, e := range log {
		switch b := decode(c.t, e).(type) {
		case *transcript.TurnStarted:
			ended[string(b.Turn)] = nil
		case *transcript.TurnEnded:
			ended[string(b.Turn)] = b
		case *transcript.Answer:
			for i, p := range b.Parts {
				said[key(string(b.Turn), b.Step, p.Type)] += p.Text
				if p.Text == "So. " && !strings.Contains(string(b.Parts[i-1].Extra), "Eq0/one==") { // T3
					c.t.Errorf("the block before it has lost its signature: %+v", b.Parts)
				}
			}
		}
	}
	shown := map[string]string{}
	for _, ev := range c.events {
		switch {
		case ev.Kind == "delta":
			k := key(ev.Turn, ev.Step, transcript.PartType(ev.Part))
			if int64(len(shown[k])) != ev.Offset {
				c.t.Errorf("a delta at %d behind %d bytes", ev.Offset, len(shown[k]))
			}
			shown[k] += ev.Text
		case ev.Seq > int64(len(log)):
			c.t.Errorf("entry %d %s was told and is not in the log", ev.Seq, ev.Kind)
		case ev.Seq > 0:
			if e := log[ev.Seq-1]; e.Kind != ev.Kind || !bytes.Equal(e.Entry, ev.Entry) {
				c.t.Errorf("entry %d was told as %s %s, the log has %s %s", ev.Seq, ev.Kind, ev.Entry, e.Kind, e.Entry)
			}
		}
	}
	for k, text := range shown {
		if !strings.HasPrefix(said[k], text) {
			c.t.Errorf("of %s was shown %q, the log has %q", k, text, said[k])
		}
	}
	for turn, end := range ended {
		if end == nil {
			c.t.Errorf("turn %s has no end", turn)
		}
	}
	for _, r := range c.replies {
		end := ended[r.Turn]
		if end == nil || string(end.Outcome) != r.Outcome || (r.Kept == nil) != (end.Kept == nil) {
			c.t.Errorf("the reply %+v, the log %+v", r, end)
			continue
		}
		if r.Kept != nil {
			all := said[key(r.Turn, 1, transcript.PartReasoning)] + said[key(r.Turn, 1, transcript.PartText)]
			if sum := sha256.Sum256([]byte(all)); hex.EncodeToString(sum[:]) != r.Kept.SHA256 {
				c.t.Errorf("kept %+v, the log has %q", r.Kept, all)
			}
		}
	}
}

// effects are what the calls of the walk do, found by their arguments. Those with an intent are settled by evidence (C3).
var effects = []struct {
	args, path, before, after string
	intent                    bool
}{
	{`"old":"before"`, "old.txt", "before\n", "after\n", true},
	{`"new.txt"`, "new.txt", "none", "new\n", true},
	{`"never.txt"`, "never.txt", "none", "x", true},
	{`ran.txt`, "ran.txt", "none", "ran\n", false},
}

// checkTools wants of every call that changes something that its settlement says what the files say (C3).
func (c *crashed) checkTools(log []logEntry) {
	c.t.Helper()
	type key struct {
		turn transcript.TurnID
		step int
		call transcript.CallID
	}
	calls, settled := map[key]transcript.Call{}, map[key]*transcript.ToolSettled{}
	intended := map[key]bool{}
	for _, e := range log {
		switch b := decode(c.t, e).(type) {
		case *transcript.Answer:
			for _, call := range b.Calls() {
				calls[key{b.Turn, b.Step, call.ID}] = call
			}
		case *transcript.FileChanged:
			intended[key{b.Turn, b.Step, b.Call}] = true
		case *transcript.ToolSettled:
			k := key{b.Turn, b.Step, b.Call}
			if settled[k] != nil {
				c.t.Errorf("%s was settled twice", b.Name)
			}
			settled[k] = b
		}
	}
	for k, call := range calls {
		s := settled[k]
		if s == nil {
			c.t.Errorf("the call %+v is not settled", call)
			continue
		}
		for _, effect := range effects {
			if !strings.Contains(call.Args, effect.args) {
				continue
			}
			is := "none"
			if content, err := os.ReadFile(filepath.Join(c.root, effect.path)); err == nil {
				is = string(content)
			}
			switch {
			case s.State == transcript.ToolDone && is == effect.after,
				s.State == transcript.ToolNotStarted && is == effect.before,
				s.State == transcript.ToolUnknown && !(effect.intent && intended[k]):
			default:
				c.t.Errorf("%s is settled as %s (%s); its intent is in the log: %v; the file holds %q", call.Args, s.State, s.Cause, intended[k], is)
			}
		}
	}
}

// decode is an entry's body, nil for kinds that a crash walk does not look at.
func decode(t testing.TB, e logEntry) transcript.Body {
	t.Helper()
	var b transcript.Body
	switch transcript.Kind(e.Kind) {
	case transcript.KindTurnStarted:
		b = new(transcript.TurnStarted)
	case transcript.KindTurnEnded:
		b = new(transcript.TurnEnded)
	case transcript.KindAnswer:
		b = new(transcript.Answer)
	case transcript.KindFileChanged:
		b = new(transcript.FileChanged)
	case transcript.KindToolSettled:
		b = new(transcript.ToolSettled)
	default:
		return nil
	}
	if err := json.Unmarshal(e.Entry, b); err != nil {
		t.Fatal(err)
	}
	return b
}
