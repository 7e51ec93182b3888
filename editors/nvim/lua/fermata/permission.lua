--- Permission questions: a small float with the command or the diff. It takes the focus only in normal mode, and a moment
--- later than it is seen, and hears keys only once none was typed for a moment, so that nobody allows anything by what they were
--- typing. A stop answers a question by closing it.
local notify = require('fermata.notify')
local turns = require('fermata.turns')

local M = {}

---@class fermata.Question
---@field params table fermata's PermissionParams
---@field reply fun(result: table)
---@field buf? integer
---@field win? integer
---@field title? string
---@field hears boolean keys count
---@field taken boolean it took the focus
---@field timer? uv.uv_timer_t until keys count

local waiting = {} ---@type fermata.Question[] the first one is shown
local deaf = 250 -- milliseconds from showing to taking the focus, and without a key until keys count

---@param question fermata.Question
local function close(question)
  if question.win and vim.api.nvim_win_is_valid(question.win) then
    vim.api.nvim_win_close(question.win, true)
  end
  question.win = nil
  if question.timer then
    question.timer:close()
    question.timer = nil
  end
end

local show

---@param question fermata.Question
---@param result table
local function settle(question, result)
  for i, one in ipairs(waiting) do
    if one == question then
      table.remove(waiting, i)
      close(question)
      question.reply(result)
      show()
      return
    end
  end
end

---@param question fermata.Question
local function why(question)
  vim.ui.input({ prompt = 'Why not? The model is told: ' }, function(text)
    if text then
      settle(question, { answer = 'deny', why = text ~= '' and text or nil })
    end
  end)
end

--- It allows nothing, so that it is heard at once.
---@param question fermata.Question
local function stop(question)
  turns.stop(turns.get(question.params.turn))
end

--- What the answer for the session covers.
---@param params table
---@return string
local function scope(params)
  local covers = { tool = 'all of this kind', files = 'these files', command = 'this command' }
  local what = covers[params.scope]
  return what and ('%s for the session'):format(what) or 'for the session'
end

local choices = {
  {
    'y',
    'once',
    function(q)
      settle(q, { answer = 'once' })
    end,
  },
  {
    's',
    scope,
    function(q)
      settle(q, { answer = 'session' })
    end,
  },
  {
    'n',
    'no',
    function(q)
      settle(q, { answer = 'deny' })
    end,
  },
  { 'N', 'no, because…', why },
  { '<C-c>', 'stop the turn', stop },
}

---@param params table
---@return string[] lines
---@return string? syntax
local function content(params)
  if params.diff and params.diff ~= '' then
    return vim.split(params.diff:gsub('\n$', ''), '\n'), 'diff'
  elseif params.command and params.command ~= '' then
    return vim.split(params.command, '\n'), 'sh'
  end
  return vim.split(params.path or params.summary or params.tool, '\n')
end

---@param params table
---@return string
local function summary(params)
  return require('fermata.phrase').short(params.summary ~= '' and params.summary or params.tool, 60)
end

local function can_focus()
  local mode = vim.api.nvim_get_mode().mode
  return mode == 'n' and vim.fn.getcmdwintype() == ''
end

---@param question fermata.Question
local function focus(question)
  if question.win and vim.api.nvim_win_is_valid(question.win) then
    vim.api.nvim_set_current_win(question.win)
  end
end

--- What the keys do; they stand out when they count.
---@param question fermata.Question
---@return [string, string][]
local function footer(question)
  local out = {}
  for _, choice in ipairs(choices) do
    local name = type(choice[2]) == 'function' and choice[2](question.params) or choice[2]
    table.insert(out, { ' ' .. choice[1], question.hears and 'FermataKey' or 'FermataDetail' })
    table.insert(out, { ' ' .. name .. ' ', 'FermataDetail' })
  end
  return out
end

--- Keys count a moment from now.
---@param question fermata.Question
local function hush(question)
  local function hear(hears)
    question.hears = hears
    if question.win and vim.api.nvim_win_is_valid(question.win) then
      vim.api.nvim_win_set_config(question.win, { title = question.title, footer = footer(question) })
    end
  end
  hear(false)
  question.timer = question.timer or assert(vim.uv.new_timer())
  question.timer:start(
    deaf,
    0,
    vim.schedule_wrap(function()
      hear(true)
    end)
  )
end

--- Takes the focus, if that disturbs nobody.
---@param question fermata.Question
---@return boolean
local function take(question)
  if question.win and not question.taken and can_focus() then
    question.taken = true
    focus(question)
    hush(question)
  end
  return question.taken
