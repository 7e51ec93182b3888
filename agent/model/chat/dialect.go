package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fermata/agent/model"
	"fermata/transcript"
)

// The fields in which flavours carry reasoning, both ways. None means that answers have no slot for it: it is not
// sendable (T2).
const (
	ReasoningNone    = ""
	ReasoningContent = "reasoning_content" // DeepSeek, llama.cpp, vLLM
	ReasoningPlain   = "reasoning"         // Ollama; OpenRouter, with reasoning_details beside it
)

// dialect encodes for servers that carry reasoning in the field it names. It is the value that [ByName] finds again.
//
// Changing a byte of what Encode or Frame give for any input needs a new version in Dialect's names: logs hold the names
// and are re-encoded by them (P3). Version 1 sent what another model had said like the model's own; version 2 sent answers of
// which nothing could be sent, as empty messages, and signed reasoning alone.
type dialect struct {
	reasoning string
	version   int
}

// newest is the version that requests are encoded with.
const newest = 4

var dialects = []dialect{
	{ReasoningNone, 1}, {ReasoningContent, 1}, {ReasoningPlain, 1},
	{ReasoningNone, 2}, {ReasoningContent, 2}, {ReasoningPlain, 2},
	{ReasoningNone, 3}, {ReasoningContent, 3}, {ReasoningPlain, 3},
	{ReasoningNone, 4}, {ReasoningContent, 4}, {ReasoningPlain, 4},
}

