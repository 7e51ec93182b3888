" A transcript is markdown. What only keeps it markdown (escapes, <sub>) is concealed.
if exists('b:current_syntax')
  finish
endif
runtime! syntax/markdown.vim
syntax match fermataTag /<\/\?sub>/ conceal containedin=ALL
syntax match fermataEscape /\\\ze[][\\`*_<>&#~|]/ conceal containedin=ALL
" What a screen shows may depend on so many lines above it: bounded, however long the transcript is.
syntax sync clear
syntax sync minlines=60 maxlines=200
let b:current_syntax = 'fermata'
