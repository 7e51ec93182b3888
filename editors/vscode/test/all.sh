#!/bin/sh
# Everything that is checked of the VS Code extension: types, eslint, unit tests, the package's size, and the extension in
# real VS Code with a browser. It uses the fermata of this checkout. Nothing is skipped: what is missing is said by setup.sh.
#
#   all.sh            all of it
#   all.sh unit       types, eslint and unit tests
#   all.sh real [-- NODE-TEST-OPTIONS]   only what runs in real VS Code; --test-name-pattern=stop narrows
#   all.sh bench      no test: how long a stop in real VS Code takes to be seen
set -eu

what=${1:-all}
[ $# -eq 0 ] || shift
[ "${1:-}" != -- ] || shift

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
where=$(sh "$here/test/setup.sh")
value() { printf '%s\n' "$where" | sed -n "s/^$1=//p"; }
node=$(value node)
PATH="$(dirname "$node"):$PATH"
export PATH
cd "$here"

limit=1048576 # bytes of the package

step() { # NAME COMMAND...
  name=$1; shift
  start=$(date +%s)
  "$@" || { echo "   FAILED: vscode: $name" >&2; exit 1; }
  echo "   $name, $(($(date +%s) - start)) s"
}

package() {
  node esbuild.mjs && node node_modules/@vscode/vsce/vsce package --no-dependencies --out fermata.vsix >dist/package.log 2>&1 || { cat dist/package.log >&2; return 1; }
  size=$(wc -c <fermata.vsix)
  [ "$size" -le $limit ] || { echo "fermata.vsix has $size bytes: at most $limit are allowed" >&2; return 1; }
}

mkdir -p dist
if [ "$what" = all ] || [ "$what" = unit ]; then
  step types sh -c "node node_modules/typescript/bin/tsc -p . && node node_modules/typescript/bin/tsc -p test"
  step eslint node node_modules/eslint/bin/eslint.js src test
fi
step 'bundled tests' node esbuild.mjs --tests
[ "$what" != all ] && [ "$what" != unit ] || step 'unit tests' node --test --test-reporter=dot 'dist/test/unit/*.test.js'
[ "$what" != unit ] || exit 0
step package package

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
(cd "$here/../.." && CGO_ENABLED=0 "${GO:-go}" build -buildvcs=false -o "$built/fermata" ./cmd/fermata)

export FERMATA_BINARY="$built/fermata"
export FERMATA_NODE="$node"
export FERMATA_CODE_SERVER="$(value server)"
export FERMATA_BROWSER="$(value browser)"
export FERMATA_LIBRARIES="$(value libraries)"
export FERMATA_VSIX="$here/fermata.vsix"
cache=$(dirname "$(dirname "$(dirname "$node")")") # .cache/vscode
export FERMATA_SHOTS="${FERMATA_SHOTS:-$cache/shots}"
[ "$what" != bench ] || exec node --test --test-reporter=spec 'dist/test/real/*.bench.js'
step 'in real VS Code' node --test --test-concurrency=1 --test-reporter=spec "$@" 'dist/test/real/*.test.js'
