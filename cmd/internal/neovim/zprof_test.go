//go:build nvim

package neovim

import "testing"

func TestZProfile(t *testing.T) {
	inBoth(t, "reply\nwait 300ms\nsize 5\nwords 4000\nsay \"the end\"\n", func(t *testing.T, u *user) {
		u.Type(":Fermata ask Q<CR>")
		u.See("■ Stop")
		u.Ex("Fermata transcript")
		u.Until("the transcript", "return vim.bo.filetype == 'fermata'")
		u.Lua(nil, `_G.log = {}
			local function wrap(tab, name)
				local fn = tab[name]
				tab[name] = function(...)
					local a = os.clock()
					local r = { fn(...) }
					local d = (os.clock() - a) * 1e3
					local e = _G.log[name] or { n = 0, total = 0, max = 0 }
					e.n, e.total, e.max = e.n + 1, e.total + d, math.max(e.max, d)
					_G.log[name] = e
					return unpack(r)
				end
			end
			for _, n in ipairs({ 'nvim_buf_set_text', 'nvim_buf_set_lines', 'nvim_buf_set_extmark', 'nvim_strwidth', 'nvim_win_get_cursor', 'nvim_win_set_cursor', 'nvim_buf_get_lines' }) do wrap(vim.api, n) end
			wrap(require('fermata.events'), 'handle')
			wrap(require('fermata.transcript'), 'event')
			wrap(require('fermata.transcript'), 'fold')
			wrap(vim.json, 'decode')
			wrap(vim, 'schedule')
			wrap(require('fermata.phrase'), 'control')
			local ns = vim.api.nvim_create_namespace('zprof')
			local start
			vim.api.nvim_set_decoration_provider(ns, { on_start = function() start = os.clock() end, on_end = function()
				local d = (os.clock() - start) * 1e3
				local e = _G.log.redraw or { n = 0, total = 0, max = 0 }
				e.n, e.total, e.max = e.n + 1, e.total + d, math.max(e.max, d)
				_G.log.redraw = e
			end })
			local last, timer = os.clock(), vim.uv.new_timer()
			_G.longest, _G.ticks, _G.all = 0, {}, os.clock()
			timer:start(0, 2, function()
				local now = os.clock()
				local d = (now - last) * 1e3
				if d > 10 then table.insert(_G.ticks, math.floor(d)) end
				_G.longest = math.max(_G.longest, d)
				last = now
			end)
			_G.stop = function() timer:stop() 
				local t = {}
				for k, e in pairs(_G.log) do table.insert(t, ('%s n=%d total=%.1f max=%.1f'):format(k, e.n, e.total, e.max)) end
				table.sort(t)
				return ('longest cpu %.1f all %.0f ticks>10: %s\n%s'):format(_G.longest, (os.clock() - _G.all) * 1e3, table.concat(_G.ticks, ' '), table.concat(t, '\n')) end`)
		u.See("Answered · 4002 words")
		u.settled()
		t.Log(u.Text("return _G.stop()"))
	})
}
