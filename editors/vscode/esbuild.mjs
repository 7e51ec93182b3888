// Bundles the extension into dist/extension.js; the only thing that stays outside is VS Code itself. With --tests it bundles
// the tests, each file into dist/test.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, platform: "node", format: "cjs", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  const files = ["unit", "real"].flatMap((dir) => readdirSync(`test/${dir}`).filter((f) => /\.(test|bench)\.ts$/.test(f)).map((f) => `test/${dir}/${f}`));
  await build({ ...common, entryPoints: files, outdir: "dist/test", outbase: "test", target: "node24", packages: "external", sourcemap: "inline" });
} else {
  await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    target: "node20",
    external: ["vscode"],
    minify: !process.argv.includes("--debug"),
    sourcemap: process.argv.includes("--debug"),
    legalComments: "linked",
  });
}
