package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fermata/agent/model"
)

// decodeBoth decodes one event in one pass and by encoding/json.
func decodeBoth(data []byte) (quick, slow string, ok bool) {
	said := func(into *string) func(model.Delta) bool {
		return func(d model.Delta) bool {
			*into += fmt.Sprintf("%d %q %s ", d.Kind, d.Text, d.Extra)
			return true
		}
	}
	c, ok := scanBrief(data)
	if !ok {
		return "", "", false
	}
	q, s := assembler{details: true}, assembler{details: true}
	q.addBrief(c, said(&quick))
	if _, err := s.addChunk(data, said(&slow)); err != nil {
		slow = err.Error()
	}
	return quick + q.finish, slow + s.finish, true
}

func TestOnePassAndEncodingJSONAgree(t *testing.T) {
	seeds := []string{
		`{"choices":[{"index":0,"delta":{"content":"a\ud83d\n\"é€\/"},"finish_reason":null}]}`,
		`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"r","reasoning_content":null},"logprobs":{"content":[{"a":1.5e-3}]},"finish_reason":"stop"}],"usage":null}`,
		`{ "choices" : [ ] , "object":"chat.completion.chunk" } `,
		`{"choices":[{"delta":{"reasoning_content":"b","reasoning":"b","content":null}}]}`,
		`{"choices":[{"delta":{"content":"","reasoning":"r","reasoning_details":[]}}]}`,
		`{"choices":[{"delta":{"reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r"}]}}]}`,
	}
	quick := 0
	for _, seed := range seeds {
		for at := range len(seed) {
			for _, c := range []byte("\"\\{}[],:0an \x00\xff") {
				for _, data := range [][]byte{
					[]byte(seed[:at] + string([]byte{c}) + seed[at+1:]), // replaced
					[]byte(seed[:at] + string([]byte{c}) + seed[at:]),   // inserted
					[]byte(seed[:at] + seed[at+1:]),                     // removed
				} {
					got, want, ok := decodeBoth(data)
					if !ok {
						continue
					}
					quick++
					if json.Valid(data) && got != want {
						t.Errorf("%s\n one pass: %s\n encoding/json: %s", data, got, want)
					}
				}
			}
		}
	}
	if quick < 1000 {
		t.Errorf("only %d chunks were read in one pass", quick)
	}
}

func TestThePiecesOfATextAreJoinedAsIfTheyHadNeverBeenSplit(t *testing.T) {
	for _, whole := range []string{`aé€😀"\/`, `\u0041\ud83d\ude00x`, `\ud83dx`, `\ud83d\ud83d\ude00`, `\ude00`, "\xff\xe2\x82z", `€\ud83d€`} {
		units := split(whole)
		var once joiner
		want := string(once.flush(once.add(nil, []byte(`"`+escapeQuotes(whole)+`"`))))
		for at := range len(units) + 1 {
			var j joiner
			var got []byte
			for _, part := range [][]string{units[:at], units[at:]} {
				var raw strings.Builder
				raw.WriteString(`"`)
				for _, u := range part {
					raw.WriteString(u)
				}
				got = j.add(got, []byte(raw.String()+`"`))
			}
			if got = j.flush(got); string(got) != want {
				t.Errorf("%q split after %d: %q, want %q", whole, at, got, want)
			}
		}
	}
}

func escapeQuotes(s string) string {
	var out strings.Builder
	for _, u := range split(s) {
		out.WriteString(u)
	}
	return out.String()
}

// split cuts the inside of a JSON string into bytes and whole escapes.
func split(s string) []string {
	var out []string
	for s != "" {
		n := 1
		switch {
		case len(s) >= 6 && s[:2] == `\u`:
			n = 6
		case len(s) >= 2 && s[0] == '\\':
			n = 2
		}
		if u := s[:n]; u == `"` {
			out = append(out, `\"`)
		} else {
			out = append(out, u)
		}
		s = s[n:]
	}
	return out
}
