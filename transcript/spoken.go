package transcript

import "encoding/json"

// Spoken is an answer while it is being said: its parts so far, calls left out. It is the one rule for which part a delta
// belongs to, so that whoever numbers parts (a dialect), keeps them (a stop) and joins them again (repair) means the same
// ones. The zero value is an answer of which nothing was said. It is not safe for concurrent use.
type Spoken struct{ parts []spokenPart }

type spokenPart struct {
	typ   PartType
	text  []byte
	extra json.RawMessage
}

// Say adds text to the last part when that is of the same type, else to a new one.
func (s *Spoken) Say(t PartType, text string) {
	n := len(s.parts)
	if n == 0 || s.parts[n-1].typ != t {
		s.parts = append(s.parts, spokenPart{typ: t})
		n++
	}
	s.parts[n-1].text = append(s.parts[n-1].text, text...)
}

// Carry notes what goes back with a part ([Part].Extra), counted from 0: what is known of it by now, in place of what was
// known before. The number behind the last part begins a new one of type t, also behind one of the same type. A number
// beyond that means nothing, and nothing is done.
func (s *Spoken) Carry(part int, t PartType, extra json.RawMessage) {
	if part == len(s.parts) {
		s.parts = append(s.parts, spokenPart{typ: t})
	}
	if part >= 0 && part < len(s.parts) {
		s.parts[part].extra = extra
	}
}

// Len is the number of parts.
func (s *Spoken) Len() int { return len(s.parts) }

// Parts are the parts so far; the caller owns them. A part of which neither text nor an extra has come is not among them.
func (s *Spoken) Parts() []Part {
	var out []Part
	for _, p := range s.parts {
		if len(p.text) > 0 || len(p.extra) > 0 {
			out = append(out, Part{Type: p.typ, Text: string(p.text), Extra: p.extra})
		}
	}
	return out
}

// saidAnything reports whether any of the parts has text: what nobody was shown is no answer (S6).
func saidAnything(parts []Part) bool {
	for _, p := range parts {
		if p.Text != "" {
			return true
		}
	}
	return false
}
