package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/workspace"
)

// Bounds of what a server's list can put into every request.
const (
	nameBytes        = 64 // what the strictest providers allow
	descriptionBytes = 2 << 10
	schemaBytes      = 16 << 10
	offered          = 128
	summaryBytes     = 160
)

// fit makes tools of those of a server's list that the user wants and that models can be told of, by name. notes say what is
// left out and why. Invariant: equal lists give equal tools, whatever their order (M4). Tested by
// TestAHostileListIsMadeFit.
func (s *server) fit(list []*sdk.Tool) (fit []tools.Tool, notes []string) {
	note := func(format string, args ...any) {
		if len(notes) < 10 {
			notes = append(notes, "the MCP server "+s.c.Name+": "+fmt.Sprintf(format, args...))
		}
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, byName)
	fit = []tools.Tool{}
	taken := map[string]string{}
	seen := map[string]bool{}
	for _, t := range list {
		if s.c.Tools != nil && !slices.Contains(s.c.Tools, t.Name) {
			continue
		}
		schema, err := schemaOf(t.InputSchema)
		name := s.nameOf(t.Name, taken)
		switch {
		case t.Name == "" || seen[t.Name]:
			note("a tool has no name, or that of another one, and is left out")
			continue
		case taken[name] != "": // made to look like it
			note("the tool %s cannot be told from another one, and is left out", readable(t.Name, 100))
			continue
		case err != nil:
			note("the tool %s is left out: %v", readable(t.Name, 100), err)
			continue
		case len(fit) == offered:
			note("it has more than %d tools; the others are left out: name those that are needed in its tools", offered)
			return fit, notes
		}
		seen[t.Name], taken[name] = true, t.Name
		fit = append(fit, s.tool(name, t.Name, s.describe(t), schema))
	}
	for _, name := range s.c.Tools {
		if !slices.ContainsFunc(list, func(t *sdk.Tool) bool { return t.Name == name }) {
			note("it has no tool %q", name)
		}
	}
	return fit, notes
}

func byName(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) }

// nameOf is what models call a tool: the server's name, "__", and its own as far as that is allowed. Where that is not the
// whole, or another tool has it, the digest of its own makes it one of a kind.
func (s *server) nameOf(own string, taken map[string]string) string {
	name := s.c.Name + "__" + clean(own)
	_, doubled := taken[name]
	if len(name) <= nameBytes && !doubled {
		return name
	}
	sum := sha256.Sum256([]byte(own))
	end := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), nameBytes-len(end))] + end
}

// clean is a name in the characters that all providers allow.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// describe is the server's description, bounded, with who says it.
func (s *server) describe(t *sdk.Tool) string {
	text := strings.TrimSpace(plain(t.Description[:min(len(t.Description), 2*descriptionBytes)]))
	if text == "" {
		text = readable(t.Title, 200)
	}
	if len(text) > descriptionBytes {
		text = strings.ToValidUTF8(text[:descriptionBytes], "") + " …"
	}
	return strings.TrimSpace("A tool of the MCP server " + s.c.Name + ". " + text)
}

// schemaOf is a schema as models are sent it: compact, the names of objects sorted.
func schemaOf(v any) (json.RawMessage, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("its schema is no object")
	}
	switch t := object["type"].(type) {
	case nil:
		object["type"] = "object"
	case string:
		ok = t == "object"
	default:
		ok = false
	}
	if !ok {
		return nil, fmt.Errorf("its arguments are no object")
	}
	maps.DeleteFunc(object, func(_ string, v any) bool { return v == nil }) // what some libraries write for nothing, and providers refuse
	if _, ok := object["properties"]; !ok {
		object["properties"] = map[string]any{} // several providers want one
	}
	if _, ok := object["properties"].(map[string]any); !ok {
		return nil, fmt.Errorf("its arguments are no object")
	}
	delete(object, "$schema")
	var b bytes.Buffer
	e := json.NewEncoder(&b) // sorts, so that equal schemas are equal bytes
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return nil, fmt.Errorf("its schema cannot be encoded: %w", err)
	}
	if b.Len() > schemaBytes {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", b.Len(), schemaBytes)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// tool is the catalogue's entry. own is the server's name for it.
func (s *server) tool(name, own, description string, schema json.RawMessage) tools.Tool {
	readOnly := slices.Contains(s.c.ReadOnly, own)
	check := func(_ *workspace.Workspace, args json.RawMessage) (tools.Result, bool) {
		if err := isObject(args); err != nil {
			return failf("%s: %v; its arguments are a JSON object of this schema: %s", name, err, schema), false
		}
		return tools.Result{}, true
	}
	summary := func(args json.RawMessage) string {
		return strings.TrimSpace(name + " " + readable(string(args), summaryBytes))
	}
	ask := func(w *workspace.Workspace, args json.RawMessage) permit.Call {
		c := permit.Call{Tool: name, ReadOnly: readOnly, Summary: summary(args), Arguments: string(args)}
		if w != nil {
			c.Root = w.RealRoot()
		}
		return c
	}
	return tools.Tool{
		Name: name, Description: description, Schema: schema, ReadOnly: readOnly,
		Summary: summary, Check: check, Ask: ask,
		Run: func(ctx context.Context, env tools.Env, args json.RawMessage) tools.Result {
			if bad, ok := check(env.Workspace, args); !ok {
				return bad
			}
			if !readOnly && !env.Permit.Allows(ask(env.Workspace, args)) {
				return failf("%s: permission denied", name)
			}
			if ctx.Err() != nil {
				return tools.Result{State: tools.Stopped, Output: notBegun}
			}
			return s.call(ctx, request{name, own, args, env.Progress})
		},
	}
}

const notBegun = "stopped before it began: nothing was done"

// isObject says why arguments are no JSON object. None at all are an empty one.
func isObject(args json.RawMessage) error {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return fmt.Errorf("the arguments are no JSON object: %w", err)
	}
	return nil
}

func failf(format string, args ...any) tools.Result {
	return tools.Result{State: tools.Failed, Output: fmt.Sprintf(format, args...)}
}
