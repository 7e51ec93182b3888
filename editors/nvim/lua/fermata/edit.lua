--- Edits of open buffers that the daemon asks for. Each is one undo step, marks the buffer modified and saves nothing. An edit
--- for another text than the buffer has now is refused: what the user typed meanwhile is not overwritten.
local client = require('fermata.client')

local M = {}

---@param buf integer
local function break_undo(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels -- only the local value: the global one is the user's
end

---@param change lsp.TextDocumentEdit
---@return string? why it cannot be made
local function check(change)
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return 'the file is not open in the editor any more'
  end
  if not vim.bo[buf].modifiable then
    return 'the buffer is not modifiable'
  end
  local version = change.textDocument.version
  if version and version ~= vim.NIL and vim.lsp.util.buf_versions[buf] ~= version then
    return 'the buffer was changed in the editor meanwhile; read the file again'
  end
end

---@param params lsp.ApplyWorkspaceEditParams
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params)
  local changes = params.edit.documentChanges
  if not changes then
    return { applied = false, failureReason = 'the edit has no documentChanges' }
  end
  for _, change in ipairs(changes) do
    local why = check(change)
    if why then
      return { applied = false, failureReason = why }
    end
  end
  for _, change in ipairs(changes) do
    local buf = vim.uri_to_bufnr(change.textDocument.uri)
    break_undo(buf)
    vim.lsp.util.apply_text_edits(change.edits, buf, client.encoding)
    break_undo(buf)
  end
  return { applied = true }
end

return M
