--- Finds the fermata binary: where the configuration says, else on PATH, else bin/fermata of the checkout that this plugin is
--- in. It is never taken from the project that is edited: a repository must not make Neovim run a program of its own.
local M = {}

local name = vim.fn.has('win32') == 1 and 'fermata.exe' or 'fermata'

---@param path string
local function real(path)
  return vim.uv.fs_realpath(path) or path
end

---@param path string
---@param folder string?
local function below(path, folder)
  return folder ~= nil and vim.startswith(real(path), real(folder):gsub('[\\/]+$', '') .. '/')
end

---@param path string
local function absolute(path)
  return path:match('^/') ~= nil or path:match('^%a:[\\/]') ~= nil
end

--- The checkout's own binary: editors/nvim/lua/fermata/binary.lua is four folders below it.
local function beside()
  local here = debug.getinfo(1, 'S').source:sub(2)
  return vim.fs.normalize(vim.fn.fnamemodify(here, ':p:h:h:h:h:h')) .. '/bin/' .. name
end

--- The binary for a project, or nil and why there is none.
---@param root string? the project's root
---@return string? path
---@return string from who named it, or why there is none
function M.find(root)
  local given = require('fermata.config').get().path
  if given then
    local path = vim.fs.normalize(given)
    if not absolute(path) then
      return nil, ('vim.g.fermata.path is %q: it must be an absolute path'):format(given)
    end
    if vim.fn.executable(path) ~= 1 then
      return nil, ('vim.g.fermata.path is %q: there is no program'):format(given)
    end
    return path, 'vim.g.fermata.path'
  end
  local separator = vim.fn.has('win32') == 1 and ';' or ':'
  for _, folder in ipairs(vim.split(vim.env.PATH or '', separator, { plain = true, trimempty = true })) do
    local path = vim.fs.normalize(folder) .. '/' .. name
    if absolute(folder) and vim.fn.executable(path) == 1 and not below(path, root) then
      return path, 'PATH'
    end
  end
  local path = beside()
  if vim.fn.executable(path) == 1 then
    return path, 'the checkout of the plugin'
  end
  return nil, 'fermata is not on PATH: install it (make install), or set vim.g.fermata = { path = … }'
end

return M
