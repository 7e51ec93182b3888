package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// request is what a body says, read the way the plan needs it.
type request struct {
	tools    map[string]json.RawMessage // name → schema
	messages []message
	words    int // of all contents: the count of tokens it reports
	cached   int // of those, what the request before this one had already sent

	last  int // index of the last user message
	steps int // the answers since
}

type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	CallID    string `json:"tool_call_id"`
	Calls     []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func readRequest(body []byte) (*request, error) {
	var in struct {
		Stream   bool      `json:"stream"`
		Messages []message `json:"messages"`
		Tools    []struct {
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("the body is not a chat completions request: %w", err)
	}
	if !in.Stream {
		return nil, errors.New("the rehearsal model only streams: set stream to true")
	}
	q := &request{tools: map[string]json.RawMessage{}, messages: in.Messages, last: -1}
	for _, t := range in.Tools {
		q.tools[t.Function.Name] = t.Function.Parameters
	}
	for i, m := range in.Messages {
		switch m.Role {
		case "user":
			q.last, q.steps = i, 0
		case "assistant":
			q.steps++
			q.cached = q.words
		}
		q.words += len(strings.Fields(m.Content)) + len(strings.Fields(m.Reasoning))
	}
	if q.last < 0 {
		return nil, errors.New("no message of role user")
	}
	return q, nil
}

// spoke says whether the model has said anything in the conversation.
func (q *request) spoke() bool {
	return slices.ContainsFunc(q.messages, func(m message) bool {
		return m.Role == "assistant" && strings.TrimSpace(m.Content) != ""
	})
}

// user splits a user message into the notices at its start, in square brackets, and the user's own words.
func user(m message) (notice, words string) {
	rest := m.Content
	var lines []string
	for strings.HasPrefix(rest, "[") {
		line, after, _ := strings.Cut(rest, "\n")
		if !strings.HasSuffix(strings.TrimSpace(line), "]") {
			break
		}
		lines, rest = append(lines, line), after
	}
	return strings.Join(lines, "\n"), strings.TrimSpace(rest)
}

// result is a tool's result with the call that it belongs to.
type result struct {
	tool, args, output string
}

// results are the tool results from message i on.
func (q *request) results(i int) []result {
	var out []result
	calls := map[string]result{}
	for _, m := range q.messages[i:] {
		for _, c := range m.Calls {
			calls[c.ID] = result{tool: c.Function.Name, args: c.Function.Arguments}
		}
		if m.Role == "tool" {
			r := calls[m.CallID]
			r.output = m.Content
			out = append(out, r)
		}
	}
	return out
}

// arg is an argument of the call as text, "" when it has none of that name.
func (r result) arg(names ...string) string {
	var args map[string]any
	if json.Unmarshal([]byte(r.args), &args) != nil {
		return ""
	}
	for _, n := range names {
		if s, ok := args[n].(string); ok {
			return s
		}
	}
	return ""
}

// failed says whether the output is a receipt or an error rather than what was asked for.
func (r result) failed() bool {
	return strings.HasPrefix(r.output, "[not run") || strings.HasPrefix(r.output, "[result unknown")
}

// tool is a tool by its role in the plan, as the request names it: the first of names that is offered, "" when none is.
func (q *request) tool(names ...string) string {
	for _, n := range names {
		if _, ok := q.tools[n]; ok {
			return n
		}
	}
	return ""
}
