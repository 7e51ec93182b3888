--- Asking: makes a prompt of a text and of the lines that it is about, and starts the turn.
local client = require('fermata.client')
local session = require('fermata.session')
local turns = require('fermata.turns')

local M = {}

--- The name by which a buffer is known to the daemon.
---@param buf integer
---@return string
local function uri_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if name == '' then
    return 'untitled:Untitled-' .. buf
  end
  return vim.uri_from_bufnr(buf)
end

--- A piece of a buffer as part of a prompt: its text as it is now, saved or not.
---@param buf integer
---@param place fermata.Place
---@return table?
local function selection(buf, place)
  local lines = vim.api.nvim_buf_get_lines(buf, place.line1 - 1, place.line2, false)
  local range, text
  if place.col1 then
    local last = lines[#lines]
    local col2 = math.min(place.col2, math.max(#last - 1, 0))
    local stop = col2 + 1 -- all bytes of the last character
    while stop < #last and last:byte(stop + 1) >= 0x80 and last:byte(stop + 1) < 0xC0 do
      stop = stop + 1
    end
    local finish = { place.line2, vim.o.selection == 'exclusive' and stop or col2 }
    range = vim.lsp.util.make_given_range_params({ place.line1, place.col1 }, finish, buf, client.encoding).range
    lines[#lines] = last:sub(1, stop)
    lines[1] = lines[1]:sub(place.col1 + 1)
    text = table.concat(lines, '\n')
  else
    range = { start = { line = place.line1 - 1, character = 0 }, ['end'] = { line = place.line2, character = 0 } }
    text = table.concat(lines, '\n') .. '\n'
  end
  if not text:match('%S') then
    return nil
  end
  return { type = 'selection', uri = uri_of(buf), range = range, text = text }
end

---@class fermata.Place
---@field chosen? boolean by the user: also what stands in no file, as a terminal or a help page, goes with the question
---@field line1 integer 1-based
---@field line2 integer 1-based, included
---@field col1? integer 0-based byte, of a selection of characters
---@field col2? integer 0-based byte, included

--- What a command's range means: the characters that were selected, else whole lines.
---@param line1 integer
---@param line2 integer
---@return fermata.Place
function M.place(line1, line2)
  local from, to = vim.api.nvim_buf_get_mark(0, '<'), vim.api.nvim_buf_get_mark(0, '>')
  if vim.fn.visualmode() == 'v' and from[1] == line1 and to[1] == line2 then
    local col2 = to[2]
    if vim.o.selection == 'exclusive' and (line1 < line2 or col2 > from[2]) then -- the mark is behind the last character
      local text = vim.api.nvim_buf_get_lines(0, line2 - 1, line2, false)[1]
      if col2 == 0 then
        return { line1 = line1, line2 = line2 - 1, col1 = from[2], col2 = vim.v.maxcol }
      end
      col2 = math.min(col2, #text)
      col2 = col2 - 1 + vim.str_utf_start(text, col2)
    end
    return { line1 = line1, line2 = line2, col1 = from[2], col2 = col2 }
  end
  return { line1 = line1, line2 = line2 }
end

---@param buf integer
---@param place fermata.Place
---@param text string
---@param new boolean?
local function send(buf, place, text, new)
  local root = client.root_of(buf)
  local parts = { { type = 'text', text = text } }
  local anchor
  local editable = vim.bo[buf].buftype == ''
  if editable or place.chosen then
    table.insert(parts, selection(buf, place))
  end
  if editable then
    local line = place.line2 - 1
    anchor = {
      uri = uri_of(buf),
      range = { start = { line = place.line1 - 1, character = 0 }, ['end'] = { line = line, character = 0 } },
    }
  end
  turns.start({
    root = root,
    prompt = text,
    buf = buf,
    line = place.line2 - 1,
    anchor = anchor,
  }, function(turn, request)
    session.for_question(root, new, function(err, id)
      if err then
        turns.fail(turn, err)
        return
      end
      turn.session = id
      request('fermata/turn/start', { session = id, prompt = parts, anchor = anchor, model = session.model(root) })
    end, turn)
  end)
end

--- Asks about lines of the current buffer; without a text an input opens first.
---@param text? string
---@param options? { place?: fermata.Place, new?: boolean, line1?: integer, line2?: integer }
function M.ask(text, options)
  options = options or {}
  local buf = vim.api.nvim_get_current_buf()
  local line = math.max(1, vim.api.nvim_win_get_cursor(0)[1]) -- it is 0 while -c of the command line is carried out
  local place = options.place or { line1 = options.line1 or line, line2 = options.line2 or options.line1 or line }
  place.chosen = options.place ~= nil or options.line1 ~= nil
  if text and text:match('%S') then
    send(buf, place, text, options.new)
    return
  end
  require('fermata.compose').open({
    title = ' Ask fermata ',
    placeholder = 'What do you want to know, or to be done?',
    done = function(written)
      if vim.api.nvim_buf_is_valid(buf) then
        send(buf, place, written, options.new)
      end
    end,
  })
end

return M
