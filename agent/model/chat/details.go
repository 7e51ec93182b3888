package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"fermata/agent/model"
	"fermata/transcript"
)

// OpenRouter sends reasoning as `reasoning_details`, a list of items, beside the plain text of them in `reasoning`
// (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens), and takes them back on the assistant's message: all of
// them, as they were and in their order. A stream brings an item in pieces. What is known of how:
//
//   - pieces of a reasoning.text or reasoning.summary have the item's type and index; their texts are joined;
//   - the signature of a text (Claude) comes in a last piece without text, also after the first words of the answer or
//     after its calls; from then on the item is closed;
//   - a reasoning.encrypted is whole. It has the index of the summary or text that it belongs to (OpenAI, Gemini), or
//     stands alone (Grok, redacted reasoning); Gemini's can follow the answer.
//
// Each item is a part of the answer: its text is the part's, all its other members are the part's Extra, in the order in
// which they came, "type" first.

// The types of items that are known. Text and summary have a text; others are kept whole.
const (
	detailText      = "reasoning.text"
	detailSummary   = "reasoning.summary"
	detailEncrypted = "reasoning.encrypted"
)

// textKey is the member that holds an item's text, "" for an item without.
func textKey(typ string) string {
	switch typ {
	case detailText:
		return "text"
	case detailSummary:
		return "summary"
	}
	return ""
}

// detail is an item without its text.
type detail struct{ members []member }

// member is a member of a JSON object. Its value is compact and UTF-8, and otherwise as it came.
type member struct {
	key string
	raw json.RawMessage
}

// readDetail reads an item, or a piece of one. text is its text as a JSON string, nil when there is none. ok is false for
// what is no object with a type.
func readDetail(raw []byte) (d detail, text json.RawMessage, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return detail{}, nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return detail{}, nil, false
		}
		var b bytes.Buffer
		if json.Compact(&b, value) != nil {
			return detail{}, nil, false
		}
		name, _ := key.(string) // always one
		m := member{name, bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))}
		if name == "type" {
			d.members = append([]member{m}, d.members...)
		} else {
			d.members = append(d.members, m)
		}
	}
	typ := d.str("type")
	if typ == "" {
		return detail{}, nil, false
	}
	if key := textKey(typ); key != "" {
		if value := d.raw(key); len(value) > 0 && (value[0] == '"' || string(value) == "null") {
			if value[0] == '"' {
				text = value
			}
			d = d.without(key)
		}
	}
	return d, text, true
}

// raw is a member's value, nil when there is none of that name.
func (d detail) raw(key string) json.RawMessage {
	for _, m := range d.members {
		if m.key == key {
			return m.raw
		}
	}
	return nil
}

// str is a member that is a string, else "".
func (d detail) str(key string) string {
	var s string
	if json.Unmarshal(d.raw(key), &s) != nil {
		return ""
	}
	return s
}

func (d detail) without(key string) detail {
	var out detail
	for _, m := range d.members {
		if m.key != key {
			out.members = append(out.members, m)
		}
	}
	return out
}

// closed says that nothing more can belong to the item.
func (d detail) closed() bool { return textKey(d.str("type")) == "" || d.str("signature") != "" }

// goesOn says whether p is a piece of d: of the same type, and of the same index and id where both have one.
func (d detail) goesOn(p detail) bool {
	if d.closed() || d.str("type") != p.str("type") {
		return false
	}
	for _, key := range []string{"index", "id"} {
		if a, b := d.raw(key), p.raw(key); !vacant(a) && !vacant(b) && !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}

func vacant(raw []byte) bool { return !isSet(raw) || string(raw) == `""` }

// merge adds what a piece says, and reports whether that was anything new.
func (d *detail) merge(p detail) (changed bool) {
	for _, m := range p.members {
		old := -1
		for i := range d.members {
			if d.members[i].key == m.key {
				old = i
			}
		}
		switch {
		case old < 0:
			d.members = append(d.members, m)
		case vacant(m.raw) || bytes.Equal(d.members[old].raw, m.raw):
			continue
		default:
			d.members[old].raw = m.raw
		}
		changed = true
	}
	return changed
}

// extra is the item as [transcript.Part].Extra holds it.
func (d detail) extra() json.RawMessage { return d.append(nil, nil) }

// append appends the item's JSON, with its text behind the type unless text is nil.
func (d detail) append(b []byte, text *string) []byte {
	b = append(b, '{')
	for i, m := range d.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(transcript.AppendString(b, m.key), ':'), m.raw...)
		if i == 0 && text != nil {
			b = append(transcript.AppendString(append(b, ','), textKey(d.str("type"))), ':')
			b = transcript.AppendString(b, *text)
		}
	}
	return append(b, '}')
}

