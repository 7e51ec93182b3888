--- The turns that this Neovim knows of: what they were asked, what they have said, how they ended. All of it came from the
--- daemon, which keeps it; nothing here outlives Neovim. What shows turns listens.
local client = require('fermata.client')
local notify = require('fermata.notify')

local M = {}

---@alias fermata.State 'asking'|'running'|'stopping'|'completed'|'stopped'|'failed'|'abandoned'

---@class fermata.Tool
---@field step integer
---@field call string
---@field name string
---@field summary? string
---@field state 'queued'|'asking'|'running'|'done'|'failed'|'stopped'|'not_started'|'unknown'
---@field cause? string

---@class fermata.Turn
---@field id? string nil until it is in the log
---@field session? string
---@field root? string
---@field key string the client id, which tells it before it has an id
---@field prompt string
---@field buf? integer where it was asked
---@field line? integer 0-based, when it was asked
---@field anchor? table as the protocol has it
---@field state fermata.State
---@field step integer
---@field answered? integer the newest step whose answer is in the log
---@field text string[] the pieces of the newest answer
---@field thought boolean whether something was said that is no text yet
---@field words integer of all answers
---@field tools fermata.Tool[]
---@field redirects? fermata.Turn the turn whose course this one replaces
---@field result? table fermata's TurnResult
---@field note? string what the control says beside the state
---@field wanted_lane? boolean the user stopped it here, so the lane opens at its end
---@field cancel? fun() stops it before it has an id
---@field in_word boolean
---@field before integer words of the steps before

local turns = {} ---@type fermata.Turn[] oldest first
local listeners = {} ---@type table<string, fun(turn: fermata.Turn, data: any)[]>
local keys = 0

--- Calls fn for each event of a kind: 'new', 'text' (data: the piece), 'step' (the text begins anew), 'changed', 'ended'.
---@param kind string
---@param fn fun(turn: fermata.Turn, data: any)
function M.on(kind, fn)
  listeners[kind] = listeners[kind] or {}
  table.insert(listeners[kind], fn)
end

---@param kind string
---@param turn fermata.Turn
---@param data any
local function tell(kind, turn, data)
  for _, fn in ipairs(listeners[kind] or {}) do
    fn(turn, data)
  end
end

---@param pattern string
---@param turn fermata.Turn
local function autocommand(pattern, turn)
  vim.api.nvim_exec_autocmds('User', {
    pattern = pattern,
    modeline = false,
    data = {
      turn = turn.id,
      session = turn.session,
      root = turn.root,
      buf = turn.buf,
      state = turn.state,
      words = turn.words,
      result = turn.result,
    },
  })
end

---@param turn fermata.Turn
---@return boolean
function M.runs(turn)
  return turn.state == 'asking' or turn.state == 'running' or turn.state == 'stopping'
end

--- A key that no other turn has, also none of another Neovim.
local function new_key()
  keys = keys + 1
  return ('nvim-%d-%d-%d'):format(vim.uv.os_getpid(), vim.uv.hrtime() % 2 ^ 48, keys)
end

---@param turn table
---@return fermata.Turn
local function add(turn)
  require('fermata.inline') -- it listens
  turn.key = turn.key or new_key()
  turn.step, turn.text, turn.words, turn.tools = 0, {}, 0, {}
  turn.thought, turn.in_word, turn.before = false, false, 0
  table.insert(turns, turn)
  if #turns > 200 and not M.runs(turns[1]) then
    table.remove(turns, 1)
  end
  return turn
end

---@param id? string
---@return fermata.Turn?
function M.get(id)
  for i = #turns, 1, -1 do
    if id and turns[i].id == id then
      return turns[i]
    end
  end
end

--- The turns that run, oldest first.
---@return fermata.Turn[]
function M.running()
  return vim.tbl_filter(M.runs, turns)
end

--- All turns, oldest first. Not to be changed.
---@return fermata.Turn[]
function M.all()
  return turns
end