// ByName returns the dialect that [transcript.EpochOpened].Dialect records as name: "chat/4", "chat-reasoning_content/4"
// or "chat-reasoning/4", or an earlier version of them. Any other name is an error.
func ByName(name string) (model.Dialect, error) {
	for _, d := range dialects {
		if d.Dialect() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("chat: no dialect %q", name)
}

func (d dialect) Dialect() string {
	version := "/" + strconv.Itoa(d.version)
	if d.reasoning == ReasoningNone {
		return "chat" + version
	}
	return "chat-" + d.reasoning + version
}

// hasDetails says whether reasoning comes and goes as the items of reasoning_details too. No log holds any of version 1.
func (d dialect) hasDetails() bool { return d.reasoning == ReasoningPlain && d.version > 1 }

// Frame makes the head up to the first fragment and the tail. A body needs at least one fragment: with instructions the
// head ends in the comma before it. A tool whose schema is not JSON is an error.
func (d dialect) Frame(h model.Head) (head, tail []byte, err error) {
	b := append([]byte(nil), `{"model":`...)
	b = transcript.AppendString(b, h.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	for i, t := range h.Tools {
		if i == 0 {
			b = append(b, `,"tools":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = transcript.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = transcript.AppendString(b, t.Description)
		b = append(b, `,"parameters":`...)
		switch {
		case len(t.Schema) == 0:
			b = append(b, `{"type":"object","properties":{}}`...)
		case !json.Valid(t.Schema):
			return nil, nil, fmt.Errorf("chat: the schema of tool %s is not JSON", t.Name)
		default:
			b = append(b, t.Schema...)
		}
		b = append(b, `}}`...)
	}
	if len(h.Tools) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	if h.Instructions != "" {
		b = append(b, `{"role":"system","content":`...)
		b = transcript.AppendString(b, h.Instructions)
		b = append(b, `},`...)
	}
	return b, []byte(`]}`), nil
}

// Encode makes a message's fragment. An answer is sent with its texts joined, its reasoning joined where the flavour has
// a field for it ("" when there was none: DeepSeek refuses its absence), and its calls. A stopped answer is sent exactly
// like a complete one, nothing added (S11). What another model said goes without its reasoning and signatures (T2).
// Reasoning that came as items of reasoning_details goes back as those, and not as plain reasoning beside them: without
// its signature a provider would refuse that. An item that was cut is left out.
//
// Of an answer that says nothing, calls nothing and has no reasoning that can be sent nothing is sent: Claude and others refuse
// an empty message, and every later request with it.
func (d dialect) Encode(m transcript.Message) ([]byte, error) {
	switch {
	case m.Role == transcript.RoleUser && m.User != nil:
		b := append([]byte(nil), `{"role":"user","content":`...)
		text := m.User.UserText()
		if d.version < 4 {
			text = m.User.UserTextInShortFences()
		}
		return append(transcript.AppendString(b, text), '}'), nil
	case m.Role == transcript.RoleAssistant && m.Answer != nil:
		foreign := m.Foreign && d.version > 1
		if d.nothing(m.Answer, foreign) {
			return nil, nil
		}
		return d.answer(m.Answer, foreign), nil
	case m.Role == transcript.RoleTool && m.Result != nil:
		b := append([]byte(nil), `{"role":"tool","tool_call_id":`...)
		b = transcript.AppendString(b, string(m.Result.Call))
		b = append(b, `,"content":`...)
		return append(transcript.AppendString(b, m.Result.Output), '}'), nil
	}
	return nil, fmt.Errorf("chat: encode entry %d: a message of role %q has no body of that role", m.Source, m.Role)
}

// nothing says whether no part of an answer can be sent.
func (d dialect) nothing(a *transcript.Answer, foreign bool) bool {
	if d.version < 3 || a.Speaks() {
		return false
	}
	switch {
	case foreign || d.reasoning == ReasoningNone:
		return true
	case d.hasDetails():
		return plainReasoning(a) == "" && len(d.appendDetails(nil, a)) == 0
	}
	return a.Reasoning() == ""
}

func (d dialect) answer(a *transcript.Answer, foreign bool) []byte {
	b := append([]byte(nil), `{"role":"assistant","content":`...)
	b = transcript.AppendString(b, a.Text()) // "" when there is none, never null (DeepSeek)
	if d.reasoning != ReasoningNone {
		b = append(append(append(b, `,"`...), d.reasoning...), `":`...)
		switch {
		case foreign:
			b = append(b, `""`...)
		case d.hasDetails():
			b = d.appendDetails(transcript.AppendString(b, plainReasoning(a)), a)
		default:
			b = transcript.AppendString(b, a.Reasoning())
		}
	}
	calls := 0
	for _, p := range a.Parts {
		if p.Type != transcript.PartCall || p.Call == nil {
			continue
		}
		if calls == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		calls++
		b = append(b, `{"id":`...)
		b = transcript.AppendString(b, string(p.Call.ID))
		b = append(b, `,"type":"function","function":{"name":`...)
		name, _ := sendableName(p.Call.Name)
		b = transcript.AppendString(b, name)
		b = append(b, `,"arguments":`...)
		args, _ := sendableArgs(p.Call.Args)
		b = append(transcript.AppendString(b, args), '}')
		if len(p.Extra) > 0 && !foreign {
			b = append(append(b, `,"extra_content":`...), p.Extra...)
		}
		b = append(b, '}')
	}
	if calls > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// sendableArgs returns the arguments of a call as they may be sent, and whether that is what the model wrote. Servers
// that parse earlier calls (Ollama, vLLM, llama.cpp's templates) refuse every later request of a session that holds
// arguments which are not a JSON object. So none at all are sent as {}, and what is no object is sent whole as the one
// string of an object: the model sees what it wrote, and the call's result says that it could not be read.
func sendableArgs(args string) (sent string, verbatim bool) {
	trimmed := strings.TrimLeft(args, " \t\r\n")
	if trimmed == "" {
		return "{}", true
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return args, true
	}
	b := append([]byte(nil), `{"malformed_arguments":`...)
	return string(append(transcript.AppendString(b, args), '}')), false
}

// maxName is the length of the longest name of a tool that OpenAI takes.
const maxName = 64

// sendableName returns the name of a call's tool as it may be sent, and whether that is what the model wrote. OpenAI
// refuses every later request of a session that holds a name of other characters than letters, digits, "_" and "-", or
// none at all; no tool has such a name, and the call's result quotes it.
func sendableName(name string) (sent string, verbatim bool) {
	sent = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if sent = sent[:min(len(sent), maxName)]; sent == "" {
		sent = "unnamed"
	}
	return sent, sent == name
}

// Unsendable names the reasoning that the flavour has no field for, that was cut or that is another model's, another model's
// signatures, an answer of which nothing is left, the names of tools that are sent changed, and the arguments that are sent as a
// string.
func (d dialect) Unsendable(m transcript.Message) []string {
	a := m.Answer
	if a == nil {
		return nil
	}
	var out []string
	foreign := m.Foreign && d.version > 1
	said := "it is another model's"
	if m.Origin.Model != "" {
		said = "it is of another model, " + m.Origin.Provider + "/" + m.Origin.Model
	}
	reasoned := slices.ContainsFunc(a.Parts, func(p transcript.Part) bool { return p.Type == transcript.PartReasoning })
	switch {
	case foreign && reasoned:
		out = append(out, "reasoning: not sendable, because "+said)
	case d.hasDetails():
		out = append(out, d.unsendableDetails(a)...)
	case d.reasoning == ReasoningNone && a.Reasoning() != "":
		out = append(out, "reasoning: not sendable, because OpenAI chat completions has no field for it")
	}
	if d.nothing(a, foreign) {
		out = append(out, "answer: not sent, because it says nothing that can be sent")
	}
	for _, p := range a.Parts {
		if foreign && p.Call != nil && len(p.Extra) > 0 {
			out = append(out, fmt.Sprintf("signature of call %s: not sendable, because %s", p.Call.ID, said))
		}
	}
	for _, c := range a.Calls() {
		if sent, ok := sendableName(c.Name); !ok {
			out = append(out, fmt.Sprintf("name of call %s: sent as %s, because %q is no name that a tool can have", c.ID, sent, c.Name))
		}
		if _, ok := sendableArgs(c.Args); !ok {
			out = append(out, fmt.Sprintf("arguments of call %s: sent as one string, because they are not a JSON object", c.ID))
		}
	}
	return slices.Clip(out)
}
