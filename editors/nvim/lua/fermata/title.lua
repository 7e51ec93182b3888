--- Renames and deletes sessions.
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')
local session = require('fermata.session')

local M = {}

--- The session that a command is about: that of the transcript it is given in, else the one that was used last.
---@return string? session
---@return string? root
local function here()
  local buf = vim.api.nvim_get_current_buf()
  local t = require('fermata.transcript').of(buf)
  if t then
    return t.session, t.root
  end
  local root = client.root_of(buf)
  return session.current(root), root
end

--- Gives a session another title. Without one an input asks for it.
---@param text? string
function M.rename(text)
  local id, root = here()
  if not id then
    notify.info('there is no session here: :Fermata sessions picks one')
    return
  end
  local function send(title)
    title = vim.trim(title or '')
    if title == '' then
      return
    end
    client.request(root, 'fermata/session/rename', { session = id, title = title }, function(err, result)
      if err then
        notify.failed(err)
        return
      end
      require('fermata.transcript').renamed(id)
      notify.info(('the session is called %s'):format(phrase.short(result.title, 60)))
    end)
  end
  if text and text ~= '' then
    send(text)
  else
    vim.ui.input({ prompt = 'Title of the session: ' }, send)
  end
end

--- Deletes a session for good, once the user has said yes to its title.
function M.delete()
  local id, root = here()
  if not id then
    notify.info('there is no session here: :Fermata sessions picks one')
    return
  end
  client.request(root, 'fermata/session/open', { session = id, since = 2147483647 }, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    local info = result.session
    local title = info.title ~= '' and phrase.short(info.title, 60) or 'without a title'
    local yes = ('Delete it for good: all %s, also their model inputs'):format(phrase.count(info.turns, 'turn'))
    vim.ui.select({ 'Keep it', yes }, { prompt = ('Session “%s”'):format(title) }, function(choice)
      if choice ~= yes then
        return
      end
      client.request(root, 'fermata/session/delete', { session = id }, function(failed, deleted)
        if failed then
          notify.failed(failed)
          return
        end
        if session.current(root) == id then
          session.use(root, nil)
        end
        require('fermata.transcript').deleted(id)
        notify.info(
          ('deleted: %s, %s'):format(phrase.count(deleted.turns, 'turn'), phrase.count(deleted.requests, 'model input'))
        )
      end)
    end)
  end)
end

return M
