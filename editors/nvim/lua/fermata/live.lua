--- What is being said and put out, as a transcript shows it behind what is in the log, until the log has it.
local M = {}

local most = 16384 -- bytes of one tool's output

---@class fermata.Live
---@field turn string
---@field step integer
---@field call? string the tool call whose output it is
---@field seq? integer the entry that holds it by now; 0 for the next rendering
---@field text string
---@field full? boolean no more of it is shown

--- All of it, as it is appended behind the rendering.
---@param all fermata.Live[]
---@return string
function M.text(all)
  local out = {}
  for _, live in ipairs(all) do
    table.insert(out, live.text)
  end
  return table.concat(out)
end

--- Takes a piece of an answer.
---@param t fermata.Transcript
---@param event table a delta
---@return string text to append
function M.said(t, event)
  local live = t.live[#t.live]
  local before = ''
  if not live or live.call or live.seq or live.turn ~= event.turn or live.step ~= event.step then
    live = { turn = event.turn, step = event.step, text = '' }
    table.insert(t.live, live)
    t.part = nil
    before = #t.live == 1 and '\n' or ''
  end
  local text = event.text:gsub('\r\n?', '\n')
  if event.part ~= t.part then
    local gap = live.text == '' and '' or '\n\n'
    if event.part == 'reasoning' then
      text = gap .. '> *Reasoning*\n>\n> ' .. text:gsub('\n', '\n> ')
    else
      text = gap .. text
    end
    t.part = event.part
  elseif event.part == 'reasoning' then
    text = text:gsub('\n', '\n> ')
  end
  live.text = live.text .. text
  return before .. text
end

--- Takes a piece of a tool's output: as a block of code, without what terminals take for commands, and only so much of it.
---@param t fermata.Transcript
---@param event table tool.output
---@return string? text to append; nil when it belongs further up, so that all is to be shown anew
function M.output(t, event)
  local live
  for _, one in ipairs(t.live) do
    if one.call == event.call and one.turn == event.turn and one.step == event.step then
      live = one
    end
  end
  local begins = not live
  if not live then
    live = { turn = event.turn, step = event.step, call = event.call, text = '' }
    table.insert(t.live, live)
  elseif live.seq or live.full then
    return ''
  end
  local text =
    event.text:gsub('\27%[[%d;?]*%a', ''):gsub('\r\n?', '\n'):gsub('[%z\1-\8\11-\31\127]', ''):gsub('\n', '\n    ')
  if #live.text + #text > most then
    local fits = math.max(0, most - #live.text)
    text = vim.fn.strpart(text, 0, fits + vim.str_utf_end(text, math.max(1, fits)))
      .. '\n    … more comes than is shown here'
    live.full = true
  end
  text = (begins and '\n    ' or '') .. text
  live.text = live.text .. text
  return t.live[#t.live] == live and text or nil
end

--- Notes what the log has by now.
---@param all fermata.Live[]
---@param event table
function M.settle(all, event)
  local kind = event.kind
  if kind == 'retracted' or kind == 'answer' or kind == 'turn.ended' then
    for _, live in ipairs(all) do
      if not live.seq and live.turn == (event.turn or event.entry.turn) and (not live.call or kind == 'turn.ended') then
        live.seq = live.call and 0 or event.seq or 0
      end
    end
  elseif kind == 'tool.settled' then
    for _, live in ipairs(all) do
      if live.call == event.entry.call and live.turn == event.entry.turn and live.step == event.entry.step then
        live.seq = 0
      end
    end
  end
end

return M
