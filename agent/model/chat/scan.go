package chat

import "bytes"

// brief is a chunk that brings text and nothing else: nearly all of them. The fields are JSON strings with their quotes,
// in the event's memory, or nil.
type brief struct{ content, reasoning, finish []byte }

// scanBrief reads such a chunk in one pass without allocating: encoding/json takes several times as long, for each word
// of an answer. ok is false for a chunk that brings more, or that is not quite as expected: encoding/json decides then.
func scanBrief(data []byte) (c brief, ok bool) {
	s := scanner{b: data}
	for s.enter('{'); s.more('}'); {
		switch key := s.key(); string(key) {
		case "choices":
			n := 0
			for s.enter('['); s.more(']'); n++ {
				s.choice(&c)
			}
			s.fail(n > 1)
		case "error", "usage":
			s.null()
		case "object":
			s.fail(string(s.value()) == `"error"`)
		default:
			s.value()
		}
	}
	s.space()
	return c, !s.bad && s.i == len(s.b)
}

func (s *scanner) choice(c *brief) {
	for s.enter('{'); s.more('}'); {
		switch key := s.key(); string(key) {
		case "index":
			s.fail(string(s.value()) != "0")
		case "finish_reason":
			c.finish = s.stringOrNull()
		case "delta":
			for s.enter('{'); s.more('}'); {
				switch key := s.key(); string(key) {
				case "content":
					c.content = s.stringOrNull()
				case "reasoning_content":
					if v := s.stringOrNull(); v != nil {
						c.reasoning = v
					}
				case "reasoning":
					if v := s.stringOrNull(); v != nil && c.reasoning == nil {
						c.reasoning = v
					}
				case "reasoning_details":
					v := string(s.value())
					s.fail(v != "null" && v != "[]")
				case "tool_calls", "refusal":
					s.null()
				default:
					s.value()
				}
			}
		default:
			s.value()
		}
	}
}

// scanner walks JSON. After the first thing it does not expect, bad is set and it goes nowhere any more.
type scanner struct {
	b     []byte
	i     int
	first bool // nothing of the innermost object or array was read yet
	bad   bool
}

func (s *scanner) fail(when bool) {
	if when {
		s.bad = true
	}
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// take moves over c, or fails.
func (s *scanner) take(c byte) {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
	} else {
		s.bad = true
	}
}

func (s *scanner) enter(open byte) {
	s.take(open)
	s.first = true
}

// more says whether another element follows before end, and moves to it, or over end.
func (s *scanner) more(end byte) bool {
	s.space()
	if s.bad || s.i == len(s.b) {
		s.bad = true
		return false
	}
	first := s.first
	s.first = false
	if s.b[s.i] == end {
		s.i++
		return false
	}
	if !first {
		s.take(',')
	}
	return !s.bad
}

// key reads a member's name and its colon. Names with escapes are not expected.
func (s *scanner) key() []byte {
	k := s.str()
	s.take(':')
	if s.bad || bytes.IndexByte(k, '\\') >= 0 {
		s.bad = true
		return nil
	}
	return k[1 : len(k)-1]
}

func (s *scanner) null() { s.fail(string(s.value()) != "null") }

func (s *scanner) stringOrNull() []byte {
	v := s.value()
	if s.bad || v[0] != '"' {
		s.fail(string(v) != "null")
		return nil
	}
	return v
}

// str reads a string with its quotes, its escapes checked: what a [joiner] may be given.
func (s *scanner) str() []byte {
	s.take('"')
	start := s.i - 1
	for !s.bad && s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i]
		case c < 0x20:
			s.bad = true
		case c == '\\':
			s.escape()
		default:
			s.i++
		}
	}
	s.bad = true
	return nil
}

func (s *scanner) escape() {
	n := 2
	if s.i+1 < len(s.b) && s.b[s.i+1] == 'u' {
		n = 6
	}
	if s.i+n > len(s.b) {
		s.bad = true
		return
	}
	if n == 2 {
		s.fail(bytes.IndexByte([]byte(`"\/bfnrt`), s.b[s.i+1]) < 0)
	} else {
		for _, c := range s.b[s.i+2 : s.i+6] {
			s.fail(!(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'))
		}
	}
	s.i += n
}

// value reads any value. Objects and arrays must balance; what is in them is not needed and not checked further.
func (s *scanner) value() []byte {
	s.space()
	start, depth := s.i, 0
	for !s.bad && s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"':
			s.str()
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			depth--
			s.i++
			s.fail(depth < 0)
		case ',', ':', ' ', '\n', '\t', '\r':
			s.i++
			s.fail(depth == 0)
		default:
			s.scalar()
		}
		if depth == 0 {
			break
		}
	}
	if s.bad || depth != 0 || s.i == start {
		s.bad = true
		return nil
	}
	return s.b[start:s.i]
}

// scalar reads a number or a literal.
func (s *scanner) scalar() {
	start := s.i
	for s.i < len(s.b) && (s.b[s.i] >= '0' && s.b[s.i] <= '9' || s.b[s.i] >= 'a' && s.b[s.i] <= 'z' ||
		s.b[s.i] == '-' || s.b[s.i] == '+' || s.b[s.i] == '.' || s.b[s.i] == 'E') {
		s.i++
	}
	switch word := s.b[start:s.i]; {
	case len(word) == 0:
		s.bad = true
	case word[0] >= 'a':
		s.fail(string(word) != "null" && string(word) != "true" && string(word) != "false")
	}
}
