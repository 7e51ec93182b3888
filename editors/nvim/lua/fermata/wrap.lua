--- Breaks a text that comes in pieces into lines of a width. Only the last line is worked on again when more comes, so that
--- a long answer costs what is new of it.
---@class fermata.Wrap
---@field width integer
---@field lines string[] the last one may still grow
local Wrap = {}
Wrap.__index = Wrap

---@param width integer columns, at least 10
---@return fermata.Wrap
function Wrap.new(width)
  return setmetatable({ width = math.max(width, 10), lines = { '' } }, Wrap)
end

--- What can be shown: no tabs, no control characters.
---@param text string
local function printable(text)
  return (
    text:gsub('\r', ''):gsub('\t', '    '):gsub('[%z\1-\9\11-\31\127]', function(c)
      return c == '\127' and '^?' or '^' .. string.char(c:byte() + 64)
    end)
  )
end

---@param text string
function Wrap:add(text)
  local pieces = vim.split(printable(text), '\n', { plain = true })
  for i, piece in ipairs(pieces) do
    if i > 1 then
      table.insert(self.lines, '')
    end
    self:_append(piece)
  end
end

---@param piece string of one line
function Wrap:_append(piece)
  local rest = self.lines[#self.lines] .. piece
  while vim.api.nvim_strwidth(rest) > self.width do
    local cut = self:_cut(rest)
    self.lines[#self.lines] = (rest:sub(1, cut):gsub('%s+$', ''))
    rest = rest:sub(cut + 1):gsub('^ +', '')
    table.insert(self.lines, '')
  end
  self.lines[#self.lines] = rest
end

--- How many bytes of a text too long are its first line: up to the last space that fits, else as many characters as do.
---@param text string
---@return integer
function Wrap:_cut(text)
  local width, last, space = 0, 0, nil
  for at, char in text:gmatch('()([%z\1-\127\194-\255][\128-\191]*)') do
    width = width + vim.api.nvim_strwidth(char)
    if width > self.width then
      break
    end
    last = at + #char - 1
    if char == ' ' then
      space = last
    end
  end
  return space or math.max(last, 1)
end

return Wrap
