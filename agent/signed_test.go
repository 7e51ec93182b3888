package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/agent/check"
	"fermata/agent/model"
	"fermata/agent/model/chat"
)

// signedWorld is a world whose model signs its reasoning, block by block, as Claude does through OpenRouter.
func signedWorld(t *testing.T, scripts ...func(*reply)) *world {
	t.Helper()
	w := newWorld(t, nil, scripts...)
	provider, err := chat.New(chat.Options{Name: "test", Kind: "openrouter", BaseURL: w.model.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	w.agent.o.Models = func(string) (Model, error) {
		return Model{Provider: provider, ProviderName: "test", Name: "signing"}, nil
	}
	return w
}

// item is a piece of a block of reasoning, with one member.
func (r *reply) item(index int, key, value string) {
	delta := map[string]any{"reasoning_details": []any{map[string]any{
		"type": "reasoning.text", "format": "anthropic-claude-v1", "index": index, key: value,
	}}}
	if key == "text" {
		delta["reasoning"] = value
	}
	r.chunk(delta)
}

func (r *reply) thinkTwice() {
	r.item(0, "text", "First, ")
	r.item(0, "text", "I look.")
	r.item(0, "signature", "Eq0/one==")
	r.item(1, "text", "Then I ")
}

const (
	blockOne = `{"type":"reasoning.text","text":"First, I look.","format":"anthropic-claude-v1","index":0,"signature":"Eq0/one=="}`
	blockTwo = `{"type":"reasoning.text","text":"Then I write.","format":"anthropic-claude-v1","index":1,"signature":"Eq0/two=="}`
)

// assistants are the exact bytes of the answers in the nth request.
func (w *world) assistants(n int) (out []string) {
	w.t.Helper()
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(w.model.body(n)), &body); err != nil {
		w.t.Fatalf("request %d: %v: %s", n, err, w.model.body(n))
	}
	for _, m := range body.Messages {
		if strings.HasPrefix(string(m), `{"role":"assistant"`) {
			out = append(out, string(m))
		}
	}
	return out
}

// unsendable is what the newest input leaves out, as show model input says it.
func (w *world) unsendable() (out []string) {
	w.t.Helper()
	m, err := w.agent.o.Models("")
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := w.store.Requests(w.t.Context(), w.s.ID())
	if err != nil || len(list) == 0 {
		w.t.Fatal(len(list), err)
	}
	messages, err := w.store.Messages(w.t.Context(), list[len(list)-1].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, why := range model.Unsendable(m.Provider.Dialect(), messages) {
		out = append(out, why...)
	}
	return out
}

// T3: the signature of a finished block is stored when the block ends. So whatever cuts the answer afterwards, the block goes
// out with its signature, and of the block that was cut nothing does (T2).
//
// guards T3, T1, T2, S4, F4, K6
func TestTheSignatureOfAFinishedBlockIsStoredWhenTheBlockEndsT3(t *testing.T) {
	cutInTwo := func(r *reply) { r.thinkTwice(); r.hang() }
	// The block is in the log, but Claude takes no message of reasoning alone.
	const (
		nothing = "answer: not sent, because it says nothing that can be sent"
		alone   = "reasoning block 1: not sendable, because nothing was said behind it\n" +
			"reasoning block 2: not sendable, because it was cut before its signature came\n" + nothing
	)
	cases := map[string]struct {
		script  func(*reply)
		waitFor string // then the turn is stopped; "" means that it ends by itself
		keep    bool
		hold    bool
		text    string
		blocks  string
		left    string
	}{
		"stopped in the second block": {
			script: cutInTwo, waitFor: "Then I ", left: alone,
		},
		"stopped in the first block": {
			script:  func(r *reply) { r.item(0, "text", "First, "); r.hang() },
			waitFor: "First, ", left: "reasoning: not sendable, because it was cut before its signature came\n" + nothing,
		},
		"stopped behind both blocks": {
			script: func(r *reply) {
				r.thinkTwice()
				r.item(1, "text", "write.")
				r.item(1, "signature", "Eq0/two==")
				r.say("I beg")
				r.hang()
			},
			waitFor: "I beg", text: "I beg", blocks: blockOne + "," + blockTwo,
		},
		"stopped in the second block, shown only when checks pass": {
			script: cutInTwo, hold: true, left: alone,
		},
		"broken off in the second block, and kept": {
			script: func(r *reply) { r.thinkTwice() }, keep: true, left: alone,
		},
		"broken off behind a block and words, and kept": {
			script: func(r *reply) { r.item(0, "text", "I look."); r.item(0, "signature", "Eq0/one=="); r.say("So ") }, keep: true, text: "So ",
			blocks: `{"type":"reasoning.text","text":"I look.","format":"anthropic-claude-v1","index":0,"signature":"Eq0/one=="}`,
		},
		"complete": {
			script: func(r *reply) {
				r.thinkTwice()
				r.item(1, "text", "write.")
				r.say("Done.")
				r.item(1, "signature", "Eq0/two==") // late
				r.done()
			},
			text: "Done.", blocks: blockOne + "," + blockTwo,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := signedWorld(t, c.script, func(r *reply) { r.say("Good."); r.done() })
			if c.hold {
				w.agent.o.Checks = []check.Definition{{Name: "words", Pattern: []string{"never said"}, Hold: true}}
			}
			turn, out := w.start(say("Count."))
			switch {
			case c.hold:
				w.journalled("First, I look.Then I ")
				turn.Stop(ErrStopped)
			case c.waitFor != "":
				w.until(deltaEndsWith(c.waitFor))
				turn.Stop(ErrStopped)
			}
			<-out
			if c.keep {
				if _, err := w.agent.Keep(t.Context(), turn.ID()); err != nil {
					t.Fatal(err)
				}
			}
			w.run(say("Go on."))
			want := ""
			if c.blocks != "" {
				want = `{"role":"assistant","content":"` + c.text + `","reasoning":"","reasoning_details":[` + c.blocks + `]}`
			}
			if got := strings.Join(w.assistants(2), "\n"); got != want {
				t.Errorf("the next input has\n%s\nwant\n%s", got, want)
			}
			if got := strings.Join(w.unsendable(), "\n"); got != c.left {
				t.Errorf("shown as not sendable: %q, want %q", got, c.left)
			}
		})
	}
}

// guards C4, T3: what goes back with a part is no delta of anybody's.
func TestAFollowerIsToldTheWordsOfSignedBlocksAndNothingElse(t *testing.T) {
	w := signedWorld(t,
		func(r *reply) {
			r.thinkTwice()
			r.item(1, "text", "write.")
			r.say("I beg")
			r.item(1, "signature", "Eq0/two==")
			r.say("in.")
			r.hang()
		},
		func(r *reply) { r.say("Good."); r.done() },
	)
	o, witness := w.other(t), w.other(t)
	turn, out := w.start(say("Count."))
	witness.until(deltaEndsWith("in.")) // while it is said
	turn.Stop(ErrStopped)
	<-out
	if want, got := w.story(1), o.story(1); got != want {
		t.Errorf("the daemon that runs the turn told\n%s\nthe one that follows\n%s", want, got)
	}
	o.run(say("Go on."))
	want := `{"role":"assistant","content":"I begin.","reasoning":"","reasoning_details":[` + blockOne + "," + blockTwo + `]}`
	if got := w.assistants(2); len(got) != 1 || got[0] != want {
		t.Errorf("the follower's request has\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
