import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const outdir = join(import.meta.dirname, "dist");

/** Error texts of zod in fifty languages are a third of its code; only the English ones are ever shown. */
const englishOnly = {
  name: "english-only",
  setup(bundle) {
    bundle.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export {};",
      loader: "js",
    }));
  },
};

const { metafile } = await build({
  metafile: true,
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/main.ts", "src/commands.ts"],
  outdir,
  chunkNames: "chunk-[hash]",
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  target: "node20",
  minifySyntax: true,
  minifyWhitespace: true,
  external: [
    "fs-native-extensions",
    "web-tree-sitter",
    "tree-sitter-bash",
    "typescript",
    "ts-node",
  ],
  plugins: [englishOnly],
  banner: {
    js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);",
  },
  logLevel: "warning",
});

// Everything in the folder is packed, so the chunks of an earlier build have to go.
const written = new Set(Object.keys(metafile.outputs).map((each) => basename(each)));
for (const name of readdirSync(outdir)) {
  if (name.endsWith(".js") && !written.has(name)) rmSync(join(outdir, name));
}
