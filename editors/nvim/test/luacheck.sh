#!/bin/sh
# Runs luacheck over the plugin's Lua, in the Neovim that neovim.sh fetched together with it.
set -eu
plugin=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
nvim=$(sh "$plugin/test/neovim.sh" trixie)
cd "$plugin"
exec "$nvim" --clean -l test/luacheck.lua lua plugin test
