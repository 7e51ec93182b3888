package lsp

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// anything is what most fields do not take.
var anything = []any{
	nil, true, -1, 1e30, "", "x\x00y", []any{7, obj{}}, obj{"uri": "file:///%00", "range": obj{"start": obj{"line": 4294967295}, "end": nil}},
}

// someFields are fields of the methods' params, each with a value that it takes where that is short to say.
var someFields = obj{
	"after": "t_x", "anchor": obj{}, "arguments": []any{obj{}}, "body": "{}", "clientId": "k", "command": "fermata.stop", "context": obj{},
	"cursor": "1.1", "format": "json", "limit": 1, "mode": "ask", "model": "m", "paths": []any{"x"}, "preview": true, "prompt": text("x"),
	"query": "x", "range": obj{}, "redirects": "t_x", "request": "r_x", "revert": "s_x.1", "session": "s_x", "since": 1, "textDocument": obj{},
	"title": "x", "turn": "t_x", "undo": true, "workDoneToken": 1, "workspace": "/",
}

// Whatever params a method is sent, none at all too, it answers, and an error is the sender's and not one of fermata's own: a
// panic is one.
func TestNoParamsOfAnyMethodAreFermatasFault(t *testing.T) {
	e := start(t, "reply\nsay Good.\n")
	e.initialize(fermataClient)
	e.session()
	for _, method := range slices.Sorted(maps.Keys(requests)) {
		if method == "initialize" || method == "shutdown" {
			continue // they take what comes, once
		}
		all := slices.Concat([]any{nil}, anything, []any{someFields})
		for name := range someFields {
			for _, v := range anything {
				if method != "fermata/session/new" { // which would be made
					with := maps.Clone(someFields)
					with[name] = v
					all = append(all, with)
				}
			}
		}
		for _, command := range commandNames {
			if method == "workspace/executeCommand" {
				for name := range someFields {
					for _, v := range anything {
						all = append(all, obj{"command": command, "arguments": []any{obj{name: v}}})
					}
				}
			}
		}
		var asked []obj
		open := map[int]bool{}
		for _, params := range all {
			asked = append(asked, e.req(method, params))
			open[e.lastID] = true
		}
		e.send(asked...)
		first, n := asked[0]["id"].(int), 0
		e.await("an answer to each "+method, func() bool {
			for ; n < len(e.got); n++ {
				m := e.got[n]
				var id int
				if m.Method != "" || json.Unmarshal(m.ID, &id) != nil || id < first {
					continue
				}
				delete(open, id)
				if m.Error != nil && (m.Error.Data.Kind == "internal" || m.Error.Code == -32603) {
					t.Errorf("%s: %s, of %v", method, m.Error.Message, asked[id-first]["params"])
				}
			}
			return len(open) == 0
		})
	}
}
