" A transcript is markdown. What only keeps it markdown (escapes, <sub>) is concealed.
if exists('b:current_syntax')
  finish
endif
runtime! syntax/markdown.vim
syntax match fermataTag /<\/\?sub>/ conceal containedin=ALL
syntax match fermataEscape /\\\ze[][\\`*_<>&#~|]/ conceal containedin=ALL
let b:current_syntax = 'fermata'
