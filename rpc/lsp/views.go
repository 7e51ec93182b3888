package lsp

import (
	"slices"
	"sync"
	"unicode"

	"fermata/agent"
	"fermata/rpc/wire"
	"fermata/transcript"
)

// views are what the standard controls (code lenses, code actions, progress) show of the turns of this connection. They
// are made from events only.
type views struct {
	mu    sync.Mutex
	turns []*view // oldest first, at most maxViews
	begun map[transcript.TurnID]chan struct{}
}

const maxViews = 200

// view is one turn.
type view struct {
	turn       transcript.TurnID
	session    transcript.SessionID
	prompt     []transcript.PromptPart
	key        string // of the document where it was asked, "" for none
	anchor     wire.Anchor
	stopping   bool
	outcome    transcript.Outcome // "" while it runs
	silent     bool
	redirected bool
	withheld   bool // by checks
	attempt    bool // it ended with an answer that broke off and is not kept
	changed    bool // it changed a file, or was about to

	words  int // said so far
	before int // words of the steps before
	step   int
	inWord bool
}

// see takes an event into account, and reports whether a control in a document has changed.
func (v *views) see(ev agent.Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	var t *view
	switch {
	case ev.Delta != nil:
		if t = v.find(ev.Delta.Turn); t != nil && ev.Delta.Part == transcript.PartText {
			t.count(ev.Delta.Step, ev.Delta.Text)
		}
	case ev.Retracted != nil:
		if t = v.find(ev.Retracted.Turn); t != nil {
			t.words, t.inWord = t.before, false
		}
	case ev.Stopping != nil:
		if t = v.find(ev.Stopping.Turn); t != nil {
			t.stopping = true
		}
	case ev.Entry != nil:
		switch b := ev.Entry.Body.(type) {
		case *transcript.TurnStarted:
			t = v.add(ev.Session, b)
		case *transcript.Answer:
			if t = v.find(b.Turn); t != nil {
				t.attempt = b.State == transcript.Broken
			}
		case *transcript.Admission:
			if t = v.find(b.Turn); t != nil && b.Admitted {
				t.attempt = false
			}
		case *transcript.FileChanged:
			if t = v.find(b.Turn); t != nil {
				t.changed = true
			}
		case *transcript.TurnEnded:
			if t = v.find(b.Turn); t != nil {
				t.outcome, t.silent, t.withheld = b.Outcome, b.Silent, len(b.Withheld) > 0
				if b.Kept != nil {
					t.words = b.Kept.Words
				}
			}
		}
	}
	return t != nil && t.key != ""
}

// await is closed when the turn has begun. Call forget afterwards.
func (v *views) await(id transcript.TurnID) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.begun == nil {
		v.begun = map[transcript.TurnID]chan struct{}{}
	}
	v.begun[id] = make(chan struct{})
	return v.begun[id]
}

func (v *views) forget(id transcript.TurnID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.begun, id)
}

func (v *views) add(session transcript.SessionID, b *transcript.TurnStarted) *view {
	t := &view{turn: b.Turn, session: session, prompt: b.Prompt}
	if a := b.Anchor; a != nil {
		t.key = key(a.URI)
		t.anchor = wire.Anchor{URI: a.URI, Range: wire.Range{
			Start: wire.Position{Line: uint32(a.StartLine), Character: uint32(a.StartChar)},
			End:   wire.Position{Line: uint32(a.EndLine), Character: uint32(a.EndChar)},
		}}
	}
	if old := v.find(b.Redirects); old != nil {
		old.redirected = true
	}
	if len(v.turns) == maxViews {
		v.turns = slices.Delete(v.turns, 0, 1)
	}
	v.turns = append(v.turns, t)
	if c := v.begun[b.Turn]; c != nil {
		close(c)
		delete(v.begun, b.Turn)
	}
	return t
}

// count counts the words of a text that comes in pieces.
func (t *view) count(step int, text string) {
	if step != t.step {
		t.step, t.before, t.inWord = step, t.words, false
	}
	for _, r := range text {
		space := unicode.IsSpace(r)
		if !space && !t.inWord {
			t.words++
		}
		t.inWord = !space
	}
}

// find is called with the lock held.
func (v *views) find(id transcript.TurnID) *view {
	for _, t := range slices.Backward(v.turns) {
		if t.turn == id {
			return t
		}
	}
	return nil
}

// get is a copy of a turn's view; "" is the newest.
func (v *views) get(id transcript.TurnID) (view, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t := v.find(id); t != nil {
		return *t, true
	}
	if n := len(v.turns); id == "" && n > 0 {
		return *v.turns[n-1], true
	}
	return view{}, false
}

// in are copies of the views with a control in a document: the turns that run, and of each session the last one unless
// it came to its end by itself or was replaced.
func (v *views) in(key string) []view {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []view
	last := map[transcript.SessionID]bool{}
	for _, t := range slices.Backward(v.turns) {
		newest := !last[t.session]
		last[t.session] = true
		if t.key != key || key == "" {
			continue
		}
		if t.outcome == "" || newest && !t.redirected && t.outcome != transcript.TurnCompleted {
			out = append(out, *t)
		}
	}
	slices.Reverse(out)
	return out
}

// shift moves the anchors in a document as its text changes above them.
func (v *views) shift(key string, c change) {
	if c.Range == nil {
		return
	}
	lines := int64(countLines(c.Text)) - (int64(c.Range.End.Line) - int64(c.Range.Start.Line))
	if lines == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.turns {
		r := &t.anchor.Range
		if t.key != key || r.Start.Line < c.Range.End.Line ||
			r.Start.Line == c.Range.Start.Line && c.Range.Start.Character > 0 {
			continue
		}
		r.Start.Line = uint32(max(0, int64(r.Start.Line)+lines))
		r.End.Line = uint32(max(int64(r.Start.Line), int64(r.End.Line)+lines))
	}
}
