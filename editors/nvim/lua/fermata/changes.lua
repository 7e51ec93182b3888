--- What a turn changed, in Neovim's own diff: before on the left, the file as it is now on the right, a tab for each file. And
--- back again: a revert leaves alone what was changed since, and can be undone.
local buffers = require('fermata.buffer')
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')
local turns = require('fermata.turns')

local M = {}

local reverted = {} ---@type table<string, string> the last revert by root

---@param turn fermata.Turn?
---@return string? root
local function root_of(turn)
  return turn and turn.root or client.root_of(vim.api.nvim_get_current_buf())
end

---@param turn fermata.Turn
local function has_id(turn)
  return turn.id ~= nil
end

---@param name string
---@param text string
---@param path string for the filetype
---@return integer
local function scratch(name, text, path)
  local buf = buffers.named(name)
  text = text:gsub('^\239\187\191', ''):gsub('\n$', '') -- as Neovim reads a file
  local lines = vim.split(text, '\n', { plain = true })
  local _, ends = text:gsub('\r\n', '')
  if ends > 0 and ends == #lines - 1 then
    for i, line in ipairs(lines) do
      lines[i] = line:gsub('\r$', '')
    end
  end
  buffers.fill(buf, lines)
  vim.bo[buf].bufhidden = 'wipe'
  local filetype = vim.filetype.match({ filename = path, buf = buf })
  if filetype then
    vim.bo[buf].syntax = filetype
  end
  return buf
end

---@param turn string
---@param file table
local function diff(turn, file)
  if file.binary or not (file.beforeText or file.afterText) then
    notify.info(('%s is no text; it was %s'):format(file.path, file.state))
    return
  end
  local function name(of)
    return ('fermata://%s/%s/%s'):format(of, turn, file.path)
  end
  local left = scratch(name('before'), file.beforeText or '', file.path)
  vim.cmd.tabnew()
  local empty = vim.api.nvim_get_current_buf()
  if file.state ~= 'deleted' and file.now ~= 'reverted' and file.uri then
    vim.cmd.edit(vim.fn.fnameescape(vim.uri_to_fname(file.uri)))
  else
    vim.api.nvim_win_set_buf(0, scratch(name('after'), file.afterText or '', file.path))
  end
  if vim.api.nvim_buf_is_valid(empty) and empty ~= vim.api.nvim_get_current_buf() then
    pcall(vim.api.nvim_buf_delete, empty, {})
  end
  vim.cmd.diffthis()
  vim.cmd('leftabove vertical sbuffer ' .. left)
  vim.cmd.diffthis()
  vim.cmd.wincmd('l')
end

---@param file table
---@return string
local function describe(file)
  local now = file.now == 'changed' and ' · changed since' or file.now == 'reverted' and ' · reverted' or ''
  local by = file.by == 'command' and ' · by a command' or ''
  return ('%s · %s · +%d -%d%s%s'):format(file.path, file.state, file.added or 0, file.removed or 0, by, now)
end

--- Lets the user pick of the files that a turn changed: all, or one. One that is alone needs no question if it is not to be
--- written.
---@param turn fermata.Turn? nil: the one at the cursor, else the last one with changes
---@param question { prompt: string, kind: string, all: string, sure?: boolean } all says what follows "All 3 files"
---@param done fun(files: table[], changes: table, root: string?) the files that were picked
local function pick(turn, question, done)
  turn = turn or turns.near(has_id)
  local root = root_of(turn)
  client.request(root, 'fermata/turn/changes', { turn = turn and turn.id }, function(err, changes)
    if err then
      notify.failed(err)
      return
    end
    local files = changes.files
    if #files == 0 then
      notify.info('this turn changed no file')
      return
    elseif #files == 1 and not question.sure then
      done(files, changes, root)
      return
    end
    local all = { all = true }
    vim.ui.select(#files > 1 and vim.list_extend({ all }, files) or files, {
      prompt = question.prompt,
      kind = question.kind,
      format_item = function(file)
        return file.all and ('All %d files%s'):format(#files, question.all) or describe(file)
      end,
    }, function(choice)
      if choice then
        done(choice.all and files or { choice }, changes, root)
      end
    end)
  end)
end

--- Shows the changes of a turn.
---@param turn? fermata.Turn nil: the one at the cursor, else the last one with changes
function M.open(turn)
  pick(turn, { prompt = 'Changes', kind = 'fermata.change', all = ', a tab for each' }, function(files, changes)
    for _, file in ipairs(files) do
      diff(changes.turn, file)
    end
  end)
end

---@param result table of fermata/turn/revert
---@param what string
local function told(result, what)
  local done, kept = 0, {}
  for _, file in ipairs(result.files) do
    if file.state == 'reverted' then
      done = done + 1
    else
      table.insert(kept, ('%s: %s'):format(file.path, file.why or 'kept'))
    end
  end
  vim.cmd('silent! checktime')
  local text = ('%s in %s'):format(what, phrase.count(done, 'file'))
  if #kept > 0 then
    notify.warn(text .. '; left alone:\n' .. table.concat(kept, '\n'))
  else
    notify.info(text .. '; :Fermata revert undo takes it back')
  end
end

--- Takes back the last revert.
function M.undo()
  local root = root_of(nil)
  local id = reverted[root or '']
  local params = id and { revert = id } or { undo = true, session = require('fermata.session').current(root) }
  client.request(root, 'fermata/turn/revert', params, function(err, result)
    if err then
      notify.failed(err)
    else
      reverted[root or ''] = result.revert
      told(result, 'the revert was undone')
    end
  end)
end

--- Reverts files of a turn, or all of them.
---@param turn? fermata.Turn nil: the one at the cursor, else the last one with changes
function M.revert(turn)
  local question = { prompt = 'Revert', kind = 'fermata.revert', all = '', sure = true }
  pick(turn, question, function(files, changes, root)
    local params = { turn = changes.turn }
    if #files < #changes.files then
      params.paths = { files[1].path }
    end
    client.request(root, 'fermata/turn/revert', params, function(err, result)
      if err then
        notify.failed(err)
      else
        reverted[root or ''] = result.revert
        told(result, 'reverted')
      end
    end)
  end)
end

return M