// reason adds the items of a chunk, or pieces of them, and reports whether they have text. What is no list of items is not
// looked at.
func (a *assembler) reason(list json.RawMessage, yield func(model.Delta) bool) (said, more bool) {
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return false, true
	}
	for _, raw := range items {
		d, text, ok := readDetail(raw)
		if !ok {
			continue
		}
		hasText := !vacant(text)
		said = said || hasText
		i := len(a.parts) - 1
		for i >= 0 && (a.parts[i].item == nil || !a.parts[i].item.goesOn(d)) {
			i--
		}
		if i < 0 || hasText && i != a.last {
			item := d
			if hasText && d.closed() { // a signature never stands with less than its text
				item = d.without("signature")
			}
			if !a.flushReasoning(yield) || !a.begin(transcript.PartReasoning, &item, yield) {
				return said, false
			}
			i = a.last
		}
		if hasText {
			a.scratch = a.reasoning.add(a.scratch[:0], text)
			if !a.saidIn(i, yield) {
				return said, false
			}
		}
		p := &a.parts[i]
		if !p.item.merge(d) {
			continue
		}
		if i == a.last && p.item.closed() && !a.flushReasoning(yield) {
			return said, false
		}
		if !yield(model.Delta{Kind: model.PartExtra, Part: p.number, Type: p.kind, Extra: p.item.extra()}) {
			return said, false
		}
	}
	return said, true
}

// detailOf is the item that a part is; ok is false for one that is none.
func detailOf(p transcript.Part) (d detail, ok bool) {
	if p.Type != transcript.PartReasoning || len(p.Extra) == 0 {
		return detail{}, false
	}
	d, _, ok = readDetail(p.Extra)
	return d, ok
}

// plainReasoning is the answer's reasoning that is no item.
func plainReasoning(a *transcript.Answer) string {
	var b strings.Builder
	for _, p := range a.Parts {
		if _, ok := detailOf(p); p.Type == transcript.PartReasoning && !ok {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// appendDetails appends the member reasoning_details with the items that can be sent, or nothing when there are none.
func (d dialect) appendDetails(b []byte, a *transcript.Answer) []byte {
	left := d.leftOut(a)
	n := 0
	for i, p := range a.Parts {
		item, ok := detailOf(p)
		if !ok || left[i] != "" {
			continue
		}
		if n++; n == 1 {
			b = append(b, `,"reasoning_details":[`...)
		} else {
			b = append(b, ',')
		}
		if textKey(item.str("type")) == "" {
			b = item.append(b, nil)
		} else {
			b = item.append(b, &p.Text)
		}
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}

// leftOut says, by the index of a part, which items cannot be sent and why (T2). The first such ends the list: its order may
// not be changed, and nothing may be missing between two items. Bound reasoning alone is no message either: Claude refuses one
// that ends with it, OpenAI such reasoning without the item that followed.
func (d dialect) leftOut(a *transcript.Answer) map[int]string {
	var out map[int]string
	why := ""
	alone := d.version > 2 && !a.Speaks()
	for i, p := range a.Parts {
		item, ok := detailOf(p)
		if !ok {
			continue
		}
		switch cut := unfinished(a, i, item); {
		case cut != "":
			why = cut
		case why != "":
			why = "the block before it is not sent"
		case alone && bound(item):
			why = "nothing was said behind it"
		}
		if why != "" {
			if out == nil {
				out = map[int]string{}
			}
			out[i] = why
		}
	}
	return out
}

// bound says whether a provider checks an item: by a signature, or by what is encrypted in it or behind it.
func bound(d detail) bool {
	format := d.str("format")
	switch d.str("type") {
	case detailText:
		return claudes(format)
	case detailSummary:
		return strings.Contains(format, "responses")
	case detailEncrypted:
		return true
	}
	return false
}

// claudes says whether text reasoning of a format is Claude's, which "" is by default.
func claudes(format string) bool { return format == "" || strings.HasPrefix(format, "anthropic") }

// unfinished says why a provider would refuse part i, which is d, "" when it would not. Claude's reasoning is bound to its
// signature, in a complete answer too. OpenAI's and Grok's summaries are nothing without the encrypted reasoning behind
// them; where a complete answer has none, none was issued. Other reasoning is bound to nothing, and goes as far as it came
// (S4).
func unfinished(a *transcript.Answer, i int, d detail) string {
	format, cut := d.str("format"), a.State != transcript.Complete
	switch typ := d.str("type"); {
	case typ == detailText && claudes(format):
		switch {
		case d.str("signature") != "":
			return ""
		case cut:
			return "it was cut before its signature came"
		}
		return "it came without a signature"
	case typ == detailSummary && cut && strings.Contains(format, "responses"):
		for _, p := range a.Parts[i+1:] {
			if next, ok := detailOf(p); p.Type == transcript.PartText || ok && textKey(next.str("type")) == "" {
				return ""
			}
		}
		return "it was cut before its block ended"
	}
	return ""
}

// unsendableDetails says which items are left out and why; blocks are counted from 1 when there are several.
func (d dialect) unsendableDetails(a *transcript.Answer) []string {
	left := d.leftOut(a)
	if len(left) == 0 {
		return nil
	}
	var out []string
	blocks := 0
	for _, p := range a.Parts {
		if p.Type == transcript.PartReasoning {
			blocks++
		}
	}
	n := 0
	for i, p := range a.Parts {
		if p.Type != transcript.PartReasoning {
			continue
		}
		n++
		name := "reasoning"
		if blocks > 1 {
			name = fmt.Sprintf("reasoning block %d", n)
		}
		if why := left[i]; why != "" && p.Text != "" {
			out = append(out, name+": not sendable, because "+why)
		}
	}
	return out
}
