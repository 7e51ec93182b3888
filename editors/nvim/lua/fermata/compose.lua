--- A float to write a prompt in. Enter sends, Ctrl-J begins a new line, Up and Down go through what was written before; Escape
--- from an empty input or in normal mode leaves everything as it was. Above it a read-only text can stand.
local config = require('fermata.config')
local phrase = require('fermata.phrase')

local M = {}

---@class fermata.Compose
---@field title string
---@field placeholder string
---@field text? string what the input holds at first
---@field above? { title: string, lines: string[] } a text to look at, dimmed
---@field done fun(text: string)
---@field left? fun() it was left without sending

local namespace = vim.api.nvim_create_namespace('fermata.compose')
local history = {} ---@type string[] oldest first
local open ---@type { close: fun() }?

--- Puts a text among those that Up brings back.
---@param text string
function M.remember(text)
  if text:match('%S') and history[#history] ~= text then
    table.insert(history, text)
    if #history > 100 then
      table.remove(history, 1)
    end
  end
end

---@param lines string[]
---@param title string
---@param place table row, col, width, height
---@param enter boolean
---@return integer buf
---@return integer win
local function float(lines, title, place, enter)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local win = vim.api.nvim_open_win(buf, enter, {
    relative = 'editor',
    row = place.row,
    col = place.col,
    width = place.width,
    height = place.height,
    border = 'rounded',
    style = 'minimal',
    title = vim.fn.strdisplaywidth(title) > place.width and phrase.short(title, place.width) or title,
    title_pos = 'left',
    zindex = 60,
  })
  vim.wo[win].winfixbuf = true
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  return buf, win
end

--- How many rows lines take in a window of a width.
---@param lines string[]
---@param width integer
local function rows(lines, width)
  local n = 0
  for _, line in ipairs(lines) do
    n = n + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
  return n
end

--- Where the windows are on the screen as it is now.
---@param spec fermata.Compose
---@return { row: integer, col: integer, width: integer, height: integer } input
---@return { row: integer, col: integer, width: integer, height: integer }? above nil when it has no room
local function places(spec)
  local options = config.get().lane
  local width = math.max(math.min(options.width, vim.o.columns - 4), 10)
  local free = vim.o.lines - vim.o.cmdheight - 2
  local height = math.min(math.max(3, rows(vim.split(spec.text or '', '\n'), width)), math.max(1, math.floor(free / 2)))
  local above = spec.above and math.min(rows(spec.above.lines, width), options.height, free - height - 4) or 0
  local total = height + 2 + (above > 0 and above + 2 or 0)
  local row = math.max(0, math.floor((free - total) / 2))
  local col = math.max(0, math.floor((vim.o.columns - width - 2) / 2))
  local over = above > 0 and { row = row, col = col, width = width, height = above } or nil
  return { row = over and row + above + 2 or row, col = col, width = width, height = height }, over
end

--- Opens the input; one that is open is left first. Over the command-line window nothing can be opened: it comes behind it.
---@param spec fermata.Compose
function M.open(spec)
  if vim.fn.getcmdwintype() ~= '' then
    vim.api.nvim_create_autocmd('CmdwinLeave', {
      once = true,
      callback = vim.schedule_wrap(function()
        M.open(spec)
      end),
    })
    return
  end
  if open then
    open.close()
  end
  require('fermata.highlight').define()
  local back = vim.api.nvim_get_current_win()
  local place, over = places(spec)

  local partial
  if over then
    local buf, win = float(spec.above.lines, spec.above.title, over, false)
    vim.bo[buf].modifiable = false
    vim.wo[win].winhighlight = 'NormalFloat:FermataAnswer,FloatTitle:FermataStopped'
    vim.api.nvim_win_set_cursor(win, { #spec.above.lines, 0 }) -- where it was stopped
    partial = win
  end
  local text = spec.text or ''
  local buf, win = float(vim.split(text, '\n'), spec.title, place, true)
  vim.bo[buf].filetype = 'fermata-prompt'

  local closed, sent = false, false
  local at, draft = #history + 1, text
  local function lines()
    return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  end
  local function remember()
    if not sent and vim.api.nvim_buf_is_valid(buf) and lines() ~= text then
      M.remember(lines())
    end
  end
  local function close()
    if closed then
      return
    end
    closed, open = true, nil
    remember()
    local here = vim.api.nvim_get_current_win()
    local inside = here == win or here == partial
    if inside then
      vim.cmd.stopinsert()
    end
    for _, w in ipairs({ win, partial }) do
      if vim.api.nvim_win_is_valid(w) then
        vim.api.nvim_win_close(w, true)
      end
    end
    if inside and vim.api.nvim_win_is_valid(back) then
      vim.api.nvim_set_current_win(back)
    end
    if not sent and spec.left then
      spec.left()
    end
  end
  open = { close = close }

  local function submit()
    local written = lines()
    if not written:match('%S') then
      return close()
    end
    sent = true
    M.remember(written)
    close()
    spec.done(written)
  end
  local function show(written)
    local new = vim.split(written, '\n')
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, new)
    vim.api.nvim_win_set_cursor(win, { #new, #new[#new] })
  end
  local function step(by, edge, key)
    return function()
      if vim.api.nvim_win_get_cursor(win)[1] ~= edge() then
        vim.api.nvim_feedkeys(vim.keycode(key), 'n', false)
        return
      end
      if at == #history + 1 then
        draft = lines()
      end
      at = math.max(1, math.min(#history + 1, at + by))
      show(history[at] or draft)
    end
  end
  local function placeholder()
    vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    if lines() == '' then
      vim.api.nvim_buf_set_extmark(buf, namespace, 0, 0, {
        virt_text = { { spec.placeholder, 'FermataPlaceholder' } },
        virt_text_pos = 'overlay',
      })
    end
  end

  local function key(modes, lhs, rhs, desc)
    vim.keymap.set(modes, lhs, rhs, { buffer = buf, nowait = true, desc = 'Fermata: ' .. desc })
  end
  key({ 'n', 'i' }, '<CR>', submit, 'send')
  key('i', '<C-j>', '<CR>', 'new line')
  key('i', '<S-CR>', '<CR>', 'new line')
  key(
    'i',
    '<Up>',
    step(-1, function()
      return 1
    end, '<Up>'),
    'what was written before'
  )
  key(
    'i',
    '<Down>',
    step(1, function()
      return vim.api.nvim_buf_line_count(buf)
    end, '<Down>'),
    'what was written after'
  )
  key('n', '<Esc>', close, 'leave')
  key('n', 'q', close, 'leave')
  key('n', '<C-c>', close, 'leave')
  key('i', '<Esc>', function()
    if lines() == text or not lines():match('%S') then
      close()
    else
      vim.cmd.stopinsert()
    end
  end, 'leave')
  local group = vim.api.nvim_create_augroup('fermata.compose', {})
  vim.api.nvim_create_autocmd(
    { 'TextChanged', 'TextChangedI' },
    { group = group, buffer = buf, callback = placeholder }
  )
  vim.api.nvim_create_autocmd('VimResized', {
    group = group,
    callback = function()
      if closed then
        return
      end
      place, over = places(spec)
      vim.api.nvim_win_set_config(win, vim.tbl_extend('force', place, { relative = 'editor' }))
      if partial and vim.api.nvim_win_is_valid(partial) then
        local config_of = vim.tbl_extend('force', over or {}, { relative = over and 'editor' or nil, hide = not over })
        vim.api.nvim_win_set_config(partial, config_of)
      end
    end,
  })
  vim.api.nvim_create_autocmd('WinClosed', {
    group = group,
    pattern = tostring(win),
    callback = function()
      remember() -- while the buffer is there
      vim.schedule(close)
    end,
  })
  placeholder()
  show(text)
  vim.cmd.startinsert({ bang = true })
end

return M
