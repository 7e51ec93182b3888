--- The daemon's commands, as code actions of buffers offer them, done with the parts of this plugin.
---@type table<string, fun(command: lsp.Command, context: table)>
local M = {}

---@param command lsp.Command
local function turn_of(command)
  local arguments = command.arguments and command.arguments[1] or {}
  return require('fermata.turns').get(arguments.turn), arguments
end

M['fermata.ask'] = function(command)
  local _, arguments = turn_of(command)
  local range = arguments.range
  require('fermata.ask').ask(
    nil,
    range and { line1 = range.start.line + 1, line2 = math.max(range.start.line, range['end'].line) + 1 }
  )
end

M['fermata.stop'] = function(command)
  require('fermata.turns').stop((turn_of(command)))
end

M['fermata.redirect'] = function(command)
  require('fermata.lane').redirect(nil, (turn_of(command)))
end

M['fermata.retry'] = function(command)
  require('fermata.again').retry((turn_of(command)))
end

M['fermata.keep'] = function(command)
  require('fermata.again').keep((turn_of(command)))
end

M['fermata.openTranscript'] = function(command)
  local _, arguments = turn_of(command)
  require('fermata.transcript').open({ session = arguments.session })
end

M['fermata.showModelInput'] = function(command)
  local _, arguments = turn_of(command)
  require('fermata.input').open({ request = arguments.request, session = arguments.session })
end

M['fermata.showChanges'] = function(command)
  require('fermata.changes').open((turn_of(command)))
end

M['fermata.revert'] = function(command)
  require('fermata.changes').revert((turn_of(command)))
end

return M
