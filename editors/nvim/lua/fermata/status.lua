--- What runs, for statuslines.
local M = {}

--- The newest turn that runs, and how many others do: "■ 85 words", "stopping…", "■ 3 words +1"; '' when nothing runs.
---@return string
function M.text()
  local turns = package.loaded['fermata.turns']
  if not turns then
    return ''
  end
  local running = turns.running()
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
