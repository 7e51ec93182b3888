package tools

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"fermata/agent/permit"
	"fermata/tools/process"
	"fermata/tools/workspace"
)

// bench is a workspace with an editor, and what tools recorded.
type bench struct {
	dir     string
	w       *workspace.Workspace
	ed      editor
	changes []Change
	intent  error // what Intent answers
	memory  Memory
	sandbox *process.Sandbox
}

func newBench(t *testing.T, archive string, ed editor) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), ed: ed}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		b.put(t, f.Name, string(f.Data))
	}
	var ov workspace.Overlay
	if ed != nil {
		ov = ed
	}
	w, err := workspace.Open(b.dir, ov)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	b.w = w
	return b
}

// openBench is a bench in a folder that is there.
func openBench(t *testing.T, dir string) *bench {
	t.Helper()
	w, err := workspace.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &bench{dir: dir, w: w}
}

func (b *bench) put(t *testing.T, name, content string) {
	t.Helper()
	name = filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// run runs a tool as the agent does, everything allowed.
func (b *bench) run(t *testing.T, ctx context.Context, name string, args any) Result {
	t.Helper()
	tool, ok := Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	raw, isRaw := args.(string)
	if !isRaw {
		enc, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(enc)
	}
	env := Env{
		Workspace: b.w,
		Memory:    b.memory,
		Sandbox:   b.sandbox,
		Permit:    allow(b.w, tool, json.RawMessage(raw)),
		Intent: func(_ context.Context, c Change) error {
			b.changes = append(b.changes, c)
			return b.intent
		},
	}
	r := tool.Run(ctx, env, json.RawMessage(raw))
	if r.Output == "" || !utf8.ValidString(r.Output) || strings.ContainsRune(r.Output, 0) {
		t.Errorf("%s: the output is not fit for a model: %q", name, r.Output)
	}
	return r
}

// allow mints a permit as the agent does in mode trust.
func allow(w *workspace.Workspace, tool Tool, raw json.RawMessage) permit.Permit {
	return permit.Policy{Mode: permit.ModeTrust}.Decide(tool.Ask(w, raw), permit.Grants{}).Permit
}

type args map[string]any

// editor is a set of open documents.
type editor map[string]string

func (e editor) Text(p string) (string, bool) { t, ok := e[p]; return t, ok }
func (e editor) Paths() []string              { return slices.Collect(maps.Keys(e)) }
func (e editor) Apply(_ context.Context, p, before, after string) error {
	if e[p] != before {
		return errors.New("the document changed")
	}
	e[p] = after
	return nil
}

// guards M4: the order and the bytes of the catalogue are the head of every request.
func TestTheCatalogueIsFixed(t *testing.T) {
	var names []string
	for _, tool := range All() {
		names = append(names, tool.Name)
		var schema struct {
			Type       string
			Properties map[string]struct{ Type string }
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: schema: %v", tool.Name, err)
		}
		for _, r := range schema.Required {
			if schema.Properties[r].Type == "" {
				t.Errorf("%s: required %s has no type", tool.Name, r)
			}
		}
		if strings.ContainsAny(string(tool.Schema), "\n\t") || tool.Description == "" {
			t.Errorf("%s: schema not compact, or no description", tool.Name)
		}
		again, _ := Lookup(tool.Name)
		if string(again.Schema) != string(tool.Schema) || again.Description != tool.Description {
			t.Errorf("%s changes from call to call", tool.Name)
		}
	}
	if got := strings.Join(names, " "); got != "read_file list_dir glob grep write_file edit_file apply_patch move_path delete_path run" {
		t.Errorf("order: %s", got)
	}
	if _, ok := Lookup("Read_File"); ok {
		t.Error("a tool nobody defined was found")
	}
}

func TestArgumentsThatCannotBeReadAreExplained(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	for name, tt := range map[string]struct{ tool, args, says string }{
		"empty":                 {"read_file", "", `"path" is missing`},
		"blank":                 {"read_file", " \n", `"path" is missing`},
		"null":                  {"read_file", "null", `"path" is missing`},
		"missing":               {"edit_file", `{"path":"f","old":"x"}`, `"new" is missing`},
		"null argument":         {"write_file", `{"path":"f","content":null}`, `"content" is missing`},
		"cut":                   {"write_file", `{"path":"f","content":"hello wor`, "cut off: their JSON ends after 32 bytes"},
		"cut in an escape":      {"write_file", `{"path":"f","content":"\u00`, "cut off"},
		"not JSON":              {"run", `{command: ls}`, "not valid JSON"},
		"two objects":           {"run", `{"command":"ls"}{}`, "not valid JSON"},
		"a string":              {"read_file", `"f"`, "not a JSON object but a JSON string"},
		"an array":              {"read_file", `["f"]`, "not a JSON object but a JSON array"},
		"number as string":      {"read_file", `{"path":"f","offset":"1"}`, `"offset" is a JSON string, which it must not be: it must be an integer`},
		"fraction":              {"read_file", `{"path":"f","offset":1.5}`, `"offset" is a JSON number 1.5`},
		"path is a number":      {"read_file", `{"path":7}`, `"path" is a JSON number`},
		"bool as string":        {"edit_file", `{"path":"f","old":"x","new":"y","replace_all":"yes"}`, "true or false"},
		"not UTF-8":             {"read_file", "{\"path\":\"f\xff\"}", "not valid UTF-8"},
		"offset 0":              {"read_file", `{"path":"f","offset":0}`, "start at 1"},
		"timeout too long":      {"run", `{"command":"ls","timeout":601}`, "from 1 to 600"},
		"empty command":         {"run", `{"command":" "}`, "empty"},
		"NUL in a command":      {"run", `{"command":"ls\u0000"}`, "NUL"},
		"grep limit":            {"grep", `{"pattern":"x","limit":0}`, "from 1 to 1000"},
		"grep pattern":          {"grep", `{"pattern":"(?=x)"}`, "RE2"},
		"grep unclosed":         {"grep", `{"pattern":"a)(b"}`, "RE2"},
		"glob brackets":         {"glob", `{"pattern":"[a"}`, "malformed"},
		"glob above":            {"glob", `{"pattern":"../*"}`, "leads out"},
		"glob absolute":         {"glob", `{"pattern":"/etc/*"}`, "absolute"},
		"unknown ones are fine": {"read_file", `{"path":"f","why":["x"],"Offset":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.run(t, t.Context(), tt.tool, tt.args)
			if tt.says == "" {
				if r.State != Done {
					t.Errorf("%s: %s", r.State, r.Output)
				}
				return
			}
			if r.State != Failed || !strings.Contains(r.Output, tt.says) {
				t.Errorf("%s: %s\nwant %q", r.State, r.Output, tt.says)
			}
			tool, _ := Lookup(tt.tool)
			if bad, ok := tool.Check(nil, json.RawMessage(tt.args)); !ok && (bad.Output != r.Output || !strings.Contains(r.Output, "expected: {")) {
				t.Errorf("Check and Run disagree, or the expected shape is missing: %s", bad.Output)
			}
			if s := tool.Summary(json.RawMessage(tt.args)); !strings.HasPrefix(s, tt.tool) || strings.ContainsAny(s, "\n\x00") {
				t.Errorf("summary: %q", s)
			}
		})
	}
	if len(b.changes) != 0 {
		t.Errorf("something was recorded as changed: %v", b.changes)
	}
}

func TestASummaryIsOneSafeLine(t *testing.T) {
	for name, tt := range map[string]struct{ tool, args, want string }{
		"plain":   {"read_file", `{"path":"go.mod","offset":1,"limit":40}`, "read_file go.mod 1-40"},
		"offset":  {"read_file", `{"path":"go.mod","offset":9}`, "read_file go.mod 9-"},
		"root":    {"list_dir", ``, "list_dir ."},
		"command": {"run", `{"command":"echo a\nrm b"}`, `run "echo a\nrm b"`},
		"escape":  {"run", `{"command":"\u001b[2K"}`, `run "\x1b[2K"`},
		"long":    {"run", `{"command":"` + strings.Repeat("é", 200) + `"}`, "run " + strings.Repeat("é", 80) + "…"},
	} {
		tool, _ := Lookup(tt.tool)
		if got := tool.Summary(json.RawMessage(tt.args)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestAMutatingToolNeedsAPermitForThisVeryCall(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	calls := map[string]string{
		"write_file": `{"path":"f","content":"y"}`,
		"edit_file":  `{"path":"f","old":"x","new":"y"}`,
		"run":        `{"command":"echo y >f"}`,

		"apply_patch": `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"}`,
		"move_path":   `{"from":"f","to":"h"}`,
		"delete_path": `{"path":"f"}`,
	}
	yes := permit.Policy{Mode: permit.ModeTrust}
	for _, tool := range All() {
		raw, mutating := calls[tool.Name]
		if tool.ReadOnly == mutating {
			t.Errorf("%s: ReadOnly is %v", tool.Name, tool.ReadOnly)
		}
		if !mutating {
			continue
		}
		c := tool.Ask(b.w, json.RawMessage(raw))
		other, alike := c, c
		other.Paths, other.Command = append(slices.Clone(c.Paths), "g"), c.Command+" "
		alike.ReadOnly = true
		for name, p := range map[string]permit.Permit{
			"none":      {},
			"another's": yes.Decide(other, permit.Grants{}).Permit,
			"read-only": permit.Policy{}.Decide(alike, permit.Grants{}).Permit,
			"denied":    permit.Policy{Mode: permit.ModeReadOnly}.Decide(c, permit.Grants{}).Permit,
		} {
			r := tool.Run(t.Context(), Env{Workspace: b.w, Permit: p, Intent: func(context.Context, Change) error {
				t.Errorf("%s with permit %s got as far as its intent", tool.Name, name)
				return nil
			}}, json.RawMessage(raw))
			if r.State != Failed || !strings.Contains(r.Output, "permission denied") {
				t.Errorf("%s with permit %s: %s %s", tool.Name, name, r.State, r.Output)
			}
		}
	}
	if got := b.content(t, "f"); got != "x\n" {
		t.Errorf("the file was changed: %q", got)
	}
}

func TestAToolThatIsStoppedBeforeItBeginsDoesNothing(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, a := range map[string]args{
		"read_file": {"path": "f"}, "grep": {"pattern": "x"}, "glob": {"pattern": "*"}, "list_dir": {},
		"write_file": {"path": "f", "content": "y"}, "edit_file": {"path": "f", "old": "x", "new": "y"}, "run": {"command": "echo y >f"},
		"apply_patch": {"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"}, "move_path": {"from": "f", "to": "h"}, "delete_path": {"path": "f"},
	} {
		if r := b.run(t, ctx, name, a); r.State != Stopped {
			t.Errorf("%s: %s %s", name, r.State, r.Output)
		}
	}
	if got := b.content(t, "f"); got != "x\n" || len(b.changes) != 0 {
		t.Errorf("the file holds %q, recorded %v", got, b.changes)
	}
}
