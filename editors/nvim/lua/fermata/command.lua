--- :Fermata and its completion.
local M = {}

---@class fermata.Command
---@field about string
---@field run fun(text: string, args: table)
---@field complete? string[] what can follow

---@type table<string, fermata.Command>
M.commands = {
  ask = {
    about = 'ask about the line, the range or the selection; with ! in a new session',
    run = function(text, args)
      local ask = require('fermata.ask')
      local place = args.range > 0 and ask.place(args.line1, args.line2) or nil
      ask.ask(text, { place = place, new = args.bang })
    end,
  },
  stop = {
    about = 'stop the turn at the cursor, else the newest, and open the lane',
    run = function()
      require('fermata.turns').stop()
    end,
  },
  redirect = {
    about = 'say what it should do instead',
    run = function(text)
      require('fermata.lane').redirect(text)
    end,
  },
  transcript = {
    about = 'open the transcript, live',
    run = function(_, args)
      require('fermata.transcript').open({ modifiers = args.mods })
    end,
  },
  input = {
    about = 'show the exact bytes a model was sent: of the request named, else of the newest',
    run = function(text, args)
      require('fermata.input').open({ request = text ~= '' and text or nil, modifiers = args.mods })
    end,
  },
  sessions = {
    about = 'pick a session, of those with these words',
    run = function(text, args)
      require('fermata.sessions').pick(text, args.mods)
    end,
  },
  rename = {
    about = 'give the session of this transcript, else the one used last, another title',
    run = function(text)
      require('fermata.title').rename(text)
    end,
  },
  delete = {
    about = 'delete the session of this transcript, else the one used last, for good, after a question',
    run = function()
      require('fermata.title').delete()
    end,
  },
  changes = {
    about = 'show what a turn changed, in diffs',
    run = function()
      require('fermata.changes').open()
    end,
  },
  revert = {
    about = 'revert what a turn changed; undo takes that back',
    complete = { 'undo' },
    run = function(text)
      if text == 'undo' then
        require('fermata.changes').undo()
      else
        require('fermata.changes').revert()
      end
    end,
  },
  stats = {
    about = 'show what stopping comes to, in this project or in all',
    complete = { 'all' },
    run = function(text, args)
      require('fermata.stats').open(text == 'all', args.mods)
    end,
  },
  model = {
    about = 'choose the model of the next turns',
    run = function(text)
      require('fermata.model').select(text)
    end,
  },
  mode = {
    about = 'choose what tools may do without a question: read-only, ask, edit, trust or default',
    complete = { 'read-only', 'ask', 'edit', 'trust', 'default' },
    run = function(text)
      require('fermata.model').mode(text)
    end,
  },
  queue = {
    about = 'send a message while a turn runs',
    run = function(text)
      require('fermata.again').queue(text)
    end,
  },
  keep = {
    about = 'put an answer that broke off into the next model input',
    run = function()
      require('fermata.again').keep()
    end,
  },
  retry = {
    about = 'try a turn that failed or was stopped again',
    run = function()
      require('fermata.again').retry()
    end,
  },
  answer = {
    about = 'go to the permission question that waits',
    run = function()
      require('fermata.permission').answer()
    end,
  },
  clear = {
    about = 'take away what is shown of ended turns in this buffer; with ! everywhere',
    run = function(_, args)
      require('fermata.inline').clear(not args.bang and vim.api.nvim_get_current_buf() or nil)
    end,
  },
}

---@param args table of a user command
function M.run(args)
  local name, text = args.args:match('^(%S*)%s*(.*)$')
  local command = M.commands[name == '' and 'ask' or name]
  if not command then
    require('fermata.notify').error(
      ('there is no :Fermata %s; there are: %s'):format(name, table.concat(M.names(), ', '))
    )
    return
  end
  command.run(vim.trim(text), args)
end

---@return string[]
function M.names()
  local names = vim.tbl_keys(M.commands)
  table.sort(names)
  return names
end

---@param begun string
---@param line string
---@return string[]
function M.complete(begun, line)
  local before = line:sub(1, #line - #begun):match('Fermata!?%s+(.*)$') or ''
  local name = before:match('^(%S+)%s')
  local choices = name and (M.commands[name] and M.commands[name].complete or {}) or M.names()
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, begun)
  end, choices)
end

return M