end

---@param question fermata.Question
local function open(question)
  require('fermata.highlight').define()
  local params = question.params
  local lines, syntax = content(params)
  local notes = {}
  for _, note in ipairs({ params.why or '', params.sandbox or '' }) do
    if note ~= '' then
      vim.list_extend(notes, vim.split(note, '\n'))
    end
  end
  if #notes > 0 then
    table.insert(lines, '')
    vim.list_extend(lines, notes)
  end
  for i, line in ipairs(lines) do
    lines[i] = line:gsub('[%z\1-\8\11-\31\127]', '�')
  end
  local width = 0
  for _, piece in ipairs(footer(question)) do
    width = width + vim.api.nvim_strwidth(piece[1])
  end
  for _, line in ipairs(lines) do
    width = math.max(width, vim.api.nvim_strwidth(line))
  end
  width = math.min(math.max(width, 40), vim.o.columns - 4)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
  height = math.max(1, math.min(height, math.floor(vim.o.lines * 0.6)))
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].filetype = 'fermata-permission'
  if syntax then
    vim.bo[buf].syntax = syntax
  end
  local namespace = vim.api.nvim_create_namespace('fermata.permission')
  for i = #lines - #notes, #lines - 1 do
    vim.api.nvim_buf_set_extmark(buf, namespace, i, 0, { end_row = i + 1, hl_group = 'FermataDetail', priority = 200 })
  end
  local what = params.command and params.command ~= '' and 'run this' or summary(params)
  local more = #waiting > 1 and (' (1 of %d)'):format(#waiting) or ''
  question.title = (' Fermata asks to %s%s '):format(what, more)
  question.buf = buf
  question.win = vim.api.nvim_open_win(buf, false, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width - 2) / 2)),
    width = width,
    height = height,
    border = 'rounded',
    style = 'minimal',
    title = question.title,
    footer = footer(question),
    zindex = 70,
  })
  vim.wo[question.win].winfixbuf = true
  for _, choice in ipairs(choices) do
    vim.keymap.set('n', choice[1], function()
      if question.hears or choice[3] == stop then
        choice[3](question)
      else
        hush(question) -- somebody types on
      end
    end, { buffer = buf, nowait = true, desc = 'Fermata: answer' })
  end
  vim.defer_fn(function()
    if take(question) or not question.win then
      return
    end
    question.hears = true -- for who goes to it
    local title = question.title .. '· when you leave this mode '
    vim.api.nvim_win_set_config(question.win, { title = title, footer = footer(question) })
    vim.api.nvim_create_autocmd('ModeChanged', {
      pattern = '*:n',
      callback = function()
        if question.taken or not question.win then
          return true -- it is needed no more
        end
        vim.schedule(function()
          take(question)
        end)
      end,
    })
  end, deaf)
  vim.api.nvim_create_autocmd('WinClosed', {
    pattern = tostring(question.win),
    once = true,
    callback = vim.schedule_wrap(function()
      if question.win then -- closed by hand: that is no yes
        question.win = nil
        settle(question, { answer = 'deny', why = 'the question was closed without an answer' })
      end
    end),
  })
end

show = function()
  local question = waiting[1]
  if question and not question.win then
    open(question)
  end
end

--- Asks the user. Called in a coroutine, which it suspends until there is an answer.
---@param params table
---@return table result
function M.ask(params)
  local co = assert(coroutine.running())
  local turn = turns.get(params.turn)
  if turn then
    turns.tool(
      turn,
      { step = params.step, call = params.call, name = params.tool, summary = params.summary, state = 'asking' }
    )
  end
  local result
  local yielded = false
  table.insert(waiting, {
    params = params,
    hears = false,
    taken = false,
    reply = function(answer)
      result = answer
      if yielded then
        coroutine.resume(co)
      end
    end,
  })
  show()
  if not result then
    yielded = true
    coroutine.yield()
  end
  return result
end

--- Moves to the question that waits.
function M.answer()
  if waiting[1] then
    waiting[1].taken = true
    focus(waiting[1])
    if not waiting[1].hears then
      hush(waiting[1])
    end
  else
    notify.info('nothing is asked')
  end
end

--- Closes the questions of a turn, or of one call: they were answered elsewhere, or by a stop.
---@param turn string
---@param call? string
function M.dismiss(turn, call)
  for i = #waiting, 1, -1 do
    local params = waiting[i].params
    if params.turn == turn and (not call or params.call == call) then
      settle(waiting[i], { answer = 'deny' })
    end
  end
end

return M
