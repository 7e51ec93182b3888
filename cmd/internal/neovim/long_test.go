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

// The newest entries of 10,000 are there at once, the others come bit by bit, and a reader is left where he is. The figure is
// of the whole way: Neovim, the daemon and back. The time that Neovim computes in one go is what it cannot hear a key in; the
// bounds are several times what an idle machine needs.
func TestALongTranscriptIsThereAtOnce(t *testing.T) {
	for version, program := range neovims {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, program, "reply\nsay ok\n")
			u.long(10_000)
			u.start(Options{}, "main.go")
			u.Lua(nil, `require('fermata.client').with(require('fermata.client').root_of(0), function() _G.ready = true end)`)
			u.Until("the daemon", "return _G.ready")
			u.Lua(nil, `local last, began, timer = os.clock(), vim.uv.hrtime(), vim.uv.new_timer()
				_G.longest = 0
				timer:start(0, 2, function()
					local now = os.clock()
					_G.longest, last = math.max(_G.longest, (now - last) * 1e3), now
				end)
				local set = vim.api.nvim_buf_set_lines
				vim.api.nvim_buf_set_lines = function(...)
					set(...)
					if not _G.shown then
						vim.cmd.redraw()
						_G.shown = (vim.uv.hrtime() - began) / 1e6
					end
				end
				vim.cmd('Fermata transcript')`)
			u.See("question 834")
			u.Type("gg0")
			reading := u.Text("return vim.api.nvim_get_current_line()")
			u.Until("the rest", "return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == '# Long'")
			if line := u.Text("return vim.api.nvim_get_current_line()"); line != reading {
				t.Errorf("the reader was at %q and is at %q", reading, line)
			}
			var figures struct{ Longest, Shown float64 }
			u.Lua(&figures, "return { Longest = _G.longest, Shown = _G.shown }")
			u.settled()
			t.Logf("10,000 entries: the newest after %.0f ms, at most %.1f ms computed in one go", figures.Shown, figures.Longest)
			if figures.Shown > 1500 || figures.Longest > 60 {
				t.Errorf("the newest came after %.0f ms, and %.1f ms were computed in one go", figures.Shown, figures.Longest)
			}
			// Each question is one fold, also where two pages meet, and no line behind the first one is outside of them.
			var folds struct{ Folds, Turns, Outside int }
			u.Lua(&folds, `vim.cmd('normal! zM')
				local folds, outside, line = 0, 0, 1
				while line <= vim.api.nvim_buf_line_count(0) do
					local last = vim.fn.foldclosedend(line)
					folds, outside = folds + (last > 0 and 1 or 0), outside + (last < 0 and folds > 0 and 1 or 0)
					line = (last > 0 and last or line) + 1
				end
				vim.cmd('normal! zR')
				local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
				return { folds = folds, outside = outside, turns = select(2, text:gsub('\n## You', '')) }`)
			if folds.Folds != folds.Turns || folds.Outside > 0 {
				t.Errorf("there are %d folds of %d questions, and %d lines outside", folds.Folds, folds.Turns, folds.Outside)
			}
			u.Type("gg/question 3$<CR>zc")
			u.See("+-- You · question 3 · 14 lines", "question 4")
			u.Type("zo")
			var turn struct{ Turn string }
			u.Lua(&turn, "return { turn = require('fermata.transcript').here().turn }")
			if turn.Turn == "" {
				t.Error("the lines of older entries belong to no turn")
			}
		})
	}
}

func TestALongSummaryIsCutAtOnce(t *testing.T) {
	inBoth(t, "reply\nsay ok\n", func(t *testing.T, u *user) {
		var r struct {
			Ms        float64
			Text, Odd string
		}
		u.Lua(&r, `local phrase = require('fermata.phrase')
			local start = vim.uv.hrtime()
			local text = phrase.short(('ä'):rep(20000), 10)
			return { Ms = (vim.uv.hrtime() - start) / 1e6, Text = text, Odd = phrase.short('a\0b\27c' .. ('d'):rep(30), 10) }`)
		if r.Ms > 20 || r.Text != strings.Repeat("ä", 9)+"…" || r.Odd != "a b cdddd…" {
			t.Errorf("%+v", r)
		}
	})
}
