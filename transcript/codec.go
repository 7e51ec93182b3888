package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file is the only place that knows how entries look as JSON. Encoding is written out here, and not left to
// encoding/json, for two reasons: a [json.RawMessage] must keep every byte that the provider issued (T1), where
// encoding/json compacts it; and all text must be escaped by AppendString, so that the text inside a stored entry and
// inside a fragment made from it are the same bytes and need storing only once (see fragment.go).

// newBody makes an empty body of a kind, nil for a kind that is not in the closed sum.
func newBody(k Kind) Body {
	switch k {
	case KindSessionOpened:
		return new(SessionOpened)
	case KindTurnStarted:
		return new(TurnStarted)
	case KindEpochOpened:
		return new(EpochOpened)
	case KindRequestSent:
		return new(RequestSent)
	case KindRequestEnded:
		return new(RequestEnded)
	case KindAnswer:
		return new(Answer)
	case KindAdmission:
		return new(Admission)
	case KindVerdict:
		return new(Verdict)
	case KindToolStarted:
		return new(ToolStarted)
	case KindFileChanged:
		return new(FileChanged)
	case KindToolSettled:
		return new(ToolSettled)
	case KindTurnEnded:
		return new(TurnEnded)
	case KindRevertStarted:
		return new(RevertStarted)
	case KindRevertEnded:
		return new(RevertEnded)
	case KindMessageQueued:
		return new(MessageQueued)
	case KindMessageDelivered:
		return new(MessageDelivered)
	case KindMessageReturned:
		return new(MessageReturned)
	}
	return nil
}

// encodeBody is the JSON of a body as the entry table stores it. It fails only on an Extra that is no JSON.
func encodeBody(b Body) ([]byte, error) {
	v := reflect.ValueOf(b)
	if b == nil || v.IsNil() {
		return nil, errors.New("encode entry: nil body")
	}
	out, err := appendValue(make([]byte, 0, 256), v.Elem())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", b.Kind(), err)
	}
	return out, nil
}

// decodeBody is the inverse of encodeBody. Fields it does not know are left out, so that a body with additions of a later
// version opens. An error is the text of [Entry].Damaged (C5).
func decodeBody(k Kind, data []byte) (Body, error) {
	b := newBody(k)
	if b == nil {
		return nil, fmt.Errorf("unknown kind %q", k)
	}
	if err := json.Unmarshal(data, b); err != nil {
		return nil, fmt.Errorf("broken body: %w", err)
	}
	return b, nil
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// appendValue writes the JSON of v: the kinds of values that entries are made of, and no other.
func appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.String:
		return AppendString(dst, v.String()), nil
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.Elem())
	case reflect.Slice:
		if v.Type() == rawMessage {
			if !json.Valid(v.Bytes()) {
				return nil, errors.New("a raw field is not valid JSON")
			}
			return append(dst, v.Bytes()...), nil
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendValue(dst, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case reflect.Struct:
		return appendStruct(dst, v)
	}
	return nil, fmt.Errorf("no encoding for %s", v.Type())
}

func appendStruct(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for f, val := range v.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if opts == "omitzero" && val.IsZero() {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '"')
		dst = append(dst, name...)
		dst = append(dst, `":`...)
		var err error
		if dst, err = appendValue(dst, val); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return append(dst, '}'), nil
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. It escapes what JSON demands and U+2028 and U+2029, in the forms that
// encoding/json uses without HTML escaping; a byte that is not UTF-8 becomes \ufffd. Escaping is rune by rune: the escaped
// form of a concatenation is the concatenation of the escaped forms.
//
// Invariant: entries and fragments are escaped by this function alone (guarded by FuzzTextIsEscapedTheSameEverywhere).
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&15])
		default:
			i += n
			continue
		}
		i += n
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
