--- Takes fermata/event notifications apart and hands them to the turns and the transcripts.
local turns = require('fermata.turns')

local M = {}

--- The buffer of a URI, if it is open.
---@param uri string
---@return integer?
local function buffer(uri)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf) ~= '' and vim.uri_from_bufnr(buf) == uri then
      return buf
    end
  end
end

local handlers = {}

handlers['turn.started'] = function(event, root)
  turns.started(event.session, root, event.entry, buffer)
end

handlers['delta'] = function(event)
  local turn = turns.get(event.turn)
  if turn then
    turns.said(turn, event)
  end
end

handlers['retracted'] = function(event)
  local turn = turns.get(event.turn)
  if turn then
    turns.retracted(turn, event)
  end
end

handlers['stopping'] = function(event)
  local turn = turns.get(event.turn)
  if turn then
    turns.stopping(turn)
  end
  require('fermata.permission').dismiss(event.turn)
end

handlers['answer'] = function(event)
  local turn = turns.get(event.entry.turn)
  if not turn then
    return
  end
  turn.note, turn.answered = nil, event.entry.step
  for _, part in ipairs(event.entry.parts or {}) do
    if part.type == 'call' then
      turns.tool(turn, { step = event.entry.step, call = part.call.id, name = part.call.name, state = 'queued' })
    end
  end
end

handlers['tool.started'] = function(event)
  local turn, entry = turns.get(event.entry.turn), event.entry
  if turn then
    turns.tool(
      turn,
      { step = entry.step, call = entry.call, name = entry.name, summary = entry.summary, state = 'running' }
    )
  end
end

handlers['tool.settled'] = function(event)
  local turn, entry = turns.get(event.entry.turn), event.entry
  require('fermata.permission').dismiss(entry.turn, entry.call)
  if turn and not entry.late then
    turns.tool(
      turn,
      { step = entry.step, call = entry.call, name = entry.name, state = entry.state, cause = entry.cause }
    )
  end
  vim.cmd('silent! checktime') -- files that are open elsewhere may have changed on disk
end

handlers['turn.ended'] = function(event)
  local turn = turns.get(event.entry.turn)
  require('fermata.permission').dismiss(event.entry.turn)
  if turn then
    turns.ended(turn, event.entry)
  end
end

---@param event table
---@param root string?
function M.handle(event, root)
  local handler = handlers[event.kind]
  if handler then
    handler(event, root)
  end
  require('fermata.transcript').event(event)
end

return M
