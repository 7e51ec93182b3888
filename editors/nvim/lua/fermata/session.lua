--- Which session a question goes to: that which was used last for its root, unless a turn runs in it; then a new one.
local client = require('fermata.client')
local turns = require('fermata.turns')

local M = {}

local current = {} ---@type table<string, string> session by root
local coming = {} ---@type table<string, fun(session: string)[]> who waits for the session of a question on its way
local models = {} ---@type table<string, string> model by root

---@param root string?
---@return string?
function M.current(root)
  return current[root or '']
end

---@param root string?
---@param session string?
function M.use(root, session)
  current[root or ''] = session
end

--- The model that turns of a root use; nil is the configured one.
---@param root string?
---@return string?
function M.model(root)
  return models[root or '']
end

---@param root string?
---@param model string?
function M.use_model(root, model)
  models[root or ''] = model
end

--- Gives the session for a question.
---@param root string?
---@param new boolean? a new one in any case
---@param done fun(err: lsp.ResponseError?, session: string?)
---@param asking fermata.Turn? the turn of the question itself
function M.for_question(root, new, done, asking)
  local session = current[root or '']
  for _, turn in ipairs(turns.running()) do
    if turn ~= asking and turn.session == session then
      new = true
    end
  end
  if session and not new then
    done(nil, session)
    return
  end
  local key = root or ''
  coming[key] = coming[key] or {}
  client.request(root, 'fermata/session/new', { workspace = root, model = M.model(root) }, function(err, result)
    local waiting = coming[key] or {}
    coming[key] = nil
    if not err then
      M.use(root, result.session)
      for _, fn in ipairs(waiting) do
        fn(result.session)
      end
    end
    done(err, result and result.session)
  end)
end

--- Gives the session of a question that is on its way to a new one; false when there is none.
---@param root string?
---@param fn fun(session: string)
---@return boolean
function M.when_there(root, fn)
  local waiting = coming[root or '']
  if waiting then
    table.insert(waiting, fn)
  end
  return waiting ~= nil
end

return M
