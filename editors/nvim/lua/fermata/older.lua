--- The older entries of a long transcript. They are fetched a page at a time, and each page is put above what is shown slice by
--- slice, so that Neovim is free in between: it decodes no reply and makes no folds of more than it can in a few milliseconds.
local buffers = require('fermata.buffer')
local client = require('fermata.client')
local notify = require('fermata.notify')
local refs_of = require('fermata.refs')

local M = {}

local slice = 200 -- lines at a time
local interval = 5 -- milliseconds between two slices
local page_bytes = 60000 -- of text that a page is to have
local page_most = 1000 -- entries of a page

--- Puts a page above what is shown, a slice at a time from the newest on.
---@param t fermata.Transcript
---@param edit fun(t: fermata.Transcript, change: fun()) changes the buffer
---@param lines string[]
---@param refs fermata.Ref[] of these lines
---@param done fun()
local function put(t, edit, lines, refs, done)
  refs_of.join(refs, t.refs)
  local left, last = #lines, #refs
  local function one()
    if not vim.api.nvim_buf_is_loaded(t.buf) then
      return
    end
    if buffers.locked(t.buf) then
      vim.defer_fn(one, interval)
      return
    end
    local first = math.max(0, left - slice)
    local all = {}
    local from = last
    while from > 0 and refs[from].line > first do
      from = from - 1
    end
    for i = from + 1, last do
      local ref = refs[i]
      table.insert(all, { line = ref.line - first, seq = ref.seq, turn = ref.turn, level = ref.level })
    end
    local more = left - first
    for _, ref in ipairs(t.refs) do
      ref.line = ref.line + more
      table.insert(all, ref)
    end
    t.refs, t.above, t.seam, t.rendered = all, t.above + more, t.seam + more, t.rendered + more
    edit(t, function()
      vim.api.nvim_buf_set_lines(t.buf, 0, 0, false, vim.list_slice(lines, first + 1, left))
    end)
    left, last = first, from
    if left > 0 then
      vim.defer_fn(one, interval)
    else
      done()
    end
  end
  one()
end

--- Fetches the entries before those that are shown, until all are there.
---@param t fermata.Transcript
---@param edit fun(t: fermata.Transcript, change: fun()) changes the buffer
---@param done fun() once all are there
function M.fill(t, edit, done)
  if t.since == 0 or t.filling then
    return
  end
  t.filling = 'asked'
  local params = { session = t.session, since = -t.page, ['until'] = t.since + 1 }
  client.request(t.root, 'fermata/transcript/render', params, function(err, result)
    t.filling = nil
    if not vim.api.nvim_buf_is_loaded(t.buf) then
      return
    end
    if err then
      notify.failed(err)
      return
    end
    local lines = vim.split(result.text, '\n', { plain = true })
    table.remove(lines) -- behind the last line's end
    local refs = {} ---@type fermata.Ref[]
    refs_of.add(refs, lines, result.lines, 0)
    t.page = math.floor(t.page * page_bytes / math.max(1, #result.text))
    t.page = math.max(1, math.min(page_most, t.page))
    t.filling = 'put'
    put(t, edit, lines, refs, function()
      t.since, t.seam, t.filling = result.since, 0, nil
      if t.since > 0 then
        M.fill(t, edit, done)
      else
        done()
      end
    end)
  end)
end

return M
