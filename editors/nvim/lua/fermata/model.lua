--- Which model the turns of a project use from now on, and what their tools may do without a question.
local client = require('fermata.client')
local notify = require('fermata.notify')
local session = require('fermata.session')

local M = {}

---@param root string?
---@param name string
local function use(root, name)
  session.use_model(root, name)
  notify.info(('the next turn uses %s'):format(name))
end

--- Sets the model, or lets the user pick one of those that the daemon knows.
---@param name? string provider/model
function M.select(name)
  local root = client.root_of(vim.api.nvim_get_current_buf())
  if name and name ~= '' then
    use(root, name)
    return
  end
  client.request(root, 'fermata/model/list', {}, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    local now = session.model(root) or result.model
    vim.ui.select(result.models, {
      prompt = 'Model',
      kind = 'fermata.model',
      format_item = function(one)
        return one.name .. (one.name == now and ' · used now' or '') .. (one.from and (' · ' .. one.from) or '')
      end,
    }, function(one)
      if one then
        use(root, one.name)
      end
    end)
  end)
end

--- Sets the permission mode of the session, or says which it is. It lasts as long as the daemon.
---@param name string '' only asks
function M.mode(name)
  local root = client.root_of(vim.api.nvim_get_current_buf())
  session.for_question(root, false, function(err, id)
    if err then
      notify.failed(err)
      return
    end
    local params = { session = id, mode = name ~= '' and name or nil }
    client.request(root, 'fermata/session/mode', params, function(failure, result)
      if failure then
        notify.failed(failure)
      else
        notify.info(('the permission mode is %s'):format(result.mode))
      end
    end)
  end)
end

return M
