package chat

import (
	"bytes"
	"encoding/json"
	"fmt"

	"fermata/agent/model"
	"fermata/transcript"
)

// chunk is what is read of a `chat.completion.chunk`. Strings that may be split within a character stay raw.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"` // "error" in old vLLM, with message and code beside it
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          json.RawMessage `json:"content"`
			Refusal          json.RawMessage `json:"refusal"`
			ReasoningContent json.RawMessage `json:"reasoning_content"`
			Reasoning        json.RawMessage `json:"reasoning"`
			ReasoningDetails json.RawMessage `json:"reasoning_details"`
			ToolCalls        []callPiece     `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

// usage is OpenAI's, and DeepSeek's name for the cached part. Details can be null or missing.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	CacheHit   int64 `json:"prompt_cache_hit_tokens"`
	InDetails  struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *usage) tokens() *transcript.Usage {
	return &transcript.Usage{
		Input:     u.Prompt,
		Cached:    max(u.InDetails.Cached, u.CacheHit),
		Output:    u.Completion,
		Reasoning: u.OutDetails.Reasoning,
	}
}

// assembler puts a stream's chunks together to an answer. Invariant: the texts of the parts are the concatenation of the
// deltas that add and end gave, part for part (P1).
type assembler struct {
	parts     []building
	count     int // of the parts that the deltas made, as [transcript.Spoken] has them
	last      int // the newest of them, an index of parts; meaningless while count is 0
	details   bool
	text      joiner
	reasoning joiner
	finish    string
	usage     *transcript.Usage
	scratch   []byte
	key       string // taken out of errors that quote the stream
}

// building is a part that grows.
type building struct {
	kind   transcript.PartType
	text   []byte // of text and reasoning, or the arguments of a call
	args   joiner
	number int     // of text and reasoning, as [transcript.Spoken] has it
	item   *detail // of reasoning that came as an item of reasoning_details
	index  int     // of a call, as the stream numbers it
	id     string
	name   string
	extra  json.RawMessage
}

// add takes the data of one event and gives what is new to yield. It stops when yield gives false. The error, an
// [*model.Error], means that the answer failed.
func (a *assembler) add(data []byte, yield func(model.Delta) bool) (more bool, err error) {
	if c, ok := scanBrief(data); ok {
		return a.addBrief(c, yield), nil
	}
	return a.addChunk(data, yield)
}

// addChunk does what add does, for any chunk.
func (a *assembler) addChunk(data []byte, yield func(model.Delta) bool) (more bool, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, &model.Error{Class: model.Malformed, Message: "an event is not a chat completion chunk: " + excerpt(data, a.key), Err: err}
	}
	if isSet(c.Error) || c.Object == "error" {
		return false, eventError(data, c.Error, a.key)
	}
	if c.Usage != nil {
		a.usage = c.Usage.tokens()
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 { // one answer was asked for
			continue
		}
		d := &ch.Delta
		if a.details && isSet(d.ReasoningDetails) {
			said, more := a.reason(d.ReasoningDetails, yield)
			if !more {
				return false, nil
			}
			if said { // the plain fields say it again
				d.ReasoningContent, d.Reasoning = nil, nil
			}
		}
		for _, piece := range [...]struct {
			kind transcript.PartType
			raw  json.RawMessage
		}{
			{transcript.PartReasoning, d.ReasoningContent},
			{transcript.PartReasoning, once(d.Reasoning, d.ReasoningContent)}, // servers that send both send the same twice
			{transcript.PartText, d.Content},
			{transcript.PartText, d.Refusal}, // what the model says instead of an answer: people read it as its text
		} {
			if !isSet(piece.raw) {
				continue
			}
			if piece.raw[0] != '"' {
				return false, &model.Error{Class: model.Malformed, Message: "a delta's text is not a string: " + excerpt(piece.raw, a.key)}
			}
			if !a.say(piece.kind, piece.raw, yield) {
				return false, nil
			}
		}
		for k := range d.ToolCalls {
			if err := a.call(&d.ToolCalls[k]); err != nil {
				return false, err
			}
			if !yield(model.Delta{Kind: model.CallPiece}) {
				return false, nil
			}
		}
		if ch.FinishReason != "" {
			a.finish = ch.FinishReason
		}
	}
	return true, nil
}

// addBrief does what add does, for a chunk that is only text.
func (a *assembler) addBrief(c brief, yield func(model.Delta) bool) bool {
	if c.reasoning != nil && !a.say(transcript.PartReasoning, c.reasoning, yield) {
		return false
	}
	if c.content != nil && !a.say(transcript.PartText, c.content, yield) {
		return false
	}
	if len(c.finish) > len(`""`) {
		var j joiner
		a.finish = string(j.add(nil, c.finish))
	}
	return true
}

func once(raw, other json.RawMessage) json.RawMessage {
	if isSet(other) {
		return nil
	}
	return raw
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// say adds a piece of text or reasoning; a piece that completes no character yields nothing.
func (a *assembler) say(kind transcript.PartType, raw []byte, yield func(model.Delta) bool) bool {
	j := &a.text
	if kind == transcript.PartReasoning {
		j = &a.reasoning
	}
	a.scratch = j.add(a.scratch[:0], raw)
	return a.said(kind, yield)
}

// said records scratch, of the kind, and yields it. It is part of no item.
func (a *assembler) said(kind transcript.PartType, yield func(model.Delta) bool) bool {
	if len(a.scratch) == 0 {
		return true
	}
	n := len(a.parts)
	if n == 0 || a.parts[n-1].kind != kind || a.parts[n-1].item != nil {
		if !a.begin(kind, nil, yield) {
			return false
		}
		n = len(a.parts)
	}
	return a.saidIn(n-1, yield)
}

// saidIn is said for the part at an index, which is the last that was spoken.
func (a *assembler) saidIn(i int, yield func(model.Delta) bool) bool {
	if len(a.scratch) == 0 {
		return true
	}
	p := &a.parts[i]
	p.text = append(p.text, a.scratch...)
	d := model.Delta{Kind: model.Text, Text: string(a.scratch)}
	if p.kind == transcript.PartReasoning {
		d.Kind = model.Reasoning
	}
	return yield(d)
}

// begin begins a part of text or reasoning. What [transcript.Spoken] would take for more of the part before is begun in so
// many words.
func (a *assembler) begin(kind transcript.PartType, item *detail, yield func(model.Delta) bool) bool {
	before := building{}
	if a.count > 0 {
		before = a.parts[a.last]
	}
	b := building{kind: kind, item: item, number: a.count}
	if before.kind == kind && item == nil && before.item == nil {
		b.number = before.number // a call stands between them
	}
	a.last, a.count = len(a.parts), b.number+1
	a.parts = append(a.parts, b)
	switch {
	case item != nil:
		return yield(model.Delta{Kind: model.PartExtra, Part: b.number, Type: kind, Extra: item.extra()})
	case before.kind == kind && before.item != nil:
		return yield(model.Delta{Kind: model.PartExtra, Part: b.number, Type: kind})
	}
	return true
}

// flushReasoning says what is held of a character that no later piece of reasoning completes.
func (a *assembler) flushReasoning(yield func(model.Delta) bool) bool {
	a.scratch = a.reasoning.flush(a.scratch[:0])
	if a.count > 0 && a.parts[a.last].kind == transcript.PartReasoning && a.parts[a.last].item != nil {
		return a.saidIn(a.last, yield)
	}
	return a.said(transcript.PartReasoning, yield)
}

// call adds a piece of a call. Pieces belong together by index; servers that number badly are put right: without an index
// a piece goes to the last call, and a name begins another call when the one it would go to has another id, or already
// has whole arguments. Names come whole or in pieces, once or repeated with every piece.
func (a *assembler) call(p *callPiece) error {
	c := a.find(p)
	if c == nil {
		index := 0
		if p.Index != nil {
			index = *p.Index
		}
		a.parts = append(a.parts, building{kind: transcript.PartCall, index: index})
		c = &a.parts[len(a.parts)-1]
	}
	if c.id == "" {
		c.id = p.ID
	}
	if p.Function.Name != c.name {
		c.name += p.Function.Name
	}
	if isSet(p.ExtraContent) {
		var b bytes.Buffer // compact, so that storing it changes nothing; otherwise as it came
		if err := json.Compact(&b, p.ExtraContent); err == nil {
			c.extra = bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))
		}
	}
	switch args := p.Function.Arguments; {
	case !isSet(args):
	case args[0] == '"':
		c.text = c.args.add(c.text, args)
	case args[0] == '{': // some servers send the object itself
		c.text = append(c.text, bytes.ToValidUTF8(args, []byte("\ufffd"))...)
	default:
		return &model.Error{Class: model.Malformed, Message: "a call's arguments are not a string: " + excerpt(args, a.key)}
	}
	return nil
}

func (a *assembler) find(p *callPiece) *building {
	for i := len(a.parts) - 1; i >= 0; i-- {
		c := &a.parts[i]
		if c.kind != transcript.PartCall || (p.Index != nil && c.index != *p.Index) {
			continue
		}
		if p.Function.Name == "" {
			return c
		}
		if p.ID != "" && c.id != "" && p.ID != c.id {
			return nil
		}
		if !json.Valid(c.text) || !isSet(p.Function.Arguments) {
			return c
		}
		if p.ID != "" && p.ID == c.id && p.Function.Name == c.name {
			return c
		}
		return nil
	}
	return nil
}

// end flushes held characters and returns the End delta: what the stream came to.
func (a *assembler) end(yield func(model.Delta) bool) bool {
	if !a.flushReasoning(yield) {
		return false
	}
	a.scratch = a.text.flush(a.scratch[:0])
	if !a.said(transcript.PartText, yield) {
		return false
	}
	taken := map[string]bool{}
	for i := range a.parts {
		if a.parts[i].kind == transcript.PartCall {
			taken[a.parts[i].id] = true
		}
	}
	seen := map[string]bool{}
	parts := make([]transcript.Part, 0, len(a.parts))
	for i := range a.parts {
		b := &a.parts[i]
		if b.kind != transcript.PartCall {
			p := transcript.Part{Type: b.kind, Text: string(b.text)}
			if b.item != nil {
				p.Extra = b.item.extra()
			}
			parts = append(parts, p)
			continue
		}
		id := b.id
		for n := 1; id == "" || seen[id]; n++ { // no id, or a second call with the same: the first free call_N
			if s := fmt.Sprintf("call_%d", n); !taken[s] {
				id = s
			}
		}
		seen[id], taken[id] = true, true
		parts = append(parts, transcript.Part{
			Type:  b.kind,
			Call:  &transcript.Call{ID: transcript.CallID(id), Name: b.name, Args: string(b.args.flush(b.text))},
			Extra: b.extra,
		})
	}
	return yield(model.Delta{Kind: model.End, Parts: parts, Finish: a.finish, Usage: a.usage})
}
