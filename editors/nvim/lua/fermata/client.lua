--- The daemon of each root: started with the first request for it, told of every open file below the root, started anew with
--- the next request after it died. Everything that is said to a daemon goes through here.
local binary = require('fermata.binary')
local config = require('fermata.config')
local notify = require('fermata.notify')

local M = {}

--- The version of the fermata/* protocol that this plugin speaks.
M.protocol = 1

---@class fermata.Daemon
---@field root string? absolute; nil for files that belong to no project
---@field id integer the id of the LSP client
---@field ready boolean
---@field waiting fun(client: vim.lsp.Client?, why: string?)[]
---@field leaving boolean it was told to end

local none = '' -- the key of the daemon without a root
local daemons = {} ---@type table<string, fermata.Daemon>

--- The LSP positions that are spoken: those of most servers, because Neovim warns of a buffer with several encodings.
M.encoding = 'utf-16'

local has_011 = vim.fn.has('nvim-0.11') == 1

--- The folder that a buffer's turns work in: its project, else the current folder, else its own; never the home folder or /.
---@param buf integer
---@return string?
function M.root_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local function fit(path)
    if not path or path == '' then
      return nil
    end
    path = vim.uv.fs_realpath(path) or path
    if path == vim.uv.fs_realpath(vim.uv.os_homedir() or '') or path:match('^/$') or path:match('^%a:[\\/]$') then
      return nil
    end
    return path
  end
  local cwd = vim.fn.getcwd()
  if name == '' or name:match('^%a[%w+.-]+://') or vim.bo[buf].buftype ~= '' then
    return fit(vim.fs.root(cwd, config.get().root_markers) or cwd)
  end
  local marked = vim.fs.root(name, config.get().root_markers)
  if marked then
    return vim.uv.fs_realpath(marked) or marked
  end
  local real = vim.uv.fs_realpath(name) or name
  local here = fit(cwd)
  if here and vim.startswith(real, here .. '/') then
    return here
  end
  return fit(vim.fs.dirname(real))
end

--- Whether a daemon is told of a buffer: an ordinary file below its root.
---@param buf integer
---@param root string?
local function belongs(buf, root)
  if not root or not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= '' then
    return false
  end
  local name = vim.api.nvim_buf_get_name(buf)
  if name == '' or name:match('^%a[%w+.-]+://') then
    return false
  end
  local real = vim.uv.fs_realpath(name) or (vim.uv.fs_realpath(vim.fs.dirname(name)) or vim.fs.dirname(name)) .. '/'
  return vim.startswith(real, root .. '/') or vim.startswith(name, root .. '/')
end

---@param daemon fermata.Daemon
---@param buf integer
local function attach(daemon, buf)
  if belongs(buf, daemon.root) and not vim.lsp.buf_is_attached(buf, daemon.id) then
    vim.lsp.buf_attach_client(buf, daemon.id)
  end
end

---@param daemon fermata.Daemon
local function attach_all(daemon)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    attach(daemon, buf)
  end
end

local watching = false

--- Every file that is opened or named later is told to the daemons that run.
local function watch()
  if watching then
    return
  end
  watching = true
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufWinEnter' }, {
    group = vim.api.nvim_create_augroup('fermata.client', {}),
    callback = function(args)
      for _, daemon in pairs(daemons) do
        if daemon.ready then
          attach(daemon, args.buf)
        end
      end
    end,
  })
end

local function capabilities()
  local c = vim.lsp.protocol.make_client_capabilities()
  c.general.positionEncodings = { M.encoding }
  c.experimental = { fermata = { protocol = M.protocol } }
  c.workspace.workspaceEdit.documentChanges = true -- edit.lua checks the versions
  c.workspace.codeLens = nil -- what a lens would say is drawn by inline.lua
  return c
end

---@param daemon fermata.Daemon
---@param client vim.lsp.Client?
---@param why string?
local function answer_waiting(daemon, client, why)
  local waiting = daemon.waiting
  daemon.waiting = {}
  for _, done in ipairs(waiting) do
    done(client, why)
  end
end

--- What Neovim tells when the program has ended. A crash is told once, by us: Neovim's own message would only say that the
--- client quit.
---@param daemon fermata.Daemon
---@param code integer
---@param signal integer
local function ended(daemon, code, signal)
  if daemons[daemon.root or none] == daemon then
    daemons[daemon.root or none] = nil
  end
  local crashed = not daemon.leaving and vim.v.exiting == vim.NIL
  if #daemon.waiting > 0 then
    local why = ('the daemon ended with exit status %d before it was ready; see :checkhealth fermata'):format(code)
    answer_waiting(daemon, nil, why)
  elseif crashed then
    local how = signal ~= 0 and ('signal ' .. signal) or ('exit status ' .. code)
    notify.warn(('the daemon ended (%s); all is kept; the next question starts it'):format(how))
  end
  require('fermata.turns').abandon(daemon.root)
  require('fermata.transcript').disconnected(daemon.root)
end

---@param daemon fermata.Daemon
---@param client vim.lsp.Client
---@param result lsp.InitializeResult
local function initialized(daemon, client, result)
  local experimental = result.capabilities.experimental
  local spoken = type(experimental) == 'table'
    and type(experimental.fermata) == 'table'
    and experimental.fermata.protocol
  if spoken ~= M.protocol then
    local why = ('the daemon speaks protocol %s, this plugin %d: update the older of the two'):format(
      spoken or '?',
      M.protocol
    )
    answer_waiting(daemon, nil, why)
    daemon.leaving = true
    client.rpc.terminate()
    return
  end
  client.server_capabilities.codeLensProvider = nil
  daemon.ready = true
  attach_all(daemon)
  answer_waiting(daemon, client)
end

---@param root string?
---@return fermata.Daemon?
---@return string? why there is none
local function start(root)
  local path, why = binary.find(root)
  if not path then
    return nil, why
  end
  watch()
  local daemon = { root = root, ready = false, waiting = {}, leaving = false } ---@type fermata.Daemon
  local options = config.get()
  local command = vim.list_extend({ path, 'lsp' }, options.args)
  local lsp = {
    name = 'fermata',
    cmd = function(dispatchers)
      local own = setmetatable({
        on_exit = function(code, signal)
          dispatchers.on_exit(0, 0)
          vim.schedule(function()
            ended(daemon, code, signal)
          end)
        end,
      }, { __index = dispatchers })
      return vim.lsp.rpc.start(command, own, { cwd = root, env = next(options.env) and options.env or nil })
    end,
    root_dir = root,
    workspace_folders = root and { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } } or nil,
    capabilities = capabilities(),
    offset_encoding = M.encoding,
    flags = { debounce_text_changes = 20 },
    handlers = {
      ['fermata/event'] = function(_, event)
        require('fermata.events').handle(event, root)
      end,
      ['fermata/permission'] = function(_, question)
        return require('fermata.permission').ask(question)
      end,
      ['workspace/applyEdit'] = function(_, params)
        return require('fermata.edit').apply(params)
      end,
      ['$/cancelRequest'] = function() end, -- a question that a stop has answered closes with the event
    },
    commands = require('fermata.actions'),
    on_init = function(client, result)
      initialized(daemon, client, result)
    end,
  }
  local id, failure
  if has_011 then
    local ok, got = pcall(vim.lsp.start, lsp, {
      attach = false,
      reuse_client = function()
        return false
      end,
    })
    id, failure = ok and got or nil, not ok and got or nil
  else
    local ok, got, message = pcall(vim.lsp.start_client, lsp)
    id, failure = ok and got or nil, ok and message or got
  end
  if not id then
    return nil, ('%s could not be started: %s'):format(path, failure or 'unknown')
  end
  daemon.id = id
  daemons[root or none] = daemon
  return daemon
end

--- Gives the client of a root once it is ready; starts the daemon if none runs. When there is none, client is nil and why says
--- so.
---@param root string?
---@param done fun(client: vim.lsp.Client?, why: string?)
function M.with(root, done)
  local daemon, why = daemons[root or none], nil
  if not daemon then
    daemon, why = start(root)
  end
  if not daemon then
    done(nil, why)
    return
  end
  local client = vim.lsp.get_client_by_id(daemon.id)
  if daemon.ready and client then
    done(client)
    return
  end
  table.insert(daemon.waiting, done)
end

--- Sends a request to the daemon of a root. handler runs with an error or a result, never with both nil; a daemon that dies
--- meanwhile gives an error. Its own result tells how to cancel the request.
---@param root string?
---@param method string
---@param params table
---@param handler fun(err: lsp.ResponseError?, result: any)
---@return fun() cancel
function M.request(root, method, params, handler)
  local sent, cancelled, client = nil, false, nil
  M.with(root, function(got, why)
    client = got
    if cancelled or not client then
      handler({ code = 0, message = cancelled and 'cancelled' or why or 'there is no daemon' })
      return
    end
    if next(params) == nil then
      params = vim.empty_dict()
    end
    local function reply(err, result)
      handler(err, result == nil and not err and vim.NIL or result)
    end
    local ok
    if has_011 then
      ok, sent = client:request(method, params, reply, 0)
    else
      ok, sent = client.request(method, params, reply, 0)
    end
    if not ok then
      handler({ code = 0, message = 'the daemon has ended' })
    end
  end)
  return function()
    cancelled = true
    if not sent or not client then
      return
    end
    if has_011 then
      client:cancel_request(sent)
    else
      client.cancel_request(sent)
    end
  end
end

--- Whether a daemon runs for a root.
---@param root string?
---@return boolean
function M.runs(root)
  local daemon = daemons[root or none]
  return daemon ~= nil and daemon.ready
end

--- The roots with a daemon.
---@return string[]
function M.roots()
  return vim.tbl_keys(daemons)
end

--- Ends the daemons; the turns that run are stopped and kept.
function M.stop_all()
  for _, daemon in pairs(daemons) do
    daemon.leaving = true
    local client = vim.lsp.get_client_by_id(daemon.id)
    if client then
      if has_011 then
        client:stop()
      else
        client.stop()
      end
    end
  end
end

return M