--- The turn that a command at a place is about: of those with a control in the buffer the nearest to the line, else the newest.
---@param accept fun(turn: fermata.Turn): boolean
---@return fermata.Turn?
function M.near(accept)
  local buf = vim.api.nvim_get_current_buf()
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, distance, newest
  for _, turn in ipairs(turns) do
    if accept(turn) then
      newest = turn
      local at = turn.buf == buf and require('fermata.inline').line(turn)
      if at and (not best or math.abs(at - line) <= distance) then
        best, distance = turn, math.abs(at - line)
      end
    end
  end
  return best or newest
end

--- Takes the result of a start, redirect, retry or stop: how the turn has ended.
---@param turn fermata.Turn
---@param result table
local function finish(turn, result)
  turn.result = result
  turn.id, turn.session = result.turn, result.session
  local summaries = {} -- also of calls that were asked about and never ran
  for _, tool in ipairs(turn.tools) do
    summaries[tool.step .. ' ' .. tool.call] = tool.summary
  end
  for _, tool in ipairs(result.tools) do
    tool.summary = tool.summary or summaries[tool.step .. ' ' .. tool.call]
  end
  turn.tools = result.tools
  local told = not M.runs(turn)
  turn.state = result.outcome
  if result.kept then
    turn.words = result.kept.words
  end
  tell('changed', turn)
  if not told then
    autocommand('FermataTurnEnded', turn)
  end
  tell('ended', turn)
  if turn.wanted_lane then
    turn.wanted_lane = nil
    if turn.state == 'stopped' then
      require('fermata.lane').open(turn)
    end
  end
end

--- Starts a turn: the method is one that answers at the turn's end. The turn is shown at once.
---@param spec { root: string?, session: string?, prompt: string, buf: integer?, line: integer?, anchor: table?, redirects: fermata.Turn? }
---@param send fun(turn: fermata.Turn, request: fun(method: string, params: table)) finds what is missing and sends the request
---@return fermata.Turn
function M.start(spec, send)
  local turn = add(vim.tbl_extend('force', spec, { state = 'asking' }))
  tell('new', turn)
  local dropped = false
  turn.cancel = function()
    dropped = true
  end
  send(turn, function(method, params)
    if dropped then -- stopped before anything was sent: nothing to keep, and the prompt is offered back (S6)
      turn.state, turn.result = 'stopped', { outcome = 'stopped', silent = true, tools = {}, returned = {} }
      tell('changed', turn)
      tell('ended', turn)
      if turn.wanted_lane then
        turn.wanted_lane = nil
        require('fermata.lane').open(turn)
      end
      return
    end
    params.clientId = turn.key
    turn.cancel = client.request(turn.root, method, params, function(err, result)
      turn.cancel = nil
      if err then
        M.fail(turn, err)
      else
        finish(turn, result)
      end
    end)
  end)
  return turn
end

--- A turn that could not be started, or whose daemon is gone.
---@param turn fermata.Turn
---@param err lsp.ResponseError
function M.fail(turn, err)
  if not M.runs(turn) then
    return -- it was said when the daemon went
  end
  turn.state, turn.note = 'failed', err.message
  tell('changed', turn)
  tell('ended', turn)
  notify.failed(err)
end

--- Marks what ran in a daemon that is gone.
---@param root string?
function M.abandon(root)
  for _, turn in ipairs(turns) do
    if turn.root == root and M.runs(turn) then
      turn.state, turn.note = 'abandoned', 'the daemon ended; what was said is kept as an attempt'
      tell('changed', turn)
      autocommand('FermataTurnEnded', turn)
      tell('ended', turn)
    end
  end
end

