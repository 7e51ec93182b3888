--- What stopping comes to: a page of figures, each with its definition, computed by the daemon from the transcript.
local buffers = require('fermata.buffer')
local client = require('fermata.client')
local notify = require('fermata.notify')
local phrase = require('fermata.phrase')

local M = {}

---@param part integer
---@param of integer
---@return string
local function bar(part, of)
  local width = 24
  local full = of > 0 and math.floor(width * part / of + 0.5) or 0
  return ('█'):rep(full) .. ('░'):rep(width - full)
end

---@param stats table fermata's StatsResult
---@return string[]
local function page(stats)
  local out = {}
  local function say(...)
    for _, line in ipairs({ ... }) do
      table.insert(out, line)
    end
  end
  local function share(name, s)
    local figure = s.of < stats.minCases and ('%d of %d: too few to tell'):format(s.part, s.of)
      or ('%d %% · %d of %d'):format(math.floor(100 * s.part / s.of + 0.5), s.part, s.of)
    say(('%-24s %s  %s'):format(name, bar(s.part, s.of), figure))
  end
  local function defined(name)
    local text = stats.definitions and stats.definitions[name]
    if text then
      say('')
      for _, line in ipairs(vim.split(text, '\n')) do
        say('> ' .. line)
      end
    end
    say('')
  end
  local function kb(bytes)
    return bytes >= 10240 and ('%d KiB'):format(math.floor(bytes / 1024)) or ('%d bytes'):format(bytes)
  end
  say('# What stopping comes to', '')
  say(
    ('%s, %s%s'):format(
      phrase.count(stats.sessions, 'session'),
      phrase.count(stats.turns, 'turn'),
      stats.workspace ~= '' and ' in ' .. stats.workspace or ''
    )
  )
  say('Computed on this machine from the transcript; nothing is sent anywhere.', '')
  say('## How turns end', '')
  local outcomes = vim.tbl_keys(stats.outcomes or {})
  table.sort(outcomes)
  for _, name in ipairs(outcomes) do
    say(('%-24s %s  %d'):format(name, bar(stats.outcomes[name], stats.turns), stats.outcomes[name]))
  end
  defined('outcomes')
  say('## After a stop', '')
  share('something is said', stats.redirectRate)
  defined('redirectRate')
  share('of that, redirects', stats.followUps.redirects)
  say(
    ('linked %d, quoting %d, going on %d, new topics %d'):format(
      stats.followUps.linked,
      stats.followUps.quoting,
      stats.followUps.goingOn,
      stats.followUps.newTopics
    )
  )
  defined('followUps')
  say('## Who comes back within 7 days', '')
  share('stopped and left', stats.returns.stopAndLeft)
  share('stopped and went on', stats.returns.stopAndWentOn)
  share('never stopped', stats.returns.neverStopped)
  defined('returns')
  say('## How long a stop takes', '')
  local latency = stats.stopLatency
  if latency.n == 0 then
    say('no stop was measured')
  else
    say(('median %d ms, 95 %% within %d ms, longest %d ms'):format(latency.medianMs, latency.p95Ms, latency.maxMs), '')
    for _, bucket in ipairs(latency.buckets or {}) do
      local name = bucket.upToMs and ('≤ %d ms'):format(bucket.upToMs) or 'longer'
      say(('%-24s %s  %d'):format(name, bar(bucket.n, latency.n), bucket.n))
    end
  end
  defined('stopLatency')
  say('## What stops kept', '')
  say(
    ('%d answers, %s in all, %s at the median; %d turns had said nothing'):format(
      stats.kept.answers,
      kb(stats.kept.bytes),
      kb(stats.kept.medianBytes),
      stats.kept.silent
    )
  )
  defined('kept')
  say('## Tools', '')
  for _, tool in ipairs(stats.tools or {}) do
    local states = {}
    for state, n in pairs(tool.states) do
      table.insert(states, ('%s %d'):format(state:gsub('_', ' '), n))
    end
    table.sort(states)
    say(
      ('%-24s %d calls: %s'):format(
        tool.name ~= '' and tool.name or '(no such tool)',
        tool.calls,
        table.concat(states, ', ')
      )
    )
  end
  defined('tools')
  say('## Tokens', '')
  local tokens = stats.tokens
  say(
    ('in %d, of that cached %d; out %d, of that reasoning %d'):format(
      tokens.input,
      tokens.cached,
      tokens.output,
      tokens.reasoning
    )
  )
  say(('triangle %d: what the inputs would cost without caches'):format(tokens.triangle))
  defined('tokens')
  defined('triangle')
  return out
end

--- Opens the page: of the project, or of all of them.
---@param all? boolean
---@param modifiers? string
function M.open(all, modifiers)
  local root = client.root_of(vim.api.nvim_get_current_buf())
  client.request(root, 'fermata/stats', { workspace = not all and root or nil }, function(err, result)
    if err then
      notify.failed(err)
      return
    end
    local buf = buffers.named('fermata://stats')
    buffers.fill(buf, page(result))
    local win = vim.fn.win_findbuf(buf)[1]
    if win then
      vim.api.nvim_set_current_win(win)
    else
      vim.cmd(((modifiers or '') ~= '' and modifiers or 'vertical') .. ' sbuffer ' .. buf)
    end
    vim.bo[buf].bufhidden = 'wipe'
    vim.bo[buf].filetype = 'fermata'
    local wo = vim.wo[vim.api.nvim_get_current_win()][0]
    wo.wrap, wo.linebreak, wo.number, wo.relativenumber = true, true, false, false
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'Fermata: close' })
  end)
end

return M
