--- The highlight groups. All are links that a colour scheme or the user may replace, and nothing is told by colour alone.
local M = {}

M.groups = {
  FermataAnswer = 'Comment', -- an answer under the line where it was asked, and in the lane
  FermataControl = 'DiagnosticWarn', -- the stop control
  FermataKey = 'Special', -- the keys that are named in controls
  FermataStopped = 'DiagnosticHint', -- Stopped here
  FermataFailed = 'DiagnosticError', -- a turn that failed, a model input that does not verify
  FermataDone = 'DiagnosticOk', -- a turn that was completed, a model input that verifies
  FermataDetail = 'NonText', -- counts, tools' fates, hints
  FermataPlaceholder = 'NonText', -- the text of an empty input
}

local defined = false

--- Defines the groups; a colour scheme that clears them gets them back.
function M.define()
  if defined then
    return
  end
  defined = true
  local function set()
    for group, link in pairs(M.groups) do
      vim.api.nvim_set_hl(0, group, { link = link, default = true })
    end
  end
  set()
  vim.api.nvim_create_autocmd('ColorScheme', {
    group = vim.api.nvim_create_augroup('fermata.highlight', {}),
    callback = set,
  })
end

return M
