--- Transcript buffers: a session as markdown, live. What is in the log is rendered by the daemon; what is being said is appended
--- as it comes, and replaced by the daemon's rendering once it is in the log. Lines that stay the same are never touched, so
--- that folds, marks and the cursor stay where they are.
local buffers = require('fermata.buffer')
local client = require('fermata.client')
local live_of = require('fermata.live')
local notify = require('fermata.notify')
local older = require('fermata.older')
local refs_of = require('fermata.refs')
local session = require('fermata.session')

local M = {}

local foldexpr = 'v:lua.require("fermata.transcript").fold(v:lnum)'
local text_interval = 40 -- milliseconds between two writes of what is said
local page = 150 -- entries that are shown first of a long session
local render_interval = 120 -- milliseconds between two renderings of the log

---@class fermata.Transcript
---@field session string
---@field root? string
---@field buf integer
---@field refs fermata.Ref[]
---@field rendered integer how many lines are the daemon's
---@field live fermata.Live[]
---@field part? string that was said last
---@field pending string[] to be appended
---@field writing? uv.uv_timer_t
---@field rendering? uv.uv_timer_t
---@field asked boolean a rendering is on its way
---@field again boolean and another one is needed
---@field since integer the entry that is the newest of those missing above; 0 when none is
---@field page integer how many of them are asked for next
---@field above integer how many lines of them were put above the first page
---@field seam integer how many of those belong to a page that is not all there yet
---@field filling? 'asked'|'put' they are on their way
---@field superseded? string the turn that a redirect has replaced since the last rendering
---@field renamed boolean the heading is not the one that is shown, or on its way

local transcripts = {} ---@type table<string, fermata.Transcript>

--- Changes the buffer. Windows that show its end go on showing it.
---@param t fermata.Transcript
---@param change fun()
local function edit(t, change)
  local last = vim.api.nvim_buf_line_count(t.buf)
  local following = {}
  for _, win in ipairs(vim.fn.win_findbuf(t.buf)) do
    if vim.api.nvim_win_get_cursor(win)[1] == last then
      table.insert(following, win)
    end
  end
  vim.bo[t.buf].modifiable = true
  change()
  vim.bo[t.buf].modifiable = false
  vim.bo[t.buf].modified = false
  for _, win in ipairs(following) do
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(t.buf), 0 })
  end
end

