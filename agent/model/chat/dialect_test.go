package chat_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"fermata/agent/model"
	"fermata/agent/model/chat"
	"fermata/transcript"
)

// The files in testdata/encode hold an entry, written as JSON under the name of its role, and what each dialect makes of
// it. A file "unsendable NAME" lists what Unsendable says.
//
// guards P1, P2, S11, T1, T2
func TestEntriesAreEncodedAsEachFlavourTakesThem(t *testing.T) {
	files, err := os.ReadDir("testdata/encode")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile("testdata/encode/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			var m transcript.Message
			for _, s := range a.Files {
				switch s.Name {
				case "user":
					m.Role, m.User = transcript.RoleUser, new(transcript.TurnStarted)
					err = json.Unmarshal(s.Data, m.User)
				case "assistant":
					m.Role, m.Answer = transcript.RoleAssistant, new(transcript.Answer)
					err = json.Unmarshal(s.Data, m.Answer)
				case "foreign assistant": // what another model said
					m.Role, m.Answer, m.Foreign = transcript.RoleAssistant, new(transcript.Answer), true
					m.Origin = transcript.Origin{Provider: "deepseek", Model: "deepseek-chat"}
					err = json.Unmarshal(s.Data, m.Answer)
				case "tool":
					m.Role, m.Result = transcript.RoleTool, new(transcript.ToolSettled)
					err = json.Unmarshal(s.Data, m.Result)
				default:
					check(t, s, m)
				}
				if err != nil {
					t.Fatalf("%s: %v", s.Name, err)
				}
			}
		})
	}
}

func check(t *testing.T, s txtar.File, m transcript.Message) {
	t.Helper()
	want := strings.TrimRight(string(s.Data), "\n")
	name, unsendable := strings.CutPrefix(s.Name, "unsendable ")
	d, err := chat.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if unsendable {
		if got := strings.Join(d.Unsendable(m), "\n"); got != want {
			t.Errorf("%s: not sendable: %q, want %q", name, got, want)
		}
		return
	}
	got, err := d.Encode(m)
	if err != nil || string(got) != want || want != "" && !json.Valid(got) {
		t.Errorf("%s: got\n%s %v\nwant\n%s", name, got, err, want)
	}
}

// guards M3, M4
func TestAFrameHasItsFieldsInOneOrderAndJoinsToJSON(t *testing.T) {
	tool := model.Tool{Name: "f", Description: "does <f>", Schema: json.RawMessage(`{"type":"object"}`)}
	for _, c := range []struct {
		head model.Head
		want string
	}{
		{model.Head{Model: "m"}, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[`},
		{model.Head{Model: "m", Instructions: "Be <brief> & \"true\"."},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be <brief> & \"true\"."},`},
		{model.Head{Model: "m", Tools: []model.Tool{tool, {Name: "g"}}},
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f","description":"does <f>","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","description":"","parameters":{"type":"object","properties":{}}}}],"messages":[`},
	} {
		for _, name := range []string{"chat/1", "chat-reasoning_content/1", "chat-reasoning/1", "chat/2", "chat-reasoning_content/2", "chat-reasoning/2", "chat/3", "chat-reasoning_content/3", "chat-reasoning/3", "chat/4", "chat-reasoning_content/4", "chat-reasoning/4"} {
			d, err := chat.ByName(name)
			if err != nil || d.Dialect() != name {
				t.Fatalf("%v, %v", d, err)
			}
			head, tail, err := d.Frame(c.head)
			if err != nil || string(head) != c.want || string(tail) != "]}" {
				t.Errorf("%s: got %s…%s, %v", name, head, tail, err)
			}
			if body := string(head) + `{},{}` + string(tail); !json.Valid([]byte(body)) {
				t.Errorf("not JSON: %s", body)
			}
		}
	}
	d, _ := chat.ByName("chat/1")
	if _, _, err := d.Frame(model.Head{Tools: []model.Tool{{Name: "f", Schema: json.RawMessage(`{`)}}}); err == nil {
		t.Error("a broken schema passed")
	}
}

// guards P3: the name in the log is enough
func TestEveryKindOfProviderRecordsADialectThatIsFoundAgain(t *testing.T) {
	for kind, want := range map[string]string{
		"": "chat/4", "openai": "chat/4", "openai-compatible": "chat/4",
		"deepseek": "chat-reasoning_content/4", "llamacpp": "chat-reasoning_content/4", "vllm": "chat-reasoning_content/4",
		"ollama": "chat-reasoning/4", "openrouter": "chat-reasoning/4",
	} {
		p := provider(t, chat.Options{Kind: kind, BaseURL: "http://127.0.0.1:1/v1"})
		d, err := chat.ByName(p.Dialect().Dialect())
		if err != nil || d.Dialect() != want || d != p.Dialect() {
			t.Errorf("%s: %v, %v", kind, d, err)
		}
	}
	p := provider(t, chat.Options{Kind: "openai-compatible", Reasoning: chat.ReasoningPlain, BaseURL: "http://127.0.0.1:1"})
	if got := p.Dialect().Dialect(); got != "chat-reasoning/4" {
		t.Errorf("the override gave %s", got)
	}
	if _, err := chat.ByName("chat/5"); err == nil {
		t.Error("an unknown dialect was found")
	}
}

func TestAProviderThatCannotWorkIsRefused(t *testing.T) {
	for _, o := range []chat.Options{
		{BaseURL: ""}, {BaseURL: "localhost:11434/v1"}, {BaseURL: "ftp://x/v1"}, {BaseURL: "http://"},
		{BaseURL: "http://x", Kind: "openia"}, {BaseURL: "http://x", Reasoning: "thoughts"},
	} {
		if _, err := chat.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
