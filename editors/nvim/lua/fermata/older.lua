--- The older entries of a long transcript: they are put above what is shown bit by bit, so that Neovim is free in between.
local M = {}

local slice = 400 -- lines at a time
local interval = 5 -- milliseconds between two slices

--- Puts older entries above those that are shown, a slice at a time from the newest on.
---@param t fermata.Transcript
---@param edit fun(t: fermata.Transcript, change: fun()) changes the buffer
---@param lines string[]
---@param refs fermata.Ref[] of these lines
function M.put(t, edit, lines, refs)
  local left, last = #lines, #refs
  local function one()
    if not vim.api.nvim_buf_is_loaded(t.buf) then
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
    t.refs, t.above, t.rendered = all, t.above + more, t.rendered + more
    edit(t, function()
      vim.api.nvim_buf_set_lines(t.buf, 0, 0, false, vim.list_slice(lines, first + 1, left))
    end)
    left, last = first, from
    if left > 0 then
      vim.defer_fn(one, interval)
    else
      t.partial, t.filling = false, false
    end
  end
  one()
end

return M
