-- The one command and the <Plug> maps. All else is loaded when it is first used.
if vim.g.loaded_fermata then
  return
end
vim.g.loaded_fermata = true

vim.api.nvim_create_user_command('Fermata', function(args)
  require('fermata.command').run(args)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Ask, stop, redirect and inspect agent turns',
  complete = function(...)
    return require('fermata.command').complete(...)
  end,
})

for _, name in ipairs({ 'ask', 'stop', 'redirect', 'transcript', 'input', 'changes', 'clear', 'answer' }) do
  vim.keymap.set(
    'n',
    '<Plug>(fermata-' .. name .. ')',
    '<Cmd>Fermata ' .. name .. '<CR>',
    { desc = 'Fermata: ' .. name }
  )
end
vim.keymap.set(
  'x',
  '<Plug>(fermata-ask)',
  ':Fermata ask<CR>',
  { desc = 'Fermata: ask about the selection', silent = true }
)
