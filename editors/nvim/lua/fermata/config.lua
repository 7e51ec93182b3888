--- vim.g.fermata, checked. A wrong name or type is an error that says what is right.
local M = {}

---@class fermata.Options
---@field path? string the fermata binary: an absolute path, or one that begins with ~
---@field args? string[] arguments of `fermata lsp`, for example { '--model', 'ollama/qwen3' }
---@field env? table<string, string> variables of the daemon's environment
---@field root_markers? string[] what marks a project's root
---@field keys? fermata.Keys
---@field inline? fermata.InlineOptions
---@field lane? fermata.LaneOptions

---@class fermata.Keys
---@field stop? string|false normal mode key in the buffer where a turn runs; false for none

---@class fermata.InlineOptions
---@field lines? number how many lines of an answer are shown: a number from 1, or below 1 a share of the window's height
---@field width? integer the longest line, in columns

---@class fermata.LaneOptions
---@field width? integer columns, at most
---@field height? integer lines of the partial answer, at most

---@class fermata.Config
local defaults = {
  path = nil, ---@type string?
  args = {}, ---@type string[]
  env = {}, ---@type table<string, string>
  root_markers = { '.git', '.hg', '.jj' },
  keys = { stop = '<C-c>' },
  inline = { lines = 0.4, width = 100 },
  lane = { width = 90, height = 12 },
}

local types = {
  path = 'string',
  args = 'table',
  env = 'table',
  root_markers = 'table',
  keys = { stop = { 'string', false } },
  inline = { lines = 'number', width = 'number' },
  lane = { width = 'number', height = 'number' },
}

---@param want any a type's name, a list of those or a table of options
---@param value any
---@param name string
---@param problems string[]
local function check(want, value, name, problems)
  if type(want) == 'table' and not vim.islist(want) then
    if type(value) ~= 'table' then
      table.insert(problems, ('%s is a %s; it must be a table'):format(name, type(value)))
      return
    end
    for key, inner in pairs(value) do
      local path = name .. '.' .. tostring(key)
      if want[key] == nil then
        local known = vim.tbl_keys(want)
        table.sort(known)
        table.insert(problems, ('%s is not an option; there are: %s'):format(path, table.concat(known, ', ')))
      else
        check(want[key], inner, path, problems)
      end
    end
    return
  end
  for _, one in ipairs(type(want) == 'table' and want or { want }) do
    if value == one or type(value) == one then
      return
    end
  end
  local names = type(want) == 'table' and table.concat(vim.tbl_map(tostring, want), ' or ') or want
  table.insert(problems, ('%s is %s; it must be %s'):format(name, vim.inspect(value), names))
end

local cached ---@type fermata.Config?
local cached_problems ---@type string[]

local function read()
  local given = vim.g.fermata
  if type(given) == 'function' then
    given = given()
  end
  cached_problems = {}
  if given ~= nil then
    check(types, given, 'vim.g.fermata', cached_problems)
  end
  cached = vim.deepcopy(defaults)
  if #cached_problems == 0 and given ~= nil then
    cached = vim.tbl_deep_extend('force', cached, given)
  end
end

--- The configuration. What is wrong in it is said once, and the defaults are used.
---@return fermata.Config
function M.get()
  if not cached then
    read()
    if #cached_problems > 0 then
      require('fermata.notify').error(table.concat(cached_problems, '\n'))
    end
  end
  return cached
end

--- What is wrong in the configuration, for the health page.
---@return string[]
function M.problems()
  read()
  return cached_problems
end

--- Reads vim.g.fermata anew when it is next asked for.
function M.reset()
  cached = nil
end

return M
