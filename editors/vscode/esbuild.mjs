// Bundles the extension into dist/extension.js; the only thing that stays outside is VS Code itself.
import { build } from "esbuild";

await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: !process.argv.includes("--debug"),
  sourcemap: process.argv.includes("--debug"),
  legalComments: "linked",
});
