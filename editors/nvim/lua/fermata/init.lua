--- What other plugins and a configuration may call. Everything here loads what it needs when it is called.
local M = {}

--- Not needed: it only merges what it is given into vim.g.fermata, for plugin managers that call it.
---@param options? fermata.Options
function M.setup(options)
  vim.g.fermata = vim.tbl_deep_extend('force', vim.g.fermata or {}, options or {})
  require('fermata.config').reset()
end

--- Asks. Without a text an input opens. `line1` and `line2` (1-based, both included) are the lines that are asked about.
---@param text? string
---@param options? { line1?: integer, line2?: integer, new?: boolean }
function M.ask(text, options)
  require('fermata.ask').ask(text, options)
end

--- Stops the turn at the cursor, else the newest that runs, and opens the lane.
function M.stop()
  require('fermata.turns').stop()
end

--- Replaces the course of the turn at the cursor, else of the newest. Without a text the lane opens.
---@param text? string
function M.redirect(text)
  require('fermata.lane').redirect(text)
end

--- What runs, in a few words for a statusline; '' when nothing does.
---@return string
function M.status()
  return require('fermata.status').text()
end

return M
