//go:build nvim

package neovim

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"fermata/agent/model/chat"
	"fermata/transcript"
)

// long leaves a session of so many entries, in turns that each read a file.
func (u *user) long(entries int64) {
	u.t.Helper()
	store, err := transcript.Open(filepath.Join(u.home, "data", "fermata", "fermata.db"), transcript.Options{})
	if err != nil {
		u.t.Fatal(err)
	}
	defer store.Close()
	dialect, err := chat.ByName("chat/1")
	if err != nil {
		u.t.Fatal(err)
	}
	ctx := u.t.Context()
	log, err := store.NewSession(ctx, transcript.SessionOpened{Workspace: u.root, Title: "Long"})
	if err != nil {
		u.t.Fatal(err)
	}
	prose := strings.Repeat("Some words of an answer that takes a while to read. ", 8)
	for n := 1; log.Seq() < entries; n++ {
		turn := transcript.NewTurnID()
		started := &transcript.TurnStarted{
			Turn: turn, Prompt: []transcript.PromptPart{{Type: "text", Text: fmt.Sprintf("question %d", n)}},
		}
		for step := 1; step <= 2; step++ {
			sent, err := log.Send(ctx, transcript.Send{
				Turn: turn, Step: step, Try: 1, Route: "scripted http://127.0.0.1", Provider: "scripted", Model: "model", Enc: dialect,
				Head: []byte(`{"messages":[`), Tail: []byte(`]}`), Started: started,
			})
			if err != nil {
				u.t.Fatal(err)
			}
			c := transcript.Conclusion{
				Ended: transcript.RequestEnded{Request: sent.Request, Outcome: "complete", Status: 200},
				Answer: &transcript.Answer{
					Turn: turn, Step: step, Request: sent.Request, State: transcript.Complete,
					Parts: []transcript.Part{{Type: transcript.PartText, Text: fmt.Sprintf("%d.%d %s", n, step, prose)}},
				},
			}
			var tools []transcript.Body
			if step == 1 {
				call := transcript.Call{ID: "call_1", Name: "read_file", Args: `{"path":"notes.txt"}`}
				c.Answer.Parts = append(c.Answer.Parts, transcript.Part{Type: transcript.PartCall, Call: &call})
				tools = []transcript.Body{
					&transcript.ToolStarted{Turn: turn, Step: step, Call: call.ID, Name: call.Name, Summary: "read_file notes.txt"},
					&transcript.ToolSettled{Turn: turn, Step: step, Call: call.ID, Name: call.Name, State: transcript.ToolDone, Output: "one\ntwo\n"},
				}
			} else {
				c.TurnEnded = &transcript.TurnEnded{Turn: turn, Outcome: transcript.TurnCompleted}
			}
			if _, err := log.Conclude(ctx, c); err != nil {
				u.t.Fatal(err)
			}
			if len(tools) > 0 {
				if _, err := log.Append(ctx, tools...); err != nil {
					u.t.Fatal(err)
				}
			}
			started = nil
		}
	}
}

// The figures are those of the whole way: Neovim, the daemon and back.
func TestALongTranscriptIsThereAtOnce(t *testing.T) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, "reply\nsay ok\n")
			u.long(10_000)
			u.start(Options{}, "main.go")
			u.Lua(nil, `require('fermata.client').with(require('fermata.client').root_of(0), function() _G.ready = true end)`)
			u.Until("the daemon", "return _G.ready")
			u.Lua(nil, `
				local last, timer = os.clock(), vim.uv.new_timer()
				_G.longest = 0
				timer:start(0, 2, function()
					local now = os.clock()
					_G.longest, last = math.max(_G.longest, (now - last) * 1e3), now
				end)
				local began = vim.uv.hrtime()
				_G.at = {}
				local function stamp(what, a) table.insert(_G.at, ('%d %s cpu %.1f'):format((vim.uv.hrtime() - began) / 1e6, what, (os.clock() - a) * 1e3)) end
				for _, x in ipairs({ { vim.api, 'nvim_buf_set_lines' }, { vim.json, 'decode' } }) do
				local set = x[1][x[2]]
				x[1][x[2]] = function(...) local a = os.clock() local r = { set(...) } if (os.clock() - a) > 0.001 then stamp(x[2], a) end return unpack(r) end
				end
				local ns = vim.api.nvim_create_namespace('zprof')
				local s
				vim.api.nvim_set_decoration_provider(ns, { on_start = function() s = os.clock() end, on_end = function() stamp('redraw', s) end })
				vim.cmd('Fermata transcript')`)
			u.See("question 834")
			u.Until("the rest", "return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == [[# Long]]")
			t.Log(u.settled()[:80])
			t.Log(u.Text(`return ('longest %.1f; %s; lines %d'):format(_G.longest, table.concat(_G.at or {}, ', '), vim.api.nvim_buf_line_count(0))`))
		})
	}
}
