--- The redirect lane: after a stop it asks what should be done instead, under the partial answer.
local session = require('fermata.session')
local turns = require('fermata.turns')

local M = {}

---@param turn fermata.Turn the one to replace
---@param text string
local function send(turn, text)
  local here = turn.buf and require('fermata.inline').line(turn)
  local anchor = turn.anchor and vim.deepcopy(turn.anchor)
  if anchor and here then -- where the line is now
    local height = anchor.range['end'].line - anchor.range.start.line
    anchor.range = {
      start = { line = math.max(0, here - height), character = 0 },
      ['end'] = { line = here, character = 0 },
    }
  end
  turns.start({
    root = turn.root,
    session = turn.session,
    prompt = text,
    buf = turn.buf,
    line = here or turn.line,
    anchor = anchor,
    redirects = turn,
  }, function(new, request)
    local prompt = { { type = 'text', text = text } }
    if turn.id then
      request(
        'fermata/turn/redirect',
        { turn = turn.id, prompt = prompt, anchor = anchor, model = session.model(turn.root) }
      )
      return
    end
    -- It was stopped before it began: nothing is there to be replaced.
    session.for_question(turn.root, false, function(err, id)
      if err then
        turns.fail(new, err)
      else
        request(
          'fermata/turn/start',
          { session = id, prompt = prompt, anchor = anchor, model = session.model(turn.root) }
        )
      end
    end, new)
  end)
end

--- Opens the lane of a turn that has ended, most often by a stop.
---@param turn fermata.Turn
function M.open(turn)
  local compose = require('fermata.compose')
  local phrase = require('fermata.phrase')
  local above
  local result = turn.result or {}
  local silent = result.silent
  for _, message in ipairs(result.returned or {}) do -- handed back: never dropped, never sent by itself (S10)
    for _, part in ipairs(message.prompt) do
      if part.type == 'text' then
        compose.remember(part.text)
      end
    end
  end
  if not silent and (turn.result or #turn.text > 0) then -- of a turn of another time only the transcript knows what was said
    local lines = vim.split(table.concat(turn.text):gsub('\r\n?', '\n'), '\n')
    while #lines > 1 and lines[#lines] == '' do
      table.remove(lines)
    end
    local title = (' %s '):format((phrase.state(turn)))
    local fates = phrase.fates(turn.tools)
    if fates ~= '' then
      table.insert(lines, '')
      table.insert(lines, fates)
    end
    above = { title = title, lines = lines }
  end
  local waiting = result.returned and #result.returned or 0
  local title = silent and ' Stopped before anything was said ' or ' Redirect '
  if waiting > 0 then
    title = title .. ('· %s handed back: <Up> '):format(phrase.count(waiting, 'queued message'))
  end
  compose.open({
    title = title,
    placeholder = 'What should it do instead?',
    text = silent and turn.prompt or nil,
    above = above,
    done = function(text)
      send(turn, text)
    end,
  })
end

--- Redirects the turn at the cursor, else the newest. With a text there is no moment between stop and start (D4).
---@param text? string
---@param turn? fermata.Turn
function M.redirect(text, turn)
  turn = turn or turns.near(turns.runs) or turns.near(function(t)
    return t.state == 'stopped'
  end)
  if not turn then
    require('fermata.notify').info('there is no turn to redirect')
    return
  end
  if text and text:match('%S') then
    send(turn, text)
  elseif turns.runs(turn) then
    turns.stop(turn)
  else
    M.open(turn)
  end
end

return M