--- Stops a turn; it is shown as stopping at once. At its end the lane opens.
---@param turn? fermata.Turn nil: the one at the cursor, else the newest that runs
---@param lane? boolean false: the lane stays closed
function M.stop(turn, lane)
  turn = turn or M.near(M.runs)
  if not turn or not M.runs(turn) then
    notify.info('nothing runs')
    return
  end
  if turn.state == 'stopping' then
    return
  end
  turn.state = 'stopping'
  turn.wanted_lane = lane ~= false
  tell('changed', turn)
  vim.cmd.redraw()
  autocommand('FermataTurnStopped', turn)
  if not turn.id then
    turn.cancel()
    return
  end
  local started_here = turn.cancel ~= nil
  client.request(turn.root, 'fermata/turn/stop', { turn = turn.id }, function(err, result)
    if err then
      notify.failed(err)
    elseif not started_here then
      finish(turn, result)
    end
  end)
end

-- What events tell. fermata.events calls these.

--- A turn is in the log: one of ours gets its id, one of another client is new.
---@param session string
---@param root string?
---@param entry table the body of turn.started
---@param buffer fun(uri: string): integer?
function M.started(session, root, entry, buffer)
  local turn
  for i = #turns, 1, -1 do
    if turns[i].key == entry.client_id then
      turn = turns[i]
    end
  end
  if not turn then
    local texts = {}
    for _, part in ipairs(entry.prompt or {}) do
      if part.type == 'text' then
        table.insert(texts, part.text)
      end
    end
    turn = add({ root = root, prompt = table.concat(texts, '\n'), state = 'running', key = entry.client_id })
    local place = entry.anchor
    if place then
      turn.buf, turn.line = buffer(place.uri), place.end_line
    end
  end
  turn.id, turn.session = entry.turn, session
  turn.redirects = turn.redirects or M.get(entry.redirects)
  if turn.state == 'asking' then
    turn.state = 'running'
  end
  tell('new', turn)
  tell('changed', turn)
  autocommand('FermataTurnStarted', turn)
  return turn
end

---@param turn fermata.Turn
---@param event table a delta
function M.said(turn, event)
  if event.step ~= turn.step then
    turn.step, turn.text, turn.before, turn.in_word = event.step, {}, turn.words, false
    tell('step', turn)
  end
  if event.part ~= 'text' then
    turn.thought = true
    tell('changed', turn)
    return
  end
  turn.thought = false
  table.insert(turn.text, event.text)
  local _, starts = event.text:gsub('%S+', '')
  if turn.in_word and event.text:match('^%S') then
    starts = starts - 1
  end
  turn.in_word = event.text:match('%S$') ~= nil
  turn.words = turn.words + starts
  tell('text', turn, event.text)
end

---@param turn fermata.Turn
---@param event table retracted
function M.retracted(turn, event)
  turn.text, turn.words, turn.in_word = {}, turn.before, false
  turn.note = 'trying again: ' .. event.why
  tell('step', turn)
  tell('changed', turn)
end

---@param turn fermata.Turn
---@param tool fermata.Tool what is new of it
function M.tool(turn, tool)
  for _, have in ipairs(turn.tools) do
    if have.call == tool.call and have.step == tool.step then
      if tool.state == 'queued' then
        return -- a question about it overtook the answer that made it
      end
      for key, value in pairs(tool) do
        have[key] = value
      end
      tell('changed', turn)
      return
    end
  end
  table.insert(turn.tools, tool)
  tell('changed', turn)
end

---@param turn fermata.Turn
function M.stopping(turn)
  if M.runs(turn) then
    turn.state = 'stopping'
    tell('changed', turn)
  end
end

--- The turn's last entry. One that was started here is finished by the reply, which says more.
---@param turn fermata.Turn
---@param entry table the body of turn.ended
function M.ended(turn, entry)
  turn.note = nil
  if turn.cancel or not M.runs(turn) then
    return
  end
  turn.state = entry.outcome
  if entry.kept then
    turn.words = entry.kept.words
  end
  turn.result = turn.result
    or { outcome = entry.outcome, cause = entry.cause, error = entry.error, silent = entry.silent, kept = entry.kept }
  tell('changed', turn)
  autocommand('FermataTurnEnded', turn)
  tell('ended', turn)
end

return M
