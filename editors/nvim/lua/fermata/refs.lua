--- Which entries of the log the lines of a transcript come from.
local M = {}

---@class fermata.Ref
---@field line integer of the buffer, from 1; those after it up to the next one's are its too
---@field seq integer
---@field turn? string of this line and those after it, up to the next that names one
---@field level integer of the fold that the line is in

--- Adds what a rendering says of its lines: a question and all that came of it is one fold, a redirect one within.
---@param refs fermata.Ref[] in order of lines
---@param lines string[] of the rendering
---@param from table[] as the protocol has them
---@param first integer line of the buffer (0-based) that the rendering begins at
function M.add(refs, lines, from, first)
  local level = #refs > 0 and refs[#refs].level or 0
  for _, ref in ipairs(from) do
    if ref.turn then
      local text = lines[ref.line] or ''
      level = text:match('^## You') and 1 or text:match('^### You') and 2 or level
    end
    table.insert(refs, { line = first + ref.line, seq = ref.seq, turn = ref.turn, level = level })
  end
end

--- The index of the reference that a line belongs to; 0 when there is none.
---@param refs fermata.Ref[]
---@param line integer from 1
---@return integer
function M.last(refs, line)
  local low, high = 0, #refs
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if refs[middle].line <= line then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

--- The turn and the entry at a line.
---@param refs fermata.Ref[]
---@param line integer from 1
---@return string? turn
---@return integer? seq
function M.at(refs, line)
  local last = M.last(refs, line)
  local seq = last > 0 and refs[last].seq or nil
  for i = last, 1, -1 do
    if refs[i].turn then
      return refs[i].turn, seq
    end
  end
  return nil, seq
end

--- Joins what is above to what is below when the cut is within a turn: what goes on there begins no fold of its own.
---@param above fermata.Ref[]
---@param below fermata.Ref[]
function M.join(above, below)
  local first, before = below[1], above[#above]
  if not first or not before or first.level > 0 or M.at(above, before.line) ~= first.turn then
    return
  end
  first.turn = nil
  for _, ref in ipairs(below) do
    if ref.turn then
      break
    end
    ref.level = before.level
  end
end

--- The entry after which a rendering must begin for all that can still change: the turn before the last one.
---@param refs fermata.Ref[]
---@return integer? since nil when fewer turns are shown
---@return integer? first line (0-based) of what is rendered anew
function M.settled(refs)
  local seen, last = 0, nil
  for i = #refs, 1, -1 do
    local ref = refs[i]
    if ref.turn and ref.turn ~= last then
      last, seen = ref.turn, seen + 1
    end
    if seen == 3 then
      -- ref is the first line of the third turn from the end, or one below: what comes after it in the log is the rest.
      for j = i + 1, #refs do
        if refs[j].turn then
          return refs[j].seq - 1, refs[j].line - 1
        end
      end
    end
  end
end

return M
