//go:build nvim

package neovim

import (
	"testing"
)

// The figures are the plugin's own: how long Neovim's loop was not free, and the time it computed. The bounds are several
// times what an idle machine needs, because the tests share one.
func TestAFastAnswerDoesNotHoldNeovimUp(t *testing.T) {
	inBoth(t, "reply\nwait 300ms\nsize 5\nwords 4000\nsay \"the end\"\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("■ Stop")
		u.Ex("Fermata transcript")
		u.Until("the transcript", "return vim.bo.filetype == 'fermata'")
		u.Lua(nil, `local last, timer = vim.uv.hrtime(), vim.uv.new_timer()
			local clock = os.clock()
			_G.longest, _G.computed, _G.cpu = 0, 0, vim.uv.getrusage()
			timer:start(0, 2, function()
				local now = vim.uv.hrtime()
				_G.longest = math.max(_G.longest, (now - last) / 1e6 - 2)
				_G.computed = math.max(_G.computed, (os.clock() - clock) * 1e3)
				last, clock = now, os.clock()
			end)
			_G.stop = function()
				timer:stop()
				local a, b = _G.cpu, vim.uv.getrusage()
				local function s(t) return t.sec + t.usec / 1e6 end
				return { Longest = _G.longest, Computed = _G.computed, CPU = s(b.utime) - s(a.utime) + s(b.stime) - s(a.stime) }
			end`)
		u.See("Answered · 4002 words")
		var figures struct{ Longest, Computed, CPU float64 }
		u.Lua(&figures, "return _G.stop()")
		t.Logf("4,000 words: the loop was not free for at most %.1f ms, at most %.1f ms computed in one go, %.2f s in all",
			figures.Longest, figures.Computed, figures.CPU)
		if figures.Longest > 500 || figures.Computed > 60 || figures.CPU > 6 {
			t.Errorf("the loop was not free for %.1f ms, %.1f ms were computed in one go and %.2f s in all",
				figures.Longest, figures.Computed, figures.CPU)
		}
		if text := u.settled(); !pattern("w3999 w4000 the end").MatchString(text) {
			t.Errorf("the transcript ends with\n%s", text[max(0, len(text)-200):])
		}
	})
}

// S3's first sign: from the key to "stopping…" on the screen while text streams in.
func TestAStopIsAcknowledgedAtOnce(t *testing.T) {
	inBoth(t, "reply\nrate 300\nwords 30000\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("w300 ")
		u.Lua(nil, `local turns = require('fermata.turns')
			local stop = turns.stop
			turns.stop = function(...)
				local began = vim.uv.hrtime()
				stop(...)
				_G.took = (vim.uv.hrtime() - began) / 1e6
			end`)
		u.stop()
		u.See("Stopped here", "What should it do instead?")
		var took float64
		u.Lua(&took, "return _G.took")
		t.Logf("from the key to the screen: %.1f ms", took)
		if took > 200 {
			t.Errorf("it took %.1f ms", took)
		}
	})
}
