package transcript

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var everyBody = []Body{new(SessionOpened), new(TurnStarted), new(EpochOpened), new(RequestSent), new(RequestEnded), new(Answer),
	new(Admission), new(ToolStarted), new(FileChanged), new(ToolSettled), new(Verdict), new(TurnEnded),
	new(RevertStarted), new(RevertEnded)}

// fill sets every field of a value to something that is not zero.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s)
	case reflect.Slice:
		if v.Type() == rawMessage {
			v.SetBytes([]byte("{ \"a\" :\t[1.0, \"<\\u0041\"] }"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), s)
		fill(v.Index(1), s)
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f, s)
		}
	default:
		panic(v.Type().String())
	}
}

func TestEveryFieldOfEveryEntryComesBack(t *testing.T) {
	for _, b := range everyBody {
		for _, full := range []bool{true, false} {
			b = newBody(b.Kind())
			if full {
				fill(reflect.ValueOf(b).Elem(), "<ü\n\u2028>")
			}
			data, err := encodeBody(b)
			if err != nil {
				t.Fatal(err)
			}
			back, err := decodeBody(b.Kind(), data)
			if again, _ := encodeBody(back); err != nil || full && !reflect.DeepEqual(back, b) || !bytes.Equal(again, data) {
				t.Errorf("%s: %s came back as %+v, %v", b.Kind(), data, back, err)
			}
		}
	}
}

// The codec writes what encoding/json would, but for raw messages, whose every byte it keeps.
func TestEntriesAreThePlainJSONOfTheirTypes(t *testing.T) {
	for _, b := range everyBody {
		if _, ok := b.(*Answer); ok {
			continue
		}
		fill(reflect.ValueOf(b).Elem(), "x\x7f<&>\x01")
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(b); err != nil {
			t.Fatal(err)
		}
		if got, err := encodeBody(b); err != nil || string(got) != strings.TrimSpace(want.String()) {
			t.Errorf("got  %s\nwant %s%v", got, want.String(), err)
		}
	}
}

