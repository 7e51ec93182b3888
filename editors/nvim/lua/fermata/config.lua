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

--- What a value must be, if it is not.
---@alias fermata.Rule fun(value: any): string?

---@param ok boolean
---@param must string
---@return string?
local function unless(ok, must)
  return not ok and must or nil
end

---@type fermata.Rule
local function text(value)
  return unless(type(value) == 'string', 'a string')
end

---@param ... string types of the values
---@return fun(value: table): boolean
local function holds(...)
  local kinds = { ... }
  return function(value)
    for _, one in pairs(value) do
      if not vim.list_contains(kinds, type(one)) then
        return false
      end
    end
    return true
  end
end

---@type fermata.Rule
local function texts(value)
  return unless(vim.islist(value) and holds('string')(value), 'a list of strings')
end

---@type fermata.Rule
local function variables(value)
  local named = type(value) == 'table' and (next(value) == nil or not vim.islist(value))
  return unless(named and holds('string', 'number')(value), 'a table of names and their values')
end

---@param least integer
---@return fermata.Rule
local function whole(least)
  return function(value)
    local ok = type(value) == 'number' and value >= least and value % 1 == 0
    return unless(ok, ('a whole number from %d on'):format(least))
  end
end

local types = {
  path = text,
  args = texts,
  env = variables,
  root_markers = texts,
  keys = {
    stop = function(value)
      return unless(value == false or type(value) == 'string' and value ~= '', 'a key or false')
    end,
  },
  inline = {
    lines = function(value)
      local share = type(value) == 'number' and value > 0 and value < 1
      return unless(share or not whole(1)(value), 'a whole number from 1 on, or a share below 1')
    end,
    width = whole(10),
  },
  lane = { width = whole(10), height = whole(1) },
}

---@param want fermata.Rule|table or a table of options
---@param value any
---@param name string
---@param problems string[]
local function check(want, value, name, problems)
  if type(want) == 'table' then
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
  local must = want(value)
  if must then
    table.insert(problems, ('%s is %s; it must be %s'):format(name, vim.inspect(value), must))
  end
end

local cached ---@type fermata.Config?
local cached_problems ---@type string[]

local function read()
  local given = vim.g.fermata
  cached_problems = {}
  if type(given) == 'function' then
    local ok, got = pcall(given)
    if not ok then
      table.insert(cached_problems, 'vim.g.fermata is a function that fails: ' .. tostring(got))
    end
    given = ok and got or nil
  end
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
