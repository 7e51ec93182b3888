-- luacheck's main, with what the plugin may use.
local arguments = { '--std', 'luajit', '--globals', 'vim', '--no-max-comment-line-length', '--max-line-length', '120' }
vim.list_extend(arguments, { '--no-color', '--quiet', '--codes' })
vim.list_extend(arguments, _G.arg)
arguments[0] = 'luacheck'
_G.arg = arguments
require('luacheck.main')
