--- Buffers of our own: they have a name, are of no file and are written by us alone.
local M = {}

--- The buffer of a name, made when there is none, or taken over from a session file.
---@param name string
---@return integer
function M.named(name)
  local buf
  for _, one in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(one) == name then
      buf = one
    end
  end
  if not buf then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, name)
  end
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].buflisted = false
  vim.fn.bufload(buf)
  vim.bo[buf].swapfile = false
  vim.bo[buf].modifiable = false
  return buf
end

--- Whether no text may be changed now: Neovim carries out an expression, which may itself wait for a key.
---@param buf integer
---@return boolean
function M.locked(buf)
  local _, why = pcall(vim.api.nvim_buf_set_lines, buf, 0, 0, false, {})
  return tostring(why):find('E565', 1, true) ~= nil
end

--- Gives a buffer its text.
---@param buf integer
---@param lines string[]
function M.fill(buf, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

return M
