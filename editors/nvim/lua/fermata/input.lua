--- Model inputs: the exact bytes that a model was sent, indented for reading, each part a fold that says what it is and which
--- entry of the log it came from. The line that says whether they have the SHA-256 taken when they were sent is the first.
local buffers = require('fermata.buffer')
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')

local M = {}

--- Indents JSON. Strings and numbers stay byte for byte; `breaks` are offsets (0-based, ascending) at which a line begins
--- whatever stands there, for the parts of a body.
---@param json string
---@param breaks integer[]
---@return string[] lines
---@return table<integer, integer> offset of a break to the number of lines before it
function M.indent(json, breaks)
  local lines, line, depth = {}, {}, 0
  local before = {} ---@type table<integer, integer>
  local next_break = 1
  local function flush()
    if #line > 0 then
      table.insert(lines, table.concat(line))
    end
    line = {}
  end
  local function fresh()
    flush()
    line = { ('  '):rep(depth) }
  end
  local at, length = 1, #json
  while at <= length do
    while breaks[next_break] and breaks[next_break] <= at - 1 do
      if #line > 1 or (line[1] and line[1]:match('%S')) then
        fresh()
      end
      before[breaks[next_break]] = #lines
      next_break = next_break + 1
    end
    local c = json:sub(at, at)
    if c == '"' then
      local stop = at
      repeat
        stop = json:find('["\\]', stop + 1) or length
        if json:sub(stop, stop) == '\\' then
          stop = stop + 1
        else
          break
        end
      until stop >= length
      table.insert(line, json:sub(at, stop))
      at = stop + 1
    elseif c == '{' or c == '[' then
      local empty = json:match('^%s*[%]}]()', at + 1)
      table.insert(line, c)
      if empty then
        table.insert(line, json:sub(empty - 1, empty - 1))
        at = empty
      else
        depth = depth + 1
        fresh()
        at = at + 1
      end
    elseif c == '}' or c == ']' then
      depth = math.max(0, depth - 1)
      if #line == 1 and not line[1]:match('%S') then
        line = { ('  '):rep(depth) }
      else
        fresh()
      end
      table.insert(line, c)
      at = at + 1
    elseif c == ',' then
      table.insert(line, ',')
      fresh()
      at = at + 1
    elseif c == ':' then
      table.insert(line, ': ')
      at = at + 1
    elseif c:match('%s') then
      at = at + 1
    else
      local word = json:match('^[^%s,:%[%]{}"]+', at)
      table.insert(line, word)
      at = at + #word
    end
  end
  flush()
  return lines, before
end

