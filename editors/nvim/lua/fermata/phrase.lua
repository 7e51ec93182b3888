--- What is said about turns in a few words, the same everywhere.
local config = require('fermata.config')

local M = {}

---@param n integer
---@param one string
---@return string
function M.count(n, one)
  return ('%d %s%s'):format(n, one, n == 1 and '' or 's')
end

--- A text on one line of a number of columns at most.
---@param text string
---@param width integer
---@return string
function M.short(text, width)
  text = vim.trim((text:gsub('[%s%c%z]+', ' ')))
  if vim.api.nvim_strwidth(text) <= width then
    return text
  end
  text = vim.fn.strcharpart(text, 0, math.max(width, 0))
  while text ~= '' and vim.api.nvim_strwidth(text) > width - 1 do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return text .. '…'
end

--- What a tool does or did: its summary, else its name.
---@param tool fermata.Tool
---@return string
function M.tool(tool)
  return tool.summary and tool.summary ~= '' and tool.summary or tool.name
end

local causes = {
  permission_denied = 'denied',
  stopped_by_user = 'stopped by you',
  client_gone = 'the editor had gone',
  shutdown = 'fermata was ending',
  turn_failed = 'the turn had failed',
  daemon_died = 'fermata had ended',
  unknown_tool = 'there is no such tool',
  withheld = 'the answer was withheld',
}

--- What became of the tools, in one line; '' when there were none.
---@param tools fermata.Tool[]
---@return string
function M.fates(tools)
  local out = {}
  for _, tool in ipairs(tools) do
    local state = tool.state:gsub('_', ' ')
    if tool.cause and causes[tool.cause] and not (tool.state == 'stopped' and tool.cause == 'stopped_by_user') then
      state = state .. ', ' .. causes[tool.cause]
    end
    table.insert(out, ('%s: %s'):format(M.short(M.tool(tool), 40), state))
  end
  return table.concat(out, '; ')
end

---@param turn fermata.Turn
---@return string
function M.withheld(turn)
  local names = {}
  for _, check in ipairs(turn.result and turn.result.withheld or {}) do
    table.insert(names, check.check)
  end
  return table.concat(names, ', ')
end

--- What a running turn does now.
---@param turn fermata.Turn
---@return string
local function doing(turn)
  for i = #turn.tools, 1, -1 do
    local tool = turn.tools[i]
    if tool.state == 'running' then
      return M.tool(tool)
    elseif tool.state == 'asking' then
      return 'asks: ' .. M.tool(tool)
    end
  end
  return turn.note or turn.thought and 'thinking' or turn.words == 0 and 'waiting for the model' or ''
end

--- The state in words, with the highlight group it has.
---@param turn fermata.Turn
---@return string text
---@return string group
function M.state(turn)
  local words = M.count(turn.words, 'word')
  if turn.state == 'stopping' then
    return 'stopping…', 'FermataControl'
  elseif turn.state == 'stopped' then
    local silent = turn.result and turn.result.silent
    return silent and 'Stopped before anything was said' or ('Stopped here · %s kept'):format(words), 'FermataStopped'
  elseif turn.state == 'completed' then
    return 'Answered · ' .. words, 'FermataDone'
  elseif turn.state == 'abandoned' then
    return 'Abandoned', 'FermataFailed'
  elseif turn.state == 'failed' then
    local withheld = M.withheld(turn)
    if withheld ~= '' then
      return 'Withheld by ' .. withheld, 'FermataFailed'
    end
    return 'Failed', 'FermataFailed'
  end
  return '■ Stop', 'FermataControl'
end

--- The control of a turn as pieces of a virtual line.
---@param turn fermata.Turn
---@param width integer
---@return [string, string][]
function M.control(turn, width)
  local text, group = M.state(turn)
  local pieces, used = {}, 0
  local function add(piece, name)
    if used < width then
      piece = M.short(piece, width - used)
      used = used + vim.api.nvim_strwidth(piece)
      table.insert(pieces, { piece, name })
    end
  end
  local function detail(piece)
    if piece ~= '' and used + 3 < width then
      table.insert(pieces, { ' · ', 'FermataDetail' })
      used = used + 3
      add(piece, 'FermataDetail')
    end
  end
  add(text, group)
  if turn.state == 'asking' or turn.state == 'running' then
    local key = config.get().keys.stop
    if key then
      table.insert(pieces, { ' ', group })
      used = used + 1
      add(key, 'FermataKey')
    end
    if turn.words > 0 then
      detail(M.count(turn.words, 'word'))
    end
    detail(doing(turn))
  elseif turn.state ~= 'stopping' then
    detail(M.fates(turn.tools))
    if turn.state == 'stopped' then
      detail(':Fermata redirect')
    elseif turn.state == 'failed' or turn.state == 'abandoned' then
      detail(':Fermata retry')
      if turn.words > 0 then
        detail(':Fermata keep')
      end
      local result = turn.result or {}
      detail(result.error or result.cause or turn.note or '')
    end
  end
  return pieces
end

return M