--- Replaces the lines from `first` (0-based) on, touching only those that differ.
---@param t fermata.Transcript
---@param first integer
---@param lines string[]
local function replace(t, first, lines)
  local have = vim.api.nvim_buf_get_lines(t.buf, first, -1, false)
  local same = 0
  while same < #have and same < #lines and have[same + 1] == lines[same + 1] do
    same = same + 1
  end
  local tail = 0
  while tail < #have - same and tail < #lines - same and have[#have - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  if same + tail == #have and #have == #lines then
    return
  end
  edit(t, function()
    vim.api.nvim_buf_set_lines(
      t.buf,
      first + same,
      first + #have - tail,
      false,
      vim.list_slice(lines, same + 1, #lines - tail)
    )
  end)
end

local append

---@param t fermata.Transcript
local function write(t)
  if #t.pending == 0 or not vim.api.nvim_buf_is_loaded(t.buf) then
    return
  end
  if buffers.locked(t.buf) then
    append(t, '')
    return
  end
  local text = table.concat(t.pending)
  t.pending = {}
  edit(t, function()
    local last = vim.api.nvim_buf_line_count(t.buf) - 1
    local line = vim.api.nvim_buf_get_lines(t.buf, last, last + 1, false)[1]
    vim.api.nvim_buf_set_text(t.buf, last, #line, last, #line, vim.split(text, '\n', { plain = true }))
  end)
end

--- Runs fn once, `interval` milliseconds after the first call.
---@param timer uv.uv_timer_t?
---@param interval integer
---@param fn fun()
---@return uv.uv_timer_t
local function soon(timer, interval, fn)
  timer = timer or assert(vim.uv.new_timer())
  if not timer:is_active() then
    timer:start(interval, 0, vim.schedule_wrap(fn))
  end
  return timer
end

---@param t fermata.Transcript
---@param text string
append = function(t, text)
  table.insert(t.pending, text)
  t.writing = soon(t.writing, text_interval, function()
    write(t)
  end)
end

---@param text string
---@return string[] lines, with one empty line at the end
local function lines_of(text)
  local lines = vim.split((text:gsub('\n+$', '')), '\n', { plain = true })
  table.insert(lines, '')
  return lines
end

---@param t fermata.Transcript
---@param result table
---@param since integer
---@param first integer
local function rendered(t, result, since, first)
  local lines = lines_of(result.text)
  local refs = since == 0 and {} or vim.tbl_filter(function(ref)
    return ref.line <= first
  end, t.refs)
  refs_of.add(refs, lines, result.lines, first)
  local newest = 0
  for _, ref in ipairs(result.lines) do
    newest = math.max(newest, ref.seq)
  end
  t.refs = refs
  t.rendered = first + #lines
  t.live = vim.tbl_filter(function(live)
    return not live.seq or live.seq > newest
  end, t.live)
  t.pending = {}
  local live = live_of.text(t.live)
  if live ~= '' then
    vim.list_extend(lines, vim.split(live, '\n', { plain = true }))
  end
  replace(t, first, lines)
end

--- Asks for a rendering, and hands it out when the text may be changed.
---@param t fermata.Transcript
---@param params table
---@param done fun(err: lsp.ResponseError?, result: table?)
local function ask(t, params, done)
  client.request(t.root, 'fermata/transcript/render', params, function(err, result)
    local function hand()
      if not vim.api.nvim_buf_is_loaded(t.buf) or transcripts[t.session] ~= t then
        return
      elseif buffers.locked(t.buf) then
        vim.defer_fn(hand, text_interval)
      else
        done(err, result)
      end
    end
    hand()
  end)
end

---@param t fermata.Transcript
---@param done? fun()
local function render(t, done)
  if t.asked then
    t.again = true
    return
  end
  t.asked = true
  local since, first = refs_of.settled(t.refs)
  if not since or not first then
    since, first = t.since, t.seam
  end
  for _, ref in ipairs(t.superseded and t.refs or {}) do -- what is said of that turn may stand further up
    if ref.turn == t.superseded and ref.seq <= since then
      since, first = ref.seq - 1, ref.line - 1
    end
  end
  t.superseded = nil
  local above = t.above
  local params = { session = t.session, since = since > 0 and since or nil }
  ask(t, params, function(err, result)
    t.asked = false
    if err then
      notify.failed(err)
      return
    end
    rendered(t, result, since, first + t.above - above)
    if t.again then
      t.again = false
      render(t)
    end
    if done then
      done()
    end
  end)
end

--- Shows the heading anew: the first lines, up to those of the first entry.
---@param t fermata.Transcript
local function head(t)
  t.renamed = false
  ask(t, { session = t.session, ['until'] = 1 }, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    edit(t, function()
      vim.api.nvim_buf_set_lines(t.buf, 0, 1, false, { (result.text:match('^[^\n]*')) })
    end)
  end)
end

---@param t fermata.Transcript
local function fill(t)
  older.fill(t, edit, function()
    if t.renamed then
      head(t)
    end
  end)
end

--- Shows the newest entries of a long session at once, then, bit by bit, those before them.
---@param t fermata.Transcript
---@param done fun() once the newest are there
local function first_page(t, done)
  if t.rendered > 0 then
    render(t, done)
    fill(t)
    return
  end
  local params = { session = t.session, since = -page }
  ask(t, params, function(err, result)
    if err then
      notify.failed(err)
    else
      t.since = result.since
      rendered(t, result, 0, 0)
      done()
      fill(t)
    end
  end)
end

---@param t fermata.Transcript
local function render_soon(t)
  t.rendering = soon(t.rendering, render_interval, function()
    if vim.api.nvim_buf_is_loaded(t.buf) then
      render(t)
    end
  end)
end

--- Takes an event into account, if its session is shown.
---@param event table
function M.event(event)
  local t = transcripts[event.session]
  if not t then
    return
  end
  if event.kind == 'delta' or event.kind == 'tool.output' then
    local text = live_of[event.kind == 'delta' and 'said' or 'output'](t, event)
    if text then
      append(t, text)
    else
      render_soon(t)
    end
    return
  end
  if event.kind == 'stopping' then
    append(t, '\n\n*stopping…*')
  end
  if event.kind == 'turn.started' then
    t.superseded = event.entry.redirects or t.superseded
  end
  live_of.settle(t.live, event)
  if event.kind ~= 'resend' then
    render_soon(t)
  end
end

--- A session has another title.
---@param id string
function M.renamed(id)
  local t = transcripts[id]
  if t and t.rendered > 0 and t.since == 0 then
    head(t)
  elseif t then -- its heading is still to come, maybe with the title that it had
    t.renamed = true
  end
end

--- A session is no more.
---@param id string
function M.deleted(id)
  local t = transcripts[id]
  if t and vim.api.nvim_buf_is_valid(t.buf) then
    vim.api.nvim_buf_delete(t.buf, { force = true })
  end
end

--- The daemon of a root is gone: its transcripts show again what the next one has repaired.
---@param root string?
function M.disconnected(root)
  for _, t in pairs(transcripts) do
    if t.root == root then
      t.asked, t.again = false, false
      if t.filling == 'asked' then
        t.filling = nil
      end
      for _, live in ipairs(t.live) do
        live.seq = live.seq or 0 -- the next rendering has what the repair made of it
      end
    end
  end
end

--- The transcript in a buffer.
---@param buf integer
---@return fermata.Transcript?
function M.of(buf)
  for _, t in pairs(transcripts) do
    if t.buf == buf then
      return t
    end
  end
end

--- What is at the cursor of a transcript.
---@return { transcript: fermata.Transcript, turn: string?, seq: integer?, request: string?, file: string? }?
function M.here()
  local t = M.of(vim.api.nvim_get_current_buf())
  if not t then
    return nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local turn, seq = refs_of.at(t.refs, line)
  local request
  for l = line, 1, -1 do -- the request of this line is the nearest one above
    local text = vim.api.nvim_buf_get_lines(t.buf, l - 1, l, false)[1]
    request = text:match('^<sub>Request `(r_%w+)`')
    if request or text:match('^##') then
      break
    end
  end
  local file
  local call = vim.api.nvim_get_current_line():match('^%+ `+ ?([^`]+)')
  for word in (call or ''):gmatch('%S+') do
    local path = t.root and vim.fs.joinpath(t.root, word)
    if path and word ~= '.' and vim.uv.fs_stat(path) and vim.startswith(vim.fs.normalize(path), t.root .. '/') then
      file = path
    end
  end
  return { transcript = t, turn = turn, seq = seq, request = request, file = file }
end

---@param id string
---@param root string?
---@return fermata.Transcript
local function create(id, root)
  local buf = buffers.named('fermata://transcript/' .. id)
  buffers.fill(buf, {})
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].undolevels = -1
  vim.bo[buf].filetype = 'fermata'
  local t = {
    session = id,
    root = root,
    buf = buf,
    refs = {},
    rendered = 0,
    live = {},
    pending = {},
    asked = false,
    again = false,
    since = 0,
    page = page,
    above = 0,
    seam = 0,
    renamed = false,
  }
  transcripts[id] = t
  for _, turn in ipairs(require('fermata.turns').running()) do
    local said = turn.session == id and turn.id and turn.answered ~= turn.step and #turn.text > 0
    if said then -- before anybody looked
      table.insert(t.live, { turn = turn.id, step = turn.step, text = '\n' .. table.concat(turn.text) })
      t.part = 'text'
    end
  end
  require('fermata.menu').map(buf)
  vim.api.nvim_create_autocmd('BufUnload', {
    buffer = buf,
    once = true,
    callback = function()
      transcripts[id] = nil
      vim.schedule(function() -- :edit leaves it empty in its window, :bdelete without the options and keys that it had
        if transcripts[id] or not vim.api.nvim_buf_is_valid(buf) then
          return
        elseif vim.fn.win_findbuf(buf)[1] then
          first_page(create(id, root), function() end)
        else
          vim.api.nvim_buf_delete(buf, { force = true })
        end
      end)
    end,
  })
  return t
end

--- The fold level of a line. It is told from what is known of the lines, never from the lines before: that would cost the
--- length of an answer with each piece of it.
---@param line integer
---@return string|integer
function M.fold(line)
  local t = M.of(vim.api.nvim_get_current_buf())
  local ref = t and t.refs[refs_of.last(t.refs, line)]
  if not ref then
    return 0
  end
  return ref.line == line and ref.turn and ref.level > 0 and '>' .. ref.level or ref.level
end

--- What stands for a closed fold: how many lines it has, and the question.
---@return string
function M.fold_text()
  local first, last = vim.v.foldstart, vim.v.foldend
  local question
  for _, line in ipairs(vim.api.nvim_buf_get_lines(0, first, math.min(last, first + 8), false)) do
    question = question or line:match('^> (.*%S)')
  end
  local who = vim.fn.getline(first):match('^#+ ([^,]*)') or ''
  return ('+-- %s · %s · %d lines'):format(who, question or '', last - first + 1)
end

---@param t fermata.Transcript
---@param modifiers? string of the command
local function show(t, modifiers)
  local win = vim.fn.win_findbuf(t.buf)[1]
  if win then
    vim.api.nvim_set_current_win(win)
  else
    vim.cmd(((modifiers or '') ~= '' and modifiers or 'vertical') .. ' sbuffer ' .. t.buf)
  end
  local wo = vim.wo[vim.api.nvim_get_current_win()][0]
  if wo.foldexpr == foldexpr then
    return
  end
  wo.foldmethod = 'expr'
  wo.foldexpr = foldexpr
  wo.foldtext = 'v:lua.require("fermata.transcript").fold_text()'
  wo.foldlevel = 99
  wo.wrap = true
  wo.linebreak = true
  wo.conceallevel = 2
  wo.concealcursor = 'nc'
  wo.number = false
  wo.relativenumber = false
  wo.signcolumn = 'no'
end

--- Opens the transcript of a session, or of the one that was used last.
---@param options? { session?: string, root?: string, modifiers?: string }
function M.open(options)
  options = options or {}
  local root = options.root or client.root_of(vim.api.nvim_get_current_buf())
  local id = options.session or session.current(root)
  local function opened(t)
    show(t, options.modifiers)
    first_page(t, function()
      local newest = #t.refs > 0 and t.refs[#t.refs].seq or 0
      local params = { session = t.session, since = newest }
      client.request(root, 'fermata/session/open', params, function(err, result)
        if err then
          notify.failed(err)
        elseif #result.entries > 0 then
          render_soon(t)
        end
      end)
    end)
  end
  if
    not options.session
    and session.when_there(root, function(new)
      opened(transcripts[new] or create(new, root))
    end)
  then
    return
  end
  if id then
    opened(transcripts[id] or create(id, root))
    return
  end
  client.request(root, 'fermata/session/list', { workspace = root, limit = 1 }, function(err, result)
    if err then
      notify.failed(err)
    elseif not result.sessions[1] then
      notify.info('there is no session yet: ask something')
    else
      id = result.sessions[1].session
      session.use(root, id)
      opened(transcripts[id] or create(id, root))
    end
  end)
end

return M
