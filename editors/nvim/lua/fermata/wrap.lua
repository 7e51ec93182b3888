--- Breaks a text that comes in pieces into lines of a width. Only the last line is worked on again when more comes, and each
--- line costs its own length: a long answer costs what is new of it, also when it comes as one long piece.
---@class fermata.Wrap
---@field width integer
---@field lines string[] the last one may still grow
local Wrap = {}
Wrap.__index = Wrap

local widths = {} ---@type table<string, integer> of characters that are not ASCII

---@param char string
---@return integer
local function width_of(char)
  if #char == 1 then
    return 1
  end
  local width = widths[char]
  if not width then
    width = vim.api.nvim_strwidth(char)
    widths[char] = width
  end
  return width
end

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
  local text = self.lines[#self.lines] .. piece
  local from = 1
  while true do
    local to = self:_cut(text, from)
    if not to then
      self.lines[#self.lines] = text:sub(from)
      return
    end
    self.lines[#self.lines] = (text:sub(from, to):gsub('%s+$', ''))
    table.insert(self.lines, '')
    from = text:find('[^ ]', to + 1) or #text + 1
  end
end

--- Where the first line of a text from a byte on ends: at the last space that fits, else behind as many characters as do; nil
--- when all of it fits.
---@param text string
---@param from integer
---@return integer?
function Wrap:_cut(text, from)
  if #text - from < self.width and not text:find('[\128-\255]', from) then
    return nil
  end
  local width, at, space = 0, from, nil
  while at <= #text do
    local _, last = text:find('^[%z\1-\127\194-\255]?[\128-\191]*', at)
    width = width + width_of(text:sub(at, last))
    if width > self.width then
      return space or math.max(at - 1, from)
    end
    if last == at and text:byte(at) == 32 then
      space = at
    end
    at = math.max(last, at) + 1
  end
end

return Wrap
