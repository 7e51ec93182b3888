--- What can be done about the thing under the cursor of a transcript: one key each, and <CR> for a menu of them.
local client = require('fermata.client')
local notify = require('fermata.notify')
local turns = require('fermata.turns')

local M = {}

---@param here table as fermata.transcript.here gives it
---@return fermata.Turn
local function turn_of(here)
  return turns.get(here.turn)
    or { -- of another time: enough for what a request needs
      id = here.turn,
      session = here.transcript.session,
      root = here.transcript.root,
      prompt = '',
      state = 'stopped',
      text = {},
      tools = {},
      words = 0,
    }
end

---@class fermata.Action
---@field key string
---@field name string
---@field fits fun(here: table): any
---@field run fun(here: table)

---@type fermata.Action[]
M.actions = {
  {
    key = 'S',
    name = 'Stop',
    fits = function(here)
      local turn = turns.get(here.turn)
      return turn and turns.runs(turn)
    end,
    run = function(here)
      turns.stop(turn_of(here))
    end,
  },
  {
    key = 'R',
    name = 'Redirect',
    fits = function(here)
      return here.turn
    end,
    run = function(here)
      require('fermata.lane').redirect(nil, turn_of(here))
    end,
  },
  {
    key = 'T',
    name = 'Retry',
    fits = function(here)
      return here.turn
    end,
    run = function(here)
      require('fermata.again').retry(turn_of(here))
    end,
  },
  {
    key = 'K',
    name = 'Keep the attempt',
    fits = function(here)
      return here.turn
    end,
    run = function(here)
      require('fermata.again').keep(turn_of(here))
    end,
  },
  {
    key = 'I',
    name = 'Model input',
    fits = function(here)
      return here.request
    end,
    run = function(here)
      require('fermata.input').open({ request = here.request, root = here.transcript.root })
    end,
  },
  {
    key = 'C',
    name = 'Changes',
    fits = function(here)
      return here.turn
    end,
    run = function(here)
      require('fermata.changes').open(turn_of(here))
    end,
  },
  {
    key = 'F',
    name = 'Fork after this turn',
    fits = function(here)
      return here.turn
    end,
    run = function(here)
      local t = here.transcript
      client.request(t.root, 'fermata/session/fork', { session = t.session, after = here.turn }, function(err, result)
        if err then
          notify.failed(err)
          return
        end
        require('fermata.session').use(t.root, result.session)
        require('fermata.transcript').open({ session = result.session, root = t.root })
      end)
    end,
  },
  {
    key = 'gR',
    name = 'Rename the session',
    fits = function()
      return true
    end,
    run = function()
      require('fermata.title').rename()
    end,
  },
  {
    key = 'gD',
    name = 'Delete the session',
    fits = function()
      return true
    end,
    run = function()
      require('fermata.title').delete()
    end,
  },
  {
    key = 'gf',
    name = 'Open the file',
    fits = function(here)
      return here.file
    end,
    run = function(here)
      vim.cmd.split(vim.fn.fnameescape(here.file))
    end,
  },
}

--- Offers what fits.
local function choose()
  local here = require('fermata.transcript').here()
  if not here then
    return
  end
  local fitting = vim.tbl_filter(function(action)
    return action.fits(here)
  end, M.actions)
  vim.ui.select(fitting, {
    prompt = 'Fermata',
    kind = 'fermata.action',
    format_item = function(action)
      return ('%s (%s)'):format(action.name, action.key)
    end,
  }, function(action)
    if action then
      action.run(here)
    end
  end)
end

--- Makes the keys of a transcript's buffer.
---@param buf integer
function M.map(buf)
  for _, action in ipairs(M.actions) do
    vim.keymap.set('n', action.key, function()
      local here = require('fermata.transcript').here()
      if here and action.fits(here) then
        action.run(here)
      else
        notify.info(('there is nothing here to do this with: %s'):format(action.name:lower()))
      end
    end, { buffer = buf, nowait = true, desc = 'Fermata: ' .. action.name })
  end
  vim.keymap.set('n', '<CR>', choose, { buffer = buf, desc = 'Fermata: what can be done here' })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'Fermata: close' })
end

return M