---@param result table of fermata/request/input
---@return string[] lines
---@return { first: integer, last: integer, open: boolean }[] folds
local function page(result)
  local request = result.request
  local usage = request.usage
  local out = {
    result.verified and '// ✓ verified: these are the bytes that were sent'
      or '// ✗ THESE ARE NOT THE BYTES THAT WERE SENT: their SHA-256 is another',
    '// sha256 ' .. result.sha256,
    '// request ' .. request.request,
    ('// %s, model %s, %s'):format(request.route, request.model, request.at:gsub('T', ' '):gsub('%..*', '')),
    ('// session %s, turn %s, step %d, try %d'):format(request.session, request.turn, request.step, request.try),
    ('// %d bytes, %s; %s%s'):format(
      result.bytes,
      phrase.count(request.messages, 'message'),
      request.outcome or 'running',
      usage and ('; tokens in %d (cached %d), out %d'):format(usage.input, usage.cached or 0, usage.output) or ''
    ),
  }
  if result.previous then
    table.insert(
      out,
      ('// the first %d bytes are those of %s; D compares'):format(result.sharedPrefix, result.previous)
    )
  end
  table.insert(out, '')
  local body = result.body
  if not body then
    table.insert(out, '// the body is not UTF-8; `fermata input --raw` prints it')
    return out, {}
  end
  local breaks = {}
  for _, part in ipairs(result.parts) do
    if part.length > 0 then
      table.insert(breaks, part.offset)
    end
  end
  local lines, before = M.indent(body, breaks)
  local folds, done = {}, 0
  for i, part in ipairs(result.parts) do
    -- A message of which nothing is sent stands before the next that is.
    local sent = i
    while result.parts[sent].length == 0 do
      sent = sent + 1
    end
    local upto = before[result.parts[sent].offset] or #lines
    vim.list_extend(out, lines, done + 1, upto)
    done = upto
    if folds[i - 1] then
      folds[i - 1].last = #out
    end
    local what = part.kind
    if part.kind == 'message' then
      what = ('%s, entry %d'):format(part.role or 'message', part.source or 0)
    end
    table.insert(out, ('// %s, %d bytes'):format(what, part.length))
    folds[i] = { first = #out, last = #out, open = part.length == 0 }
    for _, why in ipairs(part.unsendable or {}) do
      table.insert(out, '//   ' .. why)
    end
  end
  vim.list_extend(out, lines, done + 1, #lines)
  if folds[#folds] then
    folds[#folds].last = #out
  end
  return out, folds
end

--- Makes or finds the buffer of a request's input.
---@param root string?
---@param params table request?, session?
---@param done fun(buf: integer, result: table, folds: table)
local function load(root, params, done)
  client.request(root, 'fermata/request/input', params, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    local buf = buffers.named('fermata://input/' .. result.request.request)
    local lines, folds = page(result)
    buffers.fill(buf, lines)
    vim.bo[buf].bufhidden = 'hide'
    vim.bo[buf].filetype = 'fermata-input'
    vim.bo[buf].syntax = 'jsonc'
    done(buf, result, folds)
  end)
end

---@param buf integer
---@param result table
local function mark(buf, result)
  require('fermata.highlight').define()
  local namespace = vim.api.nvim_create_namespace('fermata.input')
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  vim.api.nvim_buf_set_extmark(buf, namespace, 0, 0, {
    end_row = 1,
    hl_group = result.verified and 'FermataDone' or 'FermataFailed',
    priority = 200,
  })
end

--- What a folded part says of itself.
---@return string
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart):gsub('^// ', '')
  return ('%s · %d lines'):format(line, vim.v.foldend - vim.v.foldstart)
end

---@param win integer
---@param folds { first: integer, last: integer, open: boolean }[]
---@param closed boolean
local function fold(win, folds, closed)
  local wo = vim.wo[win][0]
  wo.foldmethod = 'manual'
  wo.foldtext = 'v:lua.require("fermata.input").foldtext()'
  wo.wrap = true
  wo.number = false
  wo.relativenumber = false
  vim.api.nvim_win_call(win, function()
    vim.cmd('silent! normal! zE')
    for i, part in ipairs(folds) do
      if part.last > part.first then
        vim.cmd(('%d,%dfold'):format(part.first, part.last))
        if not closed or part.open or i == #folds - 1 then -- the newest message is what one looks for
          vim.cmd(('%dfoldopen'):format(part.first))
        end
      end
    end
  end)
end

--- Shows the difference to the request before, in two windows.
---@param buf integer
---@param result table
---@param root string?
local function compare(buf, result, root)
  if not result.previous then
    notify.info('this is the first request of the session')
    return
  end
  load(root, { request = result.previous }, function(before)
    vim.cmd.diffthis()
    vim.cmd('leftabove vertical sbuffer ' .. before)
    vim.cmd.diffthis()
    vim.api.nvim_set_current_win(vim.fn.win_findbuf(buf)[1])
  end)
end

--- The exact bytes, as one text.
---@param result table
local function raw(result)
  vim.cmd.new()
  local buf = vim.api.nvim_get_current_buf()
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(result.body or '', '\n', { plain = true }))
  vim.bo[buf].modifiable = false
end

--- Opens the input of a request, else of the newest of a session, else of the newest.
---@param options? { request?: string, session?: string, root?: string, modifiers?: string }
function M.open(options)
  options = options or {}
  local root = options.root or client.root_of(vim.api.nvim_get_current_buf())
  local current = require('fermata.session').current(root)
  local params = { request = options.request, session = not options.request and (options.session or current) or nil }
  load(root, params, function(buf, result, folds)
    mark(buf, result)
    local win = vim.fn.win_findbuf(buf)[1]
    if win then
      vim.api.nvim_set_current_win(win)
    else
      vim.cmd(((options.modifiers or '') ~= '' and options.modifiers or 'vertical') .. ' sbuffer ' .. buf)
    end
    fold(vim.api.nvim_get_current_win(), folds, true)
    local function map(key, fn, desc)
      vim.keymap.set('n', key, fn, { buffer = buf, nowait = true, desc = 'Fermata: ' .. desc })
    end
    map('D', function()
      compare(buf, result, root)
    end, 'what differs from the request before')
    map('B', function()
      raw(result)
    end, 'the exact bytes')
    map('q', '<Cmd>close<CR>', 'close')
  end)
end

return M
