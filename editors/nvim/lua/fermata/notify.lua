--- Messages to the user. Each begins with the plugin's name, so that it is clear who speaks.
local M = {}

---@param text string
function M.info(text)
  vim.notify('fermata: ' .. text, vim.log.levels.INFO)
end

---@param text string
function M.warn(text)
  vim.notify('fermata: ' .. text, vim.log.levels.WARN)
end

---@param text string
function M.error(text)
  vim.notify('fermata: ' .. text, vim.log.levels.ERROR)
end

--- Says why a request failed: the message and, if the daemon has one, what to do.
---@param err lsp.ResponseError
function M.failed(err)
  local hint = type(err.data) == 'table' and err.data.hint
  M.error(err.message .. (hint and hint ~= '' and ('; ' .. hint) or ''))
end

return M
