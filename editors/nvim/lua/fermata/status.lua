--- What runs, for statuslines.
local M = {}

local interval = 200 -- milliseconds between two drawings of statuslines, once one shows us
local timer ---@type uv.uv_timer_t?

--- Has statuslines drawn again when what they say has changed.
local function watch()
  timer = assert(vim.uv.new_timer())
  local turns = require('fermata.turns')
  local function draw()
    if not timer:is_active() then
      timer:start(
        interval,
        0,
        vim.schedule_wrap(function()
          vim.cmd.redrawstatus({ bang = true })
        end)
      )
    end
  end
  turns.on('text', draw)
  turns.on('changed', draw)
end

--- The newest turn that runs, and how many others do: "■ 85 words", "stopping…", "■ 3 words +1"; '' when nothing runs.
---@return string
function M.text()
  if not timer then
    watch()
  end
  local running = require('fermata.turns').running()
  local turn = running[#running]
  if not turn then
    return ''
  end
  local phrase = require('fermata.phrase')
  local text = turn.state == 'stopping' and 'stopping…' or '■ ' .. phrase.count(turn.words, 'word')
  if #running > 1 then
    text = ('%s +%d'):format(text, #running - 1)
  end
  return text
end

return M
