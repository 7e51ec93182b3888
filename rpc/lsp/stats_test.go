package lsp

import "testing"

// guards X1, X2, X3, X4
func TestStatsAreCountedForAWorkspaceOrForAll(t *testing.T) {
	e := start(t, "reply\nsay The answer\nusage 10 5 3\n")
	e.initialize(fermataClient)
	e.call("fermata/turn/start", obj{"session": e.session(), "prompt": text("the question")}, nil)
	for _, tt := range []struct {
		params any
		turns  int
	}{{nil, 1}, {obj{"workspace": fileURI(e.root)}, 1}, {obj{"workspace": t.TempDir()}, 0}} {
		var got struct {
			Turns       int
			Tokens      struct{ Input, Cached, Triangle int64 }
			Returns     struct{ Young int }
			Definitions map[string]string
		}
		e.call("fermata/stats", tt.params, &got)
		if got.Turns != tt.turns || got.Returns.Young != tt.turns || got.Tokens.Input != int64(10*tt.turns) || got.Definitions["returns"] == "" {
			t.Errorf("%v: %+v", tt.params, got)
		}
	}
	e.refused("fermata/stats", obj{"workspace": "relative"}, -32602, "workspace: expected an absolute path")
}
