package lsp

import (
	"encoding/json"
	"testing"
)

// A client that registers what it is offered would have each command of its own twice: VS Code refuses that.
func TestCommandsAreNotOfferedToAClientThatHasThem(t *testing.T) {
	for _, own := range []bool{false, true} {
		e := start(t, endless)
		var r struct {
			Capabilities struct {
				ExecuteCommandProvider *struct{ Commands []string }
			}
		}
		e.call("initialize", obj{"rootUri": nil, "capabilities": obj{
			"experimental": obj{"fermata": obj{"protocol": 1, "ownCommands": own}}}}, &r)
		if p := r.Capabilities.ExecuteCommandProvider; own != (p == nil || len(p.Commands) == 0) {
			t.Errorf("own commands %v: offered are %+v", own, p)
		}
		e.send(note("initialized", obj{}))
		// They are executed all the same.
		e.answers["window/showDocument"] = func(json.RawMessage) any { return obj{"success": true} }
		e.refused("workspace/executeCommand", command0("fermata.stop"), -31003, "")
	}
}
