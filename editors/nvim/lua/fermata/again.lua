--- Retry and keep: what can be done about a turn that failed (F3, F4), and queued messages (S10).
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')
local session = require('fermata.session')
local turns = require('fermata.turns')

local M = {}

---@param turn fermata.Turn
local function ended_badly(turn)
  return turn.state == 'failed' or turn.state == 'abandoned' or turn.state == 'stopped'
end

--- Tries a turn's question again.
---@param turn? fermata.Turn nil: the one at the cursor, else the newest that failed or was stopped
function M.retry(turn)
  turn = turn or turns.near(ended_badly)
  local root = turn and turn.root or client.root_of(vim.api.nvim_get_current_buf())
  turns.start({
    root = root,
    session = turn and turn.session,
    prompt = turn and turn.prompt or '',
    buf = turn and turn.buf,
    line = turn and (require('fermata.inline').line(turn) or turn.line),
    redirects = turn,
  }, function(_, request)
    request('fermata/turn/retry', { turn = turn and turn.id, model = session.model(root) })
  end)
end

--- Puts an answer that broke off into what the model reads next.
---@param turn? fermata.Turn
function M.keep(turn)
  turn = turn or turns.near(ended_badly)
  local root = turn and turn.root or client.root_of(vim.api.nvim_get_current_buf())
  client.request(root, 'fermata/turn/adopt', { turn = turn and turn.id }, function(err, result)
    if err then
      notify.failed(err)
    else
      notify.info(('kept: %s are in the next model input'):format(phrase.count(result.kept.words, 'word')))
    end
  end)
end

--- Sends a message while a turn runs; it reaches the model after the next tool results, or starts the next turn.
---@param text? string
function M.queue(text)
  local turn = turns.near(turns.runs)
  if not turn or not turn.session then
    notify.info('nothing runs: ask instead')
    return
  end
  local function send(written)
    local prompt = { { type = 'text', text = written } }
    client.request(turn.root, 'fermata/turn/queue', { session = turn.session, prompt = prompt }, function(err, result)
      if err then
        notify.failed(err)
      elseif result.state == 'queued' then
        notify.info('queued: the model gets it after the next tool results, or with the next turn')
      elseif result.state == 'returned' then
        require('fermata.compose').remember(written)
        notify.info('the turn was stopped first; the message was handed back: <Up> in the lane')
      end
    end)
  end
  if text and text:match('%S') then
    send(text)
    return
  end
  require('fermata.compose').open({ title = ' Queue ', placeholder = 'What should it know next?', done = send })
end

return M