// guards T1
func TestWhatAProviderIssuedKeepsEveryByte(t *testing.T) {
	raw := "{ \"signature\":\"a\\/b\\u0041<\",\n\t\"n\": 1.50e+3 }"
	data, err := encodeBody(&Answer{Parts: []Part{{Type: PartReasoning, Extra: json.RawMessage(raw)}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := decodeBody(KindAnswer, data)
	if err != nil || string(b.(*Answer).Parts[0].Extra) != raw {
		t.Errorf("%s: %v", data, err)
	}
	if _, err := encodeBody(&Answer{Parts: []Part{{Extra: json.RawMessage(`{"cut":`)}}}); err == nil {
		t.Error("an Extra that is no JSON was stored")
	}
}

// guards C5
func TestABodyThatDoesNotDecodeIsAnError(t *testing.T) {
	for kind, data := range map[Kind]string{"gossip": `{}`, KindAnswer: `{"parts":`, KindTurnEnded: `[]`, KindAdmission: ``, KindToolSettled: `{} {}`, KindRequestSent: `{"step":"x"}`} {
		if b, err := decodeBody(kind, []byte(data)); err == nil {
			t.Errorf("%s %s: %+v", kind, data, b)
		}
	}
	if _, err := decodeBody(KindTurnEnded, []byte(`{"turn":"t","of_a_later_version":1}`)); err != nil {
		t.Error("a field of a later version:", err)
	}
}

// guards M3: the text of a fragment is found in its entry because both are escaped alike.
func FuzzTextIsEscapedTheSameEverywhere(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "ü€😀", "\u2028\u2029", "<&>", "\xff\xc3", "a\xf0\x9f\x98", "\ufffd", "\xed\xa0\x80"} {
		f.Add(s, "b")
		f.Add("a", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		got := AppendString(nil, a)
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.Encode(a)
		if string(got) != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q: got %s, encoding/json has %s", a, got, &want)
		}
		entry, err := encodeBody(&ToolSettled{Output: a})
		if err != nil || !bytes.Contains(entry, got) {
			t.Errorf("%q is not in its entry %s: %v", a, entry, err)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(a, "\ufffd") && !strings.Contains(back, "\ufffd") {
			t.Errorf("%q came back as %q: %v", a, back, err)
		}
		// What a later entry says was decoded from an earlier one, so it is UTF-8; then escaping is piece by piece.
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")
		joined := AppendString(nil, a+b)
		if pieces := append(AppendString(nil, a)[:len(AppendString(nil, a))-1], AppendString(nil, b)[1:]...); !bytes.Equal(joined, pieces) {
			t.Errorf("%q + %q: %s is not %s", a, b, joined, pieces)
		}
	})
}

// guards invariant 3
func FuzzAnyFragmentIsRebuiltByteForByte(f *testing.F) {
	long := strings.Repeat("0123456789", 10)
	f.Add([]byte(`{"a":"`+long+`"}`), []byte(`{"output":"`+long+`"}`))
	f.Add([]byte(`{"a":"`+long+`x`+long+long+`"}`), []byte(`["`+long+`","`+long+long+`"]`))
	f.Add([]byte(`{"input":{"t":"`+long+`\n"}}`), []byte(`{"args":"{\"t\":\"`+long+`\\n\"}"}`))
	f.Add([]byte(`{`), []byte(`"unclosed`))
	f.Add([]byte(``), []byte(``))
	f.Add([]byte(`]["`), []byte(`\\"`))
	f.Fuzz(func(t *testing.T, fragment, source []byte) {
		fragment = bytes.ToValidUTF8(fragment, []byte("?"))
		parts, err := makeParts(fragment, source)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(parts) {
			t.Errorf("parts are no JSON: %s", parts)
		}
		back, err := appendParts([]byte("before"), parts, source)
		if err != nil || string(back) != "before"+string(fragment) {
			t.Errorf("%s: %q came back as %q, %v", parts, fragment, back, err)
		}
		appendParts(nil, fragment, source) // anything may be read: it must not panic
	})
}

// guards the size of the log: a text is stored once, whatever the dialect makes of it.
func TestAFragmentCopiesTheTextOfItsEntry(t *testing.T) {
	code := prose(500)
	args := string(AppendString([]byte(`{"path":"a","text":`), code)) + "}"
	answer := &Answer{Parts: []Part{reasoning(code + "r"), text(code), call("c", "write", args)}}
	source, err := encodeBody(answer)
	if err != nil {
		t.Fatal(err)
	}
	asString := AppendString(append(AppendString(append(AppendString([]byte(`{"content":`), code), `,"reasoning":`...), code+"r"), `,"arguments":`...), args)
	asObject := append(append(AppendString([]byte(`[{"text":`), code), `},{"input":`...), args...)
	for name, fragment := range map[string][]byte{"in another order": append(asString, '}'), "unescaped": append(asObject, "}]"...)} {
		parts, err := makeParts(fragment, source)
		if err != nil || len(parts) > 150 {
			t.Errorf("%s: %d bytes of parts for a fragment of %d: %.200s, %v", name, len(parts), len(fragment), parts, err)
		}
	}
}

func TestPartsThatAreDamagedAreAnError(t *testing.T) {
	for _, parts := range []string{``, `[`, `[]x`, `["a"`, `["a",]`, `[[1]]`, `[[0,99]]`, `[[-1,2]]`, `[[9,1]]`, `[[0,1,2]]`, `[[0,1,1,1]]`,
		`[[0,9223372036854775807]]`, `[x]`, `["\x"]`, `["a""b"]`, `[[1,1,1]]`} {
		if got, err := appendParts(nil, []byte(parts), []byte(`a\"b`)); err == nil {
			t.Errorf("%s gave %q", parts, got)
		}
	}
}
