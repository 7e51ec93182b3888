package chat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/transcript"
)

// The files in testdata/details are streams with reasoning_details:
//
//	stream     the delta of each chunk, one a line
//	told       the deltas that they come to, one a line: reasoning and text, the extra of a part by its number, calls
//	complete   how the complete answer is sent, and then what of it is not, one a line
//	cut N      the same for the answer when a stop, a failure or a kill cut it behind the Nth line of told
//
// guards T1, T2, T3, P1, S4
func TestReasoningDetailsGoBackAsTheyWereIssuedAsFarAsTheirBlocksEnded(t *testing.T) {
	files, err := filepath.Glob("testdata/details/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var stream strings.Builder
			for line := range strings.Lines(string(archive.Files[0].Data)) {
				stream.WriteString(chunk(strings.TrimSuffix(line, "\n")))
			}
			deltas := detailed(t, "openrouter", stream.String()+done)
			for _, f := range archive.Files[1:] {
				got := ""
				switch how, n, _ := strings.Cut(f.Name, " "); how {
				case "told":
					for _, d := range deltas {
						got += toldLine(d)
					}
				case "complete":
					got = sent(t, &transcript.Answer{State: transcript.Complete, Parts: deltas[len(deltas)-1].Parts})
				case "cut":
					lines, err := strconv.Atoi(n)
					if err != nil {
						t.Fatal(err)
					}
					for _, state := range []transcript.AnswerState{transcript.Stopped, transcript.Broken} {
						got = sent(t, &transcript.Answer{State: state, Parts: partsOf(deltas, lines)})
					}
				}
				if got != string(f.Data) {
					t.Errorf("%s: got\n%swant\n%s", f.Name, got, f.Data)
				}
			}
			if whole, end := partsOf(deltas, len(deltas)), withoutCalls(deltas[len(deltas)-1].Parts); !reflect.DeepEqual(whole, end) {
				t.Errorf("the deltas come to %+v, the end to %+v", whole, end)
			}
		})
	}
}

// guards T1: only the flavour that takes them back looks at them
func TestReasoningDetailsAreNotLookedAtWhereTheyCannotGoBack(t *testing.T) {
	stream := chunk(`{"reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"A=="}]}`) +
		chunk(`{"reasoning":" So.","reasoning_details":"?"}`) + done
	for _, kind := range []string{"openai", "deepseek"} {
		deltas := detailed(t, kind, stream)
		var got strings.Builder
		for _, d := range deltas {
			got.WriteString(toldLine(d))
		}
		if got.String() != "reasoning \"Hm.\"\nreasoning \" So.\"\n" {
			t.Errorf("%s: told\n%s", kind, got.String())
		}
	}
}

// detailed are the deltas of a stream after its headers.
func detailed(t *testing.T, kind, stream string) (out []model.Delta) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}))
	defer server.Close()
	for d, err := range provider(t, chat.Options{Kind: kind, BaseURL: server.URL}).Stream(t.Context(), request("{}")) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind != model.Headers {
			out = append(out, d)
		}
	}
	return out
}

func toldLine(d model.Delta) string {
	switch d.Kind {
	case model.Text:
		return fmt.Sprintf("text %q\n", d.Text)
	case model.Reasoning:
		return fmt.Sprintf("reasoning %q\n", d.Text)
	case model.CallPiece:
		return "call\n"
	case model.PartExtra:
		return strings.TrimSpace(fmt.Sprintf("extra %d %s", d.Part, d.Extra)) + "\n"
	}
	return ""
}

// partsOf is what the first n deltas come to.
func partsOf(deltas []model.Delta, n int) []transcript.Part {
	var said transcript.Spoken
	for _, d := range deltas[:n] {
		switch d.Kind {
		case model.Text:
			said.Say(transcript.PartText, d.Text)
		case model.Reasoning:
			said.Say(transcript.PartReasoning, d.Text)
		case model.PartExtra:
			said.Carry(d.Part, d.Type, d.Extra)
		}
	}
	return said.Parts()
}

func withoutCalls(parts []transcript.Part) (out []transcript.Part) {
	for _, p := range parts {
		if p.Call == nil {
			out = append(out, p)
		}
	}
	return out
}

// sent is how an answer is sent, and then what of it is not.
func sent(t *testing.T, a *transcript.Answer) string {
	t.Helper()
	d, err := chat.ByName("chat-reasoning/3")
	if err != nil {
		t.Fatal(err)
	}
	m := transcript.Message{Role: transcript.RoleAssistant, Answer: a}
	b, err := d.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append([]string{string(b)}, d.Unsendable(m)...), "\n") + "\n"
}
