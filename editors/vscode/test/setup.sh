#!/bin/sh
# Fills a cache folder with a real VS Code for the tests, and prints the folder: code-server, which is VS Code with its
# interface in a browser, the Node that it needs, and a headless Chromium. All come from the npm registry.
#
# Nothing is installed outside the cache. It may run several times at once, and goes on where a broken download ended.
# FERMATA_CACHE names another cache folder than .cache in this checkout.
set -eu

node=24.22.3
server=4.139.1

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${FERMATA_CACHE:-$here/../../.cache}/vscode
mkdir -p "$cache"
cache=$(CDPATH='' cd -- "$cache" && pwd)

fail() { echo "setup.sh: $*" >&2; exit 1; }
say() { echo "setup.sh: $*" >&2; }

for tool in npm tar g++ make python3; do
  command -v $tool >/dev/null || fail "$tool is missing: the tests in real VS Code need npm, tar, g++, make and python3"
done
case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  *) fail "real VS Code can be set up on Linux, on x86-64 and arm64; this is $(uname -s) on $(uname -m)" ;;
esac

exec 9>"$cache/lock"
flock 9 # released with the last process that holds it, also after a crash

quiet() { # LOG COMMAND...: shows what a command says only when it fails
  log=$1; shift
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    fail "failed: $*. Is there a network? Run it again to go on"
  fi
}

# A package of the registry, unpacked.
unpack() { # NAME VERSION FOLDER
  rm -rf "$3.new"
  mkdir -p "$3.new"
  say "fetching $1 $2"
  (cd "$3.new" && quiet "$3.log" npm pack --silent "$1@$2")
  tar -xzf "$3.new"/*.tgz -C "$3.new" --strip-components=1
  rm -f "$3.new"/*.tgz
}

if [ ! -x "$cache/node-$node/bin/node" ]; then
  unpack "node-$platform" "$node" "$cache/node-$node"
  mv "$cache/node-$node.new" "$cache/node-$node"
fi
PATH="$cache/node-$node/bin:$PATH"
export PATH

# The extension's own packages: its libraries, compiler and checkers, and the browser's driver.
if [ ! -f "$here/node_modules/.fermata" ] || ! cmp -s "$here/package-lock.json" "$here/node_modules/.fermata"; then
  say "installing the packages of the extension"
  (cd "$here" && quiet "$cache/packages.log" npm ci --prefer-offline --ignore-scripts --no-audit --no-fund)
  cp "$here/package-lock.json" "$here/node_modules/.fermata"
fi

# Only those of VS Code's own extensions stay that the scenes need: the others, Copilot among them, take longer to start than
# all the rest. A cache that has others is filled anew.
kept=' diff go json log markdown-basics markdown-language-features theme-defaults theme-modern-icons theme-seti node_modules '
trimmed=$cache/code-server-$server/trimmed
if [ -f "$trimmed" ] && [ "$(cat "$trimmed")" != "$kept" ]; then rm -rf "$cache/code-server-$server"; fi

# code-server's packages are installed without their scripts, which would download more; the two native ones that
# it cannot start without are built here.
if [ ! -f "$cache/code-server-$server/ready" ]; then
  home=$cache/code-server-$server
  unpack code-server "$server" "$home"
  for folder in . lib/vscode lib/vscode/extensions; do
    (cd "$home.new/$folder" && quiet "$home.log" npm install --prefer-offline --omit=dev --ignore-scripts --no-audit --no-fund --no-save)
  done
  ln -s node_modules "$home.new/lib/vscode/node_modules.asar"
  for module in @vscode/spdlog @vscode/native-watchdog; do
    say "building $module"
    (cd "$home.new/lib/vscode/node_modules/$module" &&
      quiet "$home.log" node "$here/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir="$cache/node-$node")
  done
  touch "$home.new/ready"
  rm -rf "$home"
  mv "$home.new" "$home"
fi

if [ ! -f "$trimmed" ]; then
  for extension in "$cache/code-server-$server/lib/vscode/extensions"/*/; do
    case $kept in
      *" $(basename "$extension") "*) ;;
      *) rm -rf "$extension" ;;
    esac
  done
  printf %s "$kept" >"$trimmed"
fi

# Chromium comes compressed, with the few libraries that a system without a desktop lacks.
browser=$(sed -n 's/^ *"version": "\(.*\)".*/\1/p' "$here/node_modules/@sparticuz/chromium/package.json")
if [ ! -x "$cache/chromium-$browser/chromium" ]; then
  home=$cache/chromium-$browser
  rm -rf "$home.new"
  mkdir -p "$home.new"
  say "unpacking Chromium $browser"
  (cd "$here" && node - "$home.new" <<'JS'
const fs = require("node:fs"), path = require("node:path"), zlib = require("node:zlib"), { execFileSync } = require("node:child_process");
const from = path.join("node_modules", "@sparticuz", "chromium", "bin"), to = process.argv[2];
for (const name of fs.readdirSync(from).filter((n) => n.endsWith(".br"))) {
  const out = path.join(to, name.slice(0, -".br".length));
  fs.writeFileSync(out, zlib.brotliDecompressSync(fs.readFileSync(path.join(from, name))));
  if (!out.endsWith(".tar")) { fs.chmodSync(out, 0o755); continue; }
  execFileSync("tar", ["-xf", out, "-C", to]);
  fs.rmSync(out);
}
JS
  )
  rm -rf "$home"
  mv "$home.new" "$home"
fi

echo "node=$cache/node-$node/bin/node"
echo "server=$cache/code-server-$server/out/node/entry.js"
echo "browser=$cache/chromium-$browser/chromium"
echo "libraries=$cache/chromium-$browser/lib"
