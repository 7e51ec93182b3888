// Formats the plugin's Lua with StyLua, or with --check says which files it would change. The package is fetched from the npm
// registry into the cache folder once: node stylua.mjs CACHE [--check]
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const version = '2.5.2'
const plugin = dirname(dirname(fileURLToPath(import.meta.url)))
const home = join(resolve(process.argv[2]), `stylua-${version}`)
const check = process.argv.includes('--check')

if (!existsSync(join(home, 'node_modules', '@johnnymorganz', 'stylua', 'package.json'))) {
  mkdirSync(home, { recursive: true })
  const args = ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', home]
  execFileSync('npm', [...args, `@johnnymorganz/stylua@${version}`], { stdio: 'inherit', shell: process.platform === 'win32' })
}
const stylua = createRequire(join(home, 'index.js'))('@johnnymorganz/stylua')

function config() { // formatCode takes it over, so that each file needs one of its own
  const config = stylua.Config.new()
  config.column_width = 120
  config.indent_type = stylua.IndentType.Spaces
  config.indent_width = 2
  config.quote_style = stylua.QuoteStyle.AutoPreferSingle
  config.call_parentheses = stylua.CallParenType.Always
  return config
}

function* files(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) yield* files(path)
    else if (name.endsWith('.lua')) yield path
  }
}

let differ = 0
for (const path of files(plugin)) {
  const before = readFileSync(path, 'utf8')
  const after = stylua.formatCode(before, config(), undefined, stylua.OutputVerification.None)
  if (before === after) continue
  differ++
  console.log(relative(plugin, path))
  if (!check) writeFileSync(path, after)
}
process.exit(check && differ > 0 ? 1 : 0)
