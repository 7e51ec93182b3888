--- Shows turns where they were asked: under the line, a control that says what happens and what can be done, and under that the
--- answer, dimmed. An extmark keeps both at the line while the buffer is edited. Nothing of it is text of the buffer.
local config = require('fermata.config')
local phrase = require('fermata.phrase')
local turns = require('fermata.turns')
local Wrap = require('fermata.wrap')

local M = {}

local namespace = vim.api.nvim_create_namespace('fermata.inline')
local interval = 40 -- milliseconds between two drawings

---@class fermata.Inline
---@field turn fermata.Turn
---@field buf integer
---@field mark integer
---@field at integer the line, 0-based, where it was drawn last
---@field wrap fermata.Wrap

local shown = {} ---@type table<fermata.Turn, fermata.Inline>
local replaced = setmetatable({}, { __mode = 'k' }) ---@type table<fermata.Turn, true> by a redirect or a retry
local dirty = {} ---@type table<fermata.Inline, true>
local timer = nil ---@type uv.uv_timer_t?

---@param buf integer
---@return integer columns, integer lines of the smallest window that shows the buffer
local function room(buf)
  local options = config.get().inline
  local width, height = options.width, vim.o.lines
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    width = math.min(width, info.width - info.textoff - 1)
    height = math.min(height, info.height)
  end
  local lines = options.lines < 1 and math.floor(height * options.lines) or options.lines
  return math.max(width, 10), math.max(math.min(lines, height - 2), 3)
end

