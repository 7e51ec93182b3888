package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// A fragment is the JSON of one message as a dialect sends it (M3). Almost all of it is text that the message's entry
// holds already, escaped the same way (see AppendString). So a fragment is stored as parts, a JSON array:
//
//	"text"            these bytes
//	[offset, length]  bytes of the source entry's stored body
//	[offset, length, 1]  the same, taken as the inside of a JSON string and unescaped: arguments of a call that one
//	                  dialect sends as a string and another as an object
//
// Whatever the encoder does, the parts rebuild its exact bytes: what is not found in the entry is stored as text.

// minCopy is the length from which a copy is worth its parts, in bytes.
const minCopy = 64

// maxSearches bounds the searches over a whole fragment for text that did not turn up where it was expected, so that an entry
// of very many strings costs no quadratic time.
const maxSearches = 64

// span is a piece of a fragment that is found in the source.
type span struct {
	at, len     int // in the fragment
	from, taken int // offset and length in the source
	unescape    bool
}

// makeParts describes fragment by source. It fails only on a fragment that is not UTF-8: that is no JSON.
func makeParts(fragment, source []byte) ([]byte, error) {
	spans := findSpans(fragment, source)
	parts := []byte{'['}
	comma := func() {
		if len(parts) > 1 {
			parts = append(parts, ',')
		}
	}
	literal := func(b []byte) {
		if len(b) > 0 {
			comma()
			parts = AppendString(parts, string(b))
		}
	}
	pos := 0
	for _, s := range spans {
		literal(fragment[pos:s.at])
		comma()
		parts = append(parts, '[')
		parts = strconv.AppendInt(parts, int64(s.from), 10)
		parts = append(parts, ',')
		parts = strconv.AppendInt(parts, int64(s.taken), 10)
		if s.unescape {
			parts = append(parts, ",1"...)
		}
		parts = append(parts, ']')
		pos = s.at + s.len
	}
	literal(fragment[pos:])
	parts = append(parts, ']')

	// Invariant: bytes sent = bytes stored (FuzzAnyFragmentIsRebuiltByteForByte). Checked here, before anything is sent.
	back, err := appendParts(make([]byte, 0, len(fragment)), parts, source)
	if err != nil || !bytes.Equal(back, fragment) {
		return nil, errors.New("a fragment is not valid JSON text")
	}
	return parts, nil
}

// findSpans finds the long strings of source in fragment. The spans are in order and do not overlap.
func findSpans(fragment, source []byte) []span {
	var spans []span
	searches := 0
	end := 0 // of the last span
	place := func(text []byte, s span) bool {
		s.len = len(text)
		if i := bytes.Index(fragment[end:], text); i >= 0 {
			s.at = end + i
			end = s.at + s.len
			spans = append(spans, s)
			return true
		}
		if searches++; end == 0 || searches > maxSearches {
			return false
		}
		// The dialect may have another order: look into the gaps before.
		gap := 0
		for i, t := range spans {
			if j := bytes.Index(fragment[gap:t.at], text); j >= 0 {
				s.at = gap + j
				spans = slices.Insert(spans, i, s)
				return true
			}
			gap = t.at + t.len
		}
		return false
	}
	for from, text := range stringsOf(source) {
		if len(text) < minCopy {
			continue
		}
		s := span{from: from, taken: len(text)}
		if place(text, s) || bytes.IndexByte(text, '\\') < 0 {
			continue
		}
		if raw, err := unescape(text); err == nil && len(raw) >= minCopy {
			s.unescape = true
			place(raw, s)
		}
	}
	return spans
}

// stringsOf yields the inside of each string of a JSON text, keys included, with its offset.
func stringsOf(doc []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i := 0; i < len(doc); i++ {
			if doc[i] != '"' {
				continue
			}
			end := endOfString(doc, i+1)
			if end < 0 || !yield(i+1, doc[i+1:end]) {
				return
			}
			i = end
		}
	}
}

// endOfString is the index of the quote that closes the string whose inside begins at i, -1 when there is none.
func endOfString(doc []byte, i int) int {
	for {
		q := bytes.IndexByte(doc[i:], '"')
		if q < 0 {
			return -1
		}
		q += i
		slashes := 0
		for q-1-slashes >= i && doc[q-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return q
		}
		i = q + 1
	}
}

// unescape is the text of a JSON string's inside. It may return inside itself.
func unescape(inside []byte) ([]byte, error) {
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, nil
	}
	return appendUnescaped(make([]byte, 0, len(inside)), inside)
}

// appendUnescaped handles the common escapes by itself, because a body has thousands of fragments, and leaves the others to
// encoding/json.
func appendUnescaped(dst, inside []byte) ([]byte, error) {
	start := len(dst)
	for rest := inside; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return append(dst, rest...), nil
		}
		dst = append(dst, rest[:i]...)
		if rest = rest[i+1:]; len(rest) == 0 {
			return dst, errParts
		}
		switch rest[0] {
		case '"', '\\', '/':
			dst = append(dst, rest[0])
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		default:
			quoted := make([]byte, 0, len(inside)+2)
			quoted = append(append(append(quoted, '"'), inside...), '"')
			var s string
			if err := json.Unmarshal(quoted, &s); err != nil {
				return dst, errParts
			}
			return append(dst[:start], s...), nil
		}
		rest = rest[1:]
	}
}

var errParts = errors.New("broken parts of a fragment")

// appendParts rebuilds a fragment. It reads the array by hand: a body can have thousands of fragments.
func appendParts(dst, parts, source []byte) ([]byte, error) {
	if len(parts) < 2 || parts[0] != '[' || parts[len(parts)-1] != ']' {
		return dst, errParts
	}
	p := parts[1 : len(parts)-1]
	for len(p) > 0 {
		switch p[0] {
		case '"':
			end := endOfString(p, 1)
			if end < 0 {
				return dst, errParts
			}
			var err error
			if dst, err = appendUnescaped(dst, p[1:end]); err != nil {
				return dst, err
			}
			p = p[end+1:]
		case '[':
			end := bytes.IndexByte(p, ']')
			if end < 0 {
				return dst, errParts
			}
			var from, n, form int
			fields, err := ints(p[1:end], &from, &n, &form)
			if err != nil || fields < 2 || form > 1 {
				return dst, errParts
			}
			if from < 0 || n < 0 || from > len(source) || n > len(source)-from {
				return dst, fmt.Errorf("%w: bytes %d to %d of an entry of %d", errParts, from, from+n, len(source))
			}
			text := source[from : from+n]
			if form == 1 {
				if text, err = unescape(text); err != nil {
					return dst, errParts
				}
			}
			dst, p = append(dst, text...), p[end+1:]
		default:
			return dst, errParts
		}
		if len(p) > 0 {
			if p[0] != ',' || len(p) == 1 {
				return dst, errParts
			}
			p = p[1:]
		}
	}
	return dst, nil
}

// ints reads decimal numbers separated by commas into dst, and returns how many there were.
func ints(b []byte, dst ...*int) (n int, err error) {
	for field := range bytes.SplitSeq(b, []byte{','}) {
		if n == len(dst) {
			return n, errParts
		}
		if *dst[n], err = strconv.Atoi(string(field)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
