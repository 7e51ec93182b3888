--- :checkhealth fermata: what is wrong and how to mend it.
local M = {}

local function neovim()
  if vim.fn.has('nvim-0.10.4') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('Neovim is too old', { 'fermata needs 0.10.4 or newer' })
  end
end

local function configuration()
  local problems = require('fermata.config').problems()
  for _, problem in ipairs(problems) do
    vim.health.error(problem, { ':help fermata-options' })
  end
  if #problems == 0 then
    vim.health.ok(vim.g.fermata and 'vim.g.fermata is right' or 'vim.g.fermata is not set, which is fine')
  end
end

--- What `fermata doctor` says: configuration, model, key, database.
---@param path string
local function doctor(path)
  local ok, process = pcall(vim.system, { path, 'doctor' }, { text = true, timeout = 30000, env = { NO_COLOR = '1' } })
  if not ok then
    vim.health.error('the binary does not run: ' .. tostring(process), { 'build it for this system: make build' })
    return
  end
  local done = process:wait()
  for line in vim.gsplit(done.stdout or '', '\n', { trimempty = true }) do
    local verdict, rest = line:match('^(%S+)%s+(.*)$')
    if verdict == 'ok' then
      vim.health.ok(rest)
    elseif verdict == 'note' then
      vim.health.info(rest)
    elseif verdict == 'BAD' then
      vim.health.error(rest, { 'run: fermata doctor' })
    end
  end
  if done.code ~= 0 and (done.stdout or '') == '' then
    vim.health.error('fermata doctor: ' .. vim.trim(done.stderr or ''), { 'run it in a terminal' })
  end
end

---@param root string?
local function protocol(root)
  local client = require('fermata.client')
  local answered, why
  client.with(root, function(got, reason)
    answered, why = got or false, reason
  end)
  vim.wait(10000, function()
    return answered ~= nil
  end, 20)
  if answered then
    local info = answered.server_info or {}
    vim.health.ok(('the daemon answers: %s, protocol %d'):format(info.version or 'unknown version', client.protocol))
  else
    vim.health.error(why or 'the daemon does not answer', { 'run: fermata doctor', 'see :LspLog' })
  end
end

function M.check()
  vim.health.start('fermata: Neovim and configuration')
  neovim()
  configuration()
  vim.health.start('fermata: the program')
  local root = require('fermata.client').root_of(vim.api.nvim_get_current_buf())
  local path, from = require('fermata.binary').find(root)
  if not path then
    vim.health.error(from, {
      'in the checkout: make install',
      "or vim.g.fermata = { path = '/absolute/path/to/fermata' }",
    })
    return
  end
  vim.health.ok(('%s (%s)'):format(path, from))
  doctor(path)
  protocol(root)
end

return M
