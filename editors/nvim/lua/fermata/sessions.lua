--- Picks a session of the project: its transcript opens, and the next question goes on in it.
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')
local session = require('fermata.session')

local M = {}

--- How long ago an RFC 3339 time in UTC was.
---@param at string
---@return string
local function ago(at)
  local year, month, day, hour, minute, second = at:match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return at
  end
  local utc = os.date('!*t') --[[@as osdate]]
  utc.isdst = false
  local now = os.time(utc)
  local was = os.time({ year = year, month = month, day = day, hour = hour, min = minute, sec = second, isdst = false })
  local seconds = math.max(0, now - was)
  if seconds < 60 then
    return 'just now'
  elseif seconds < 3600 then
    return ('%d min ago'):format(math.floor(seconds / 60))
  elseif seconds < 86400 then
    return ('%d h ago'):format(math.floor(seconds / 3600))
  end
  return ('%d d ago'):format(math.floor(seconds / 86400))
end

---@param one table
---@return string
local function describe(one)
  local title = one.title ~= '' and phrase.short(one.title, 60) or '(nothing asked yet)'
  return ('%s · %s · %s%s'):format(
    title,
    phrase.count(one.turns, 'turn'),
    ago(one.updated),
    one.lastOutcome and one.lastOutcome ~= 'completed' and (' · ' .. one.lastOutcome) or ''
  )
end

--- Lets the user pick one of the sessions with words in their title or prompts.
---@param query? string
---@param modifiers? string
function M.pick(query, modifiers)
  local root = client.root_of(vim.api.nvim_get_current_buf())
  local params = { workspace = root, query = query ~= '' and query or nil, limit = 200 }
  client.request(root, 'fermata/session/list', params, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    if #result.sessions == 0 then
      notify.info(query and query ~= '' and 'no session has these words' or 'there is no session yet: ask something')
      return
    end
    local options = { prompt = 'Sessions', kind = 'fermata.session', format_item = describe }
    vim.ui.select(result.sessions, options, function(one)
      if one then
        session.use(root, one.session)
        require('fermata.transcript').open({ session = one.session, root = root, modifiers = modifiers })
      end
    end)
  end)
end

return M