---@param inline fermata.Inline
local function virtual_lines(inline)
  local turn, lines = inline.turn, inline.wrap.lines
  local width, height = room(inline.buf)
  local out = { phrase.control(turn, width) }
  local last = lines[#lines] == '' and #lines - 1 or #lines
  local first = 1
  local more
  if last > height and turns.runs(turn) then
    first = last - height + 1
  elseif last > height then
    more = ('… %d more lines · :Fermata transcript'):format(last - height)
    if turn.state == 'stopped' then -- where it was stopped is what matters
      first = last - height + 1
      more = nil
    else
      last = height
    end
  end
  if first > 1 then
    table.insert(out, { { ('… %d lines above'):format(first - 1), 'FermataDetail' } })
  end
  for i = first, last do
    table.insert(out, { { lines[i], 'FermataAnswer' } })
  end
  if more then
    table.insert(out, { { more, 'FermataDetail' } })
  end
  return out
end

---@param turn fermata.Turn
local function remove(turn)
  local inline = shown[turn]
  if not inline then
    return
  end
  shown[turn], dirty[inline] = nil, nil
  if vim.api.nvim_buf_is_valid(inline.buf) then
    vim.api.nvim_buf_del_extmark(inline.buf, namespace, inline.mark)
  end
end

---@param inline fermata.Inline
---@return integer? line 0-based
local function line_of(inline)
  if not vim.api.nvim_buf_is_loaded(inline.buf) then
    return nil
  end
  return vim.api.nvim_buf_get_extmark_by_id(inline.buf, namespace, inline.mark, {})[1]
end

---@param inline fermata.Inline
local function draw(inline)
  if not vim.api.nvim_buf_is_loaded(inline.buf) then
    return -- it comes back with the buffer
  end
  local last = vim.api.nvim_buf_line_count(inline.buf) - 1
  local line = line_of(inline) or math.min(inline.at, last)
  inline.at = line
  vim.api.nvim_buf_set_extmark(inline.buf, namespace, line, 0, {
    id = inline.mark,
    virt_lines = virtual_lines(inline),
    undo_restore = false,
  })
end

local function draw_dirty()
  local now = dirty
  dirty = {}
  for inline in pairs(now) do
    draw(inline)
  end
end

--- Draws soon: what comes in quickly is drawn together.
---@param inline fermata.Inline
local function touch(inline)
  dirty[inline] = true
  timer = timer or assert(vim.uv.new_timer())
  if not timer:is_active() then
    timer:start(interval, 0, vim.schedule_wrap(draw_dirty))
  end
end

-- Keys and the mouse, only while a turn runs.

local mapped = {} ---@type table<integer, { key: string, modes: string[] }> by buffer

---@param buf integer
---@return boolean
local function runs_in(buf)
  for turn, inline in pairs(shown) do
    if inline.buf == buf and turns.runs(turn) then
      return true
    end
  end
  return false
end

---@param buf integer
local function map(buf)
  local key = config.get().keys.stop
  if not vim.api.nvim_buf_is_loaded(buf) or not key then
    return
  end
  local wanted = runs_in(buf)
  local function own(mode)
    return vim.api.nvim_buf_call(buf, function()
      return vim.fn.maparg(key, mode, false, true)
    end)
  end
  if mapped[buf] and own('n').buffer ~= 1 then
    mapped[buf] = nil -- they went when the buffer was unloaded
  end
  if wanted and not mapped[buf] then
    if own('n').buffer == 1 then
      return -- the user has a map of their own there
    end
    local modes = { 'n' }
    vim.keymap.set('n', key, function()
      turns.stop()
    end, { buffer = buf, desc = 'Fermata: stop' })
    if key:lower() == '<c-c>' then
      -- Neovim takes a Ctrl-C that comes while the mode has no map for it for an interrupt, and throws away what was typed
      -- before it: also an <Esc> that has left the mode by then, so that the stop would be lost. With a map to itself it is
      -- what it always is in that mode, but waits for its turn.
      for _, mode in ipairs({ 'i', 'x', 's', 'o', 'c' }) do
        if not next(own(mode)) then
          table.insert(modes, mode)
          vim.keymap.set(mode, key, key, { buffer = buf, desc = 'Fermata: as ever' })
        end
      end
    end
    mapped[buf] = { key = key, modes = modes }
  elseif not wanted and mapped[buf] then
    for _, mode in ipairs(mapped[buf].modes) do
      pcall(vim.keymap.del, mode, mapped[buf].key, { buffer = buf })
    end
    mapped[buf] = nil
  end
end

--- The turn whose control was clicked.
---@return fermata.Turn?
local function clicked()
  local mouse = vim.fn.getmousepos()
  if mouse.winid == 0 or not vim.api.nvim_win_is_valid(mouse.winid) then
    return nil
  end
  local buf = vim.api.nvim_win_get_buf(mouse.winid)
  for turn, inline in pairs(shown) do
    local line = inline.buf == buf and turns.runs(turn) and line_of(inline)
    if line then
      local text = vim.api.nvim_buf_get_lines(buf, line, line + 1, false)[1] or ''
      local last = vim.fn.screenpos(mouse.winid, line + 1, math.max(#text, 1))
      if last.row > 0 and mouse.screenrow == last.row + 1 then
        return turn
      end
    end
  end
end

local press = vim.api.nvim_replace_termcodes('<LeftMouse>', true, true, true)
local listening = false

local function on_key(key, typed)
  if key ~= press and typed ~= press then
    return
  end
  local turn = clicked()
  if turn then
    vim.schedule(function()
      turns.stop(turn)
    end)
    return '' -- Neovim 0.10 moves the cursor all the same
  end
end

local function listen()
  local wanted = false
  for turn in pairs(shown) do
    wanted = wanted or turns.runs(turn)
  end
  if wanted ~= listening then
    listening = wanted
    vim.on_key(wanted and on_key or nil, namespace)
  end
end

--- Opens the fold, and scrolls so far, that an answer has room under its line.
---@param inline fermata.Inline
local function reveal(inline)
  local win = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_buf(win) ~= inline.buf then
    return
  end
  local top = vim.fn.getwininfo(win)[1].topline
  local height = vim.api.nvim_win_get_height(win)
  if inline.at + 1 < top or inline.at + 1 > vim.fn.line('w$', win) then
    return
  end
  local row = inline.at + 1
  if vim.fn.foldclosed(row) >= 0 then -- nothing is drawn in a closed fold
    vim.cmd(row .. 'foldopen!')
  end
  local _, lines = room(inline.buf)
  local above = vim.api.nvim_win_text_height(win, { start_row = top - 1, end_row = inline.at }).all
  local missing = math.min(above + lines + 2 - height, inline.at + 1 - top)
  if missing > 0 then
    vim.fn.winrestview({ topline = top + missing })
  end
end

---@param turn fermata.Turn
local function new(turn)
  if shown[turn] or not turn.buf or not turn.line or not vim.api.nvim_buf_is_loaded(turn.buf) then
    return
  end
  require('fermata.highlight').define()
  local line = turn.line
  for old, inline in pairs(shown) do
    local at = inline.buf == turn.buf and line_of(inline)
    if old == turn.redirects then
      line = at or line -- the thread stays where it is
      replaced[old] = true
    end
    if at and (at == line or replaced[old]) and not turns.runs(old) then
      remove(old)
    end
  end
  line = math.max(0, math.min(line, vim.api.nvim_buf_line_count(turn.buf) - 1))
  local inline = {
    turn = turn,
    buf = turn.buf,
    at = line,
    wrap = Wrap.new((room(turn.buf))),
    mark = vim.api.nvim_buf_set_extmark(turn.buf, namespace, line, 0, {}),
  }
  shown[turn] = inline
  inline.wrap:add(table.concat(turn.text))
  draw(inline)
  map(turn.buf)
  listen()
  if turn.state == 'asking' then
    reveal(inline)
  end
end

turns.on('new', new)

turns.on('ended', function(turn)
  if replaced[turn] then
    remove(turn)
  end
end)

turns.on('text', function(turn, piece)
  local inline = shown[turn]
  if inline then
    inline.wrap:add(piece)
    touch(inline)
  end
end)

turns.on('step', function(turn)
  local inline = shown[turn]
  if inline then
    inline.wrap = Wrap.new(inline.wrap.width)
    touch(inline)
  end
end)

turns.on('changed', function(turn)
  local inline = shown[turn]
  if not inline then
    return
  end
  if turn.state == 'stopping' or not turns.runs(turn) then
    draw(inline) -- acknowledged at once, and at one with the lane
  else
    touch(inline)
  end
  map(inline.buf)
  listen()
end)

local group = vim.api.nvim_create_augroup('fermata.inline', {})

--- Calls fn for what is shown in the buffer of an event.
---@param event string
---@param fn fun(inline: fermata.Inline)
local function on_buffer(event, fn)
  vim.api.nvim_create_autocmd(event, {
    group = group,
    callback = function(args)
      for _, inline in pairs(shown) do
        if inline.buf == args.buf then
          fn(inline)
        end
      end
    end,
  })
end

on_buffer('BufUnload', function(inline)
  inline.at = line_of(inline) or inline.at
end)

on_buffer('BufReadPost', function(inline)
  draw(inline)
  map(inline.buf)
end)

on_buffer('BufWipeout', function(inline)
  mapped[inline.buf] = nil
  remove(inline.turn)
  listen()
end)

vim.api.nvim_create_autocmd({ 'VimResized', 'WinResized' }, {
  group = group,
  callback = function()
    for turn, inline in pairs(shown) do
      local width = room(inline.buf)
      if width ~= inline.wrap.width then
        inline.wrap = Wrap.new(width)
        inline.wrap:add(table.concat(turn.text))
      end
      touch(inline)
    end
  end,
})

--- The line, 0-based, that a turn is shown at; nil when it is not.
---@param turn fermata.Turn
---@return integer?
function M.line(turn)
  local inline = shown[turn]
  return inline and line_of(inline)
end

--- Takes away what is shown of turns that have ended: in a buffer, or everywhere.
---@param buf? integer
function M.clear(buf)
  for turn, inline in pairs(shown) do
    if not turns.runs(turn) and (not buf or inline.buf == buf) then
      remove(turn)
    end
  end
end

return M
