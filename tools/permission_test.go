package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"fermata/agent/permit"
)

func TestAToolAsksAboutTheFilesThatItsArgumentsMean(t *testing.T) {
	b := newBench(t, "-- f --\nx\n-- d/g --\nx\n", nil)
	for _, tt := range []struct {
		tool, args string
		paths      []string
		command    string
	}{
		{"read_file", `{"path":"d/../f"}`, []string{"f"}, ""},
		{"list_dir", `{}`, []string{"."}, ""},
		{"glob", `{"pattern":"*","path":"d/"}`, []string{"d"}, ""},
		{"grep", `{"pattern":"x"}`, []string{"."}, ""},
		{"write_file", `{"path":"./new/h","content":""}`, []string{"new/h"}, ""},
		{"edit_file", `{"path":"` + strings.ReplaceAll(b.dir, `\`, `/`) + `/f","old":"x","new":"y"}`, []string{"f"}, ""},
		{"run", `{"command":" ls "}`, nil, " ls "},
		{"write_file", `{"path":`, nil, ""},
		{"write_file", `{"path":"../x","content":""}`, nil, ""},
	} {
		tool, _ := Lookup(tt.tool)
		c := tool.Ask(b.w, json.RawMessage(tt.args))
		if c.Tool != tt.tool || c.ReadOnly != tool.ReadOnly || !slices.Equal(c.Paths, tt.paths) || c.Command != tt.command || c.Root != b.w.RealRoot() {
			t.Errorf("%s %s asks %+v", tt.tool, tt.args, c)
		}
	}
}

func TestAFileOutsideIsNotAskedAbout(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", nil)
	for tool, args := range map[string]string{"write_file": `{"path":"../x","content":""}`, "edit_file": `{"path":"/etc/passwd","old":"x","new":"y"}`} {
		tool, _ := Lookup(tool)
		if bad, ok := tool.Check(b.w, json.RawMessage(args)); ok || bad.State != Failed || !strings.Contains(bad.Output, "outside the workspace") {
			t.Errorf("%s: %+v %v", tool.Name, bad, ok)
		}
	}
}

// guards C3
func TestAPreviewChangesNothing(t *testing.T) {
	b := newBench(t, "-- f --\nx\n", editor{"open": "x\n"})
	for _, tool := range All() {
		var args string
		switch tool.Name {
		case "write_file":
			args = `{"path":"new/g","content":"y\n"}`
		case "edit_file":
			args = `{"path":"f","old":"x","new":"y"}`
		case "apply_patch":
			args = `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"}`
		case "move_path":
			args = `{"from":"f","to":"new/g"}`
		case "delete_path":
			args = `{"path":"f"}`
		default:
			if tool.ReadOnly || tool.Name == "run" {
				if tool.Preview != nil {
					t.Errorf("%s has a preview", tool.Name)
				}
				continue
			}
			continue // a tool with a test of its own
		}
		env := Env{Workspace: b.w, Intent: func(context.Context, Change) error {
			t.Errorf("%s: a preview got as far as its intent", tool.Name)
			return nil
		}}
		changes, result := tool.Preview(t.Context(), env, json.RawMessage(args))
		want := map[string]string{"move_path": "x\n", "delete_path": ""}
		after, other := want[tool.Name]
		if !other {
			after = "y\n"
		}
		if len(changes) != 1 || string(changes[0].After) != after {
			t.Errorf("%s: %+v", tool.Name, changes)
		}
		if result.State != Done {
			t.Errorf("%s: what would succeed is said to come to %+v", tool.Name, result)
		}
	}
	if got := b.content(t, "f"); got != "x\n" {
		t.Errorf("the file holds %q", got)
	}
	if got := b.content(t, "new/g"); !strings.Contains(got, "no such file") && !strings.Contains(got, "cannot find") {
		t.Errorf("the new file holds %q", got)
	}
}

// A link that changes between the decision and the run leads no tool to another file. The permit here is one for the name
// as it stood before.
func TestAPermitIsForTheFileThatWasAskedAbout(t *testing.T) {
	b := newBench(t, "-- f --\nx\n-- g --\nx\n", nil)
	tool, _ := Lookup("edit_file")
	other := allow(b.w, tool, json.RawMessage(`{"path":"g","old":"x","new":"y"}`))
	var a editFileArgs
	if err := json.Unmarshal([]byte(`{"path":"f","old":"x","new":"y"}`), &a); err != nil {
		t.Fatal(err)
	}
	f, err := b.w.Read("f")
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Workspace: b.w, Permit: other, Intent: func(context.Context, Change) error {
		t.Error("got as far as its intent")
		return nil
	}}
	if r := change(t.Context(), env, "edit_file", f, []byte("y\n")); r.State != Failed || !strings.Contains(r.Output, "permission denied") {
		t.Errorf("%+v", r)
	}
	read, _ := Lookup("read_file")
	env = Env{Workspace: b.w, Permit: permit.Permit{}, MayRead: func(path string) (string, bool) { return "no", path != "f" }}
	if r := read.Run(t.Context(), env, json.RawMessage(`{"path":"f"}`)); r.State != Failed || strings.Contains(r.Output, "\tx") {
		t.Errorf("%+v", r)
	}
	if r := read.Run(t.Context(), env, json.RawMessage(`{"path":"g"}`)); r.State != Done {
		t.Errorf("%+v", r)
	}
}
