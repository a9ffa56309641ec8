import { build } from "esbuild";

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

await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/main.ts", "src/commands.ts"],
  outdir: "dist",
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
