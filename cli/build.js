import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
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

/** The provider packages bring all of the old zod for the names of its schemas, and hand over none of those. */
const withoutOldZod = {
  name: "without-old-zod",
  setup(bundle) {
    bundle.onLoad({ filter: /[\\/]zod[\\/]v3[\\/]index\.js$/ }, () => ({
      contents: "export const ZodFirstPartyTypeKind = {};",
      loader: "js",
    }));
  },
};

/** The runtime's own loads all of its `fetch`; the provider packages only keep names in lower case with it. */
const headers = `class Headers extends Map {
  constructor(init) { super(init instanceof Map ? init : Object.entries(init ?? {})); }
}
`;

/** A namespace that is imported as one value keeps all of its members in the bundle. */
const leanProviders = {
  name: "lean-providers",
  setup(bundle) {
    bundle.onLoad({ filter: /[\\/]@ai-sdk[\\/][\w-]+[\\/]dist[\\/]index\.mjs$/ }, ({ path }) => ({
      contents:
        headers +
        readFileSync(path, "utf8").replaceAll(
          /import \{ z(?: as (\w+))? \} from "zod\/v4";/g,
          (_, name = "z") => `import * as ${name} from "zod/v4";`,
        ),
      loader: "js",
    }));
  },
};

/** Reading arguments loads everything that draws help pages; now only a help page does. */
const helpOnDemand = {
  name: "help-on-demand",
  setup(bundle) {
    const filter =
      /[\\/]@oclif[\\/]core[\\/]lib[\\/](?:flags|errors[\\/]handle|parser[\\/]index)\.js$/;
    bundle.onLoad({ filter }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(
        /(?:const|var) (\w+) = require\(("\.{1,2}\/help(?:\/index)?")\);/,
        "const $1 = new Proxy({}, { get: (_, name) => require($2)[name] });",
      ),
      loader: "js",
    }));
  },
};

const protocolDir = join(import.meta.dirname, "../sdk/dist/protocol");
const protocolModules = new Map(
  [
    ...readFileSync(join(protocolDir, "index.js"), "utf8").matchAll(
      /export \{([^}]*)\} from "\.\/([\w-]+\.js)";/g,
    ),
  ].flatMap(([, names, module]) => names.split(",").map((name) => [name.trim(), module])),
);

const kernelDir = join(import.meta.dirname, "../kernel/dist");
/** What the kernel loads only when it is needed. */
const laterModules = new Set(
  readdirSync(kernelDir, { recursive: true })
    .filter((name) => name.endsWith(".js"))
    .flatMap((name) => {
      const importer = join(kernelDir, name);
      const found = readFileSync(importer, "utf8").matchAll(/\bimport\("(\.[^"]+)"\)/g);
      return [...found].map(([, path]) => join(dirname(importer), path));
    }),
);

/**
 * Fewer files to load. Whoever imports one schema from the entry would load all that anybody uses, so each comes from its
 * own module; and what the kernel loads later names the kernel, for without it everything that both use is cut out.
 */
const fewFiles = {
  name: "few-files",
  setup(bundle) {
    const filter = /[\\/](?:kernel[\\/]dist|cli[\\/]src)[\\/].*\.[jt]s$/;
    bundle.onLoad({ filter }, ({ path }) => ({
      contents:
        readFileSync(path, "utf8").replace(
          /^import \{([^}]*)\} from "@cookie-agent\/sdk\/protocol";/gm,
          (_, names) => importEach(names.split(",").map((name) => name.trim())),
        ) +
        (laterModules.has(path) ? `\nimport ${JSON.stringify(join(kernelDir, "index.js"))};` : ""),
      loader: path.endsWith(".ts") ? "ts" : "js",
    }));
  },
};

function importEach(names) {
  return names
    .filter((name) => name !== "" && !name.startsWith("type "))
    .map((name) => {
      const module = protocolModules.get(name.replace(/ as .*/, ""));
      // A type that is not marked as one is left to the compiler.
      const from = module === undefined ? "@cookie-agent/sdk/protocol" : join(protocolDir, module);
      return `import { ${name} } from ${JSON.stringify(from)};`;
    })
    .join("\n");
}

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
  plugins: [englishOnly, withoutOldZod, leanProviders, helpOnDemand, fewFiles],
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

/** Chunks of schemas alone do nothing but define them, so whoever names none of them need not load them. */
const schemaChunks = Object.entries(metafile.outputs)
  .filter(([, { inputs }]) => Object.keys(inputs).every(isSchemaModule))
  .map(([path]) => basename(path));
for (const path of Object.keys(metafile.outputs)) {
  const file = join(import.meta.dirname, path);
  const text = readFileSync(file, "utf8");
  const lean = schemaChunks.reduce((kept, chunk) => kept.replace(`import"./${chunk}";`, ""), text);
  if (lean !== text) writeFileSync(file, lean);
}

function isSchemaModule(path) {
  return /(?:^|\/)sdk\/(?:src|dist)\/protocol\/(?!scalars\.)[\w-]+\.[jt]s$/.test(path);
}
