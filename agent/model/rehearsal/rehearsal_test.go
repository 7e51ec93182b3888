package rehearsal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"fermata/agent/model"
	"fermata/agent/model/rehearsal"
	"fermata/transcript"
)

var offered = []model.Tool{
	{Name: "grep", Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"}}}`)},
	{Name: "read_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
	{Name: "list_dir", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
	{Name: "edit_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{},"old":{},"new":{},"replace_all":{}}}`)},
	{Name: "run", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
}

// body encodes a conversation as the agent does.
func body(t *testing.T, d model.Dialect, tools []model.Tool, messages []transcript.Message) []byte {
	t.Helper()
	head, tail, err := d.Frame(model.Head{Model: "rehearsal", Instructions: "Be brief.", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	b := head
	for i, m := range messages {
		fragment, err := d.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, fragment...)
	}
	return append(b, tail...)
}

func request(b []byte) model.Request {
	return model.Request{
		Body:  func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(b))), nil },
		Bytes: int64(len(b)),
	}
}

func builtIn(t *testing.T, o rehearsal.Options) model.Provider {
	t.Helper()
	p, err := rehearsal.Provider(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(text string) transcript.Message {
	return transcript.Message{Role: transcript.RoleUser, User: &transcript.TurnStarted{Prompt: []transcript.PromptPart{{Type: "text", Text: text}}}}
}

// end runs a request to its end.
func end(t *testing.T, p model.Provider, b []byte) model.Delta {
	t.Helper()
	var last model.Delta
	for d, err := range p.Stream(t.Context(), request(b)) {
		if err != nil {
			t.Fatal(err)
		}
		last = d
	}
	if last.Kind != model.End {
		t.Fatalf("the last delta is %+v", last)
	}
	return last
}

// The files in testdata/talk are conversations: sections user, assistant (a stopped or complete text), call NAME (its
// arguments) and result (of the call before). A section want holds lines that the answer must have; lines with a "!"
// before them it must not have; "calls" lines are whole calls.
func TestItAnswersByItsRules(t *testing.T) {
	files, err := os.ReadDir("testdata/talk")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	p := builtIn(t, rehearsal.Options{Rate: -1})
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile("testdata/talk/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			tools := offered
			var messages []transcript.Message
			for i, s := range a.Files {
				text := strings.TrimSuffix(string(s.Data), "\n")
				kind, name, _ := strings.Cut(s.Name, " ")
				switch kind {
				case "no-tools":
					tools = nil
				case "user":
					messages = append(messages, user(text))
				case "assistant":
					messages = append(messages, transcript.Message{Role: transcript.RoleAssistant, Answer: &transcript.Answer{
						Parts: []transcript.Part{{Type: transcript.PartText, Text: text}}}})
				case "call":
					messages = append(messages, transcript.Message{Role: transcript.RoleAssistant, Answer: &transcript.Answer{
						Parts: []transcript.Part{{Type: transcript.PartCall, Call: &transcript.Call{ID: transcript.CallID(fmt.Sprint("c", i)), Name: name, Args: text}}}}})
				case "result":
					messages = append(messages, transcript.Message{Role: transcript.RoleTool, Result: &transcript.ToolSettled{
						Call: transcript.CallID(fmt.Sprint("c", i-1)), Output: text}})
				case "want":
					d := end(t, p, body(t, p.Dialect(), tools, messages))
					got := written(d)
					for line := range strings.SplitSeq(text, "\n") {
						no, unwanted := strings.CutPrefix(line, "!")
						if unwanted && strings.Contains(got, no) {
							t.Errorf("section %d: %q is in\n%s", i, no, got)
						}
						if !unwanted && !strings.Contains(got, line) {
							t.Errorf("section %d: %q is not in\n%s", i, line, got)
						}
					}
				}
			}
		})
	}
}

func written(d model.Delta) string {
	a := &transcript.Answer{Parts: d.Parts}
	var s strings.Builder
	s.WriteString(a.Text() + "\n")
	for _, c := range a.Calls() {
		s.WriteString("calls " + c.Name + " " + c.Args + "\n")
	}
	return s.String()
}

func TestItHasEnoughToSayToBeStoppedAndThinksFirst(t *testing.T) {
	p := builtIn(t, rehearsal.Options{Rate: -1})
	d := end(t, p, body(t, p.Dialect(), nil, []transcript.Message{user("hello")}))
	a := &transcript.Answer{Parts: d.Parts}
	if n := len(strings.Fields(a.Text())); n < 150 {
		t.Errorf("%d words", n)
	}
	if a.Parts[0].Type != transcript.PartReasoning || a.Reasoning() == "" {
		t.Errorf("parts %+v", a.Parts)
	}
	if d.Usage == nil || d.Usage.Input == 0 || d.Usage.Output < 150 || d.Finish != "stop" {
		t.Errorf("usage %+v, finish %s", d.Usage, d.Finish)
	}
}

func TestEqualRequestsAreAnsweredEqually(t *testing.T) {
	p := builtIn(t, rehearsal.Options{Rate: -1, Seed: 7})
	b := body(t, p.Dialect(), offered, []transcript.Message{user("where is Stop defined?")})
	again := builtIn(t, rehearsal.Options{Rate: -1, Seed: 7})
	if one, two := end(t, p, b), end(t, again, b); !reflect.DeepEqual(one, two) {
		t.Errorf("%s\n%s", written(one), written(two))
	}
}

func TestItTalksAtAHumanPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := builtIn(t, rehearsal.Options{})
		began, n := time.Now(), 0
		for d, err := range p.Stream(t.Context(), request(body(t, p.Dialect(), nil, []transcript.Message{user("hello")}))) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == model.Text || d.Kind == model.Reasoning {
				n++
			}
		}
		if took, want := time.Since(began), time.Duration(n-1)*time.Second/rehearsal.DefaultRate; took != want {
			t.Errorf("%d words in %v, want %v", n, took, want)
		}
	})
}

// guards S3, S14: nothing is left running, also inside the process
func TestStoppingEndsTheModelAtOnce(t *testing.T) {
	stopped := errors.New("stopped")
	synctest.Test(t, func(t *testing.T) {
		p := builtIn(t, rehearsal.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		began := time.Now()
		n := 0
		var last error
		for d, err := range p.Stream(ctx, request(body(t, p.Dialect(), nil, []transcript.Message{user("hello")}))) {
			if last = err; d.Kind == model.Text {
				if n++; n == 5 {
					began = time.Now()
					cancel(stopped)
				}
			}
		}
		if !errors.Is(last, stopped) || n < 5 || n > 6 || time.Since(began) != 0 {
			t.Errorf("%d words, %v later, %v", n, time.Since(began), last)
		}
	}) // synctest fails when the handler's goroutine is left
}

func TestOtherRequestsAreRefusedPolitely(t *testing.T) {
	client := http.Client{Transport: rehearsal.Transport(rehearsal.New(rehearsal.Options{Rate: -1}))}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/models", "", 200, `"id":"rehearsal"`},
		{"GET", "/chat/completions", "", 404, "POST"},
		{"POST", "/embeddings", "{}", 404, "POST"},
		{"POST", "/chat/completions", "{", 400, "not a chat completions request"},
		{"POST", "/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, 400, "only streams"},
		{"POST", "/chat/completions", `{"stream":true,"messages":[]}`, 400, "no message of role user"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, rehearsal.BaseURL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(b), c.says) {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, resp.StatusCode, b, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
