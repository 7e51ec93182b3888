#!/bin/sh
# Fills a cache folder with real Neovims for the tests, from Debian's packages, and prints the program of each, one a line.
#
#   neovim.sh [SUITE...]      default: trixie sid; that is Neovim 0.10 and 0.12
#
# luacheck comes with them: luacheck.sh runs it. Nothing is installed: the packages are downloaded by apt with a state of its own, unpacked into the cache, and started with
# the libraries that come with them. It works with and without root, may run several times at once, and goes on where a broken
# download ended. FERMATA_CACHE names another cache folder than .cache in this checkout.
set -eu

checkout=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)
cache=${FERMATA_CACHE:-$checkout/.cache}/nvim
[ $# -gt 0 ] || set -- trixie sid

fail() { echo "neovim.sh: $*" >&2; exit 1; }

# The Debian mirror that this machine's own apt uses, else Debian's public name. Both formats of sources are read; other
# archives on the same host (security, backports) end in something else than /debian.
mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    grep -v '^[[:space:]]*#' | grep -Eo '(https?|mirror\+https?|file|copy)://?[^][:space:]]+/debian/?([[:space:]]|$)' |
    head -n 1 | tr -d '[:space:]' | sed 's,/$,,' | grep . || echo 'http://deb.debian.org/debian'
}

keyring() {
  for file in /usr/share/keyrings/debian-archive-keyring.pgp /usr/share/keyrings/debian-archive-keyring.gpg; do
    if [ -r "$file" ]; then echo "$file"; return; fi
  done
  fail 'there is no /usr/share/keyrings/debian-archive-keyring.*: install debian-archive-keyring'
}

# An apt with nothing of this machine's but its way to the network (proxies, timeouts).
configure() { # SUITE APT
  mkdir -p "$2/lists/partial" "$2/archives/partial" "$2/none"
  : > "$2/status"
  keys=$(keyring)
  echo "deb [signed-by=$keys] $(mirror) $1 main" > "$2/sources.list"
  {
    apt-config dump | grep '^Acquire::' || true
    cat <<CONF
Dir::Etc::main "/dev/null";
Dir::Etc::parts "$2/none";
Dir::Etc::sourcelist "$2/sources.list";
Dir::Etc::sourceparts "$2/none";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$2/none";
Dir::State "$2";
Dir::State::lists "$2/lists";
Dir::State::status "$2/status";
Dir::Cache "$2";
Dir::Cache::archives "$2/archives";
Dir::Log "$2";
Acquire::Retries "3";
Acquire::Languages "none";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
CONF
    # As root apt would download as a user who cannot write here.
    if [ "$(id -u)" -eq 0 ]; then echo 'APT::Sandbox::User "root";'; fi
  } > "$2/apt.conf"
}

# The program starts Neovim with the libraries beside it. LD_LIBRARY_PATH would reach the programs that Neovim starts.
program() { # ROOT OUT
  libraries=$(dirname "$(find "$1" -name libc.so.6 | head -n 1)")
  triplet=$(basename "$libraries")
  loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n 1)
  [ -n "$loader" ] || fail "no loader in $libraries"
  cat > "$2" <<PROGRAM
#!/bin/sh
here=\$(CDPATH='' cd -- "\$(dirname -- "\$0")" && pwd)
lib=\$here/${libraries#"$(dirname "$1")"/}
usr=\$here/root/usr/lib/$triplet
export VIMRUNTIME="\$here/root/usr/share/nvim/runtime"
export LUA_CPATH="\$usr/lua/5.1/?.so;\$usr/lua/5.1/?/init.so;;"
export LUA_PATH="\$here/root/usr/share/lua/5.1/?.lua;\$here/root/usr/share/lua/5.1/?/init.lua;;"
exec "\$here/${loader#"$(dirname "$1")"/}" --argv0 nvim --library-path "\$usr:\$lib" "\$here/root/usr/bin/nvim" \\
  --cmd "set runtimepath^=\$usr/nvim" "\$@"
PROGRAM
  chmod +x "$2"
}

fill() { # SUITE
  suite=$1 home=$cache/$1
  if [ -x "$home/nvim" ]; then return; fi
  for tool in apt-get apt-config dpkg; do
    command -v $tool >/dev/null || fail "$tool is missing: real Neovims come from Debian's packages; run the tests on a Debian or Ubuntu system"
  done
  apt=$cache/apt-$suite
  configure "$suite" "$apt"
  export APT_CONFIG="$apt/apt.conf"
  echo "neovim.sh: fetching Neovim of Debian $suite into $home" >&2
  if ! { apt-get -qq update && apt-get -qq install --download-only neovim lua-check; } >"$apt/log" 2>&1; then
    cat "$apt/log" >&2
    fail "the packages of Debian $suite could not be fetched from $(mirror): is there a network? Run it again to go on"
  fi
  rm -rf "$home.new"
  mkdir -p "$home.new/root"
  for deb in "$apt"/archives/*.deb; do dpkg -x "$deb" "$home.new/root"; done
  program "$home.new/root" "$home.new/nvim"
  if ! "$home.new/nvim" --clean --headless --version >"$home.new/version" 2>&1; then
    cat "$home.new/version" >&2
    fail "the Neovim of Debian $suite does not start"
  fi
  rm -rf "$home"
  mv "$home.new" "$home"
  rm -rf "$apt"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # released with the last process that holds it, also after a crash
for suite; do (fill "$suite"); done
for suite; do echo "$cache/$suite/nvim"; done
