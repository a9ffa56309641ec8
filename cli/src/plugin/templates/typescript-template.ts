import { createRequire } from "node:module";
import { dirname } from "node:path";
import { packageInfo } from "../../package-info.ts";
import { json, type Template, tryCommands } from "./template-file.ts";

const require = createRequire(import.meta.url);

const plugin = (
  name: string,
) => `import { definePlugin, defineTool } from "@cookie-agent/sdk/plugin";
import * as z from "zod";

export const plugin = definePlugin({
  name: ${JSON.stringify(name)},
  version: "0.1.0",
  tools: {
    ${name}: defineTool({
      description: "Counts the words of a text, line by line.",
      parameters: z.strictObject({ text: z.string().describe("The text") }),
      permissionName: ${JSON.stringify(name)},
      call: async ({ args, progress, signal }) => {
        for (const line of args.text.split("\\n")) {
          signal.throwIfAborted();
          const words = line.split(/\\s+/).filter((word) => word !== "");
          await progress({ output: \`\${words.length}\\n\` });
        }
        return { streamed: true };
      },
    }),
  },
});
`;

const entry = `import { serve } from "@cookie-agent/sdk/plugin";
import { plugin } from "./plugin.ts";

await serve(plugin);
`;

const test = (name: string) => `import assert from "node:assert/strict";
import { test } from "node:test";
import { testPlugin } from "@cookie-agent/sdk/testing";
import { plugin } from "../src/plugin.ts";

test("counts words line by line", async () => {
  const harness = await testPlugin(plugin);
  try {
    const { text, error, problems } = await harness.call("${name}", { text: "one two\\nthree" });
    assert.equal(error, null);
    assert.equal(text, "2\\n1\\n");
    assert.deepEqual(problems, []);
  } finally {
    await harness.close();
  }
});
`;

/** The SDK comes from where this command has it, until it is on a registry. */
function sdkDependency(): string {
  const folder = dirname(require.resolve("@cookie-agent/sdk/package.json"));
  return folder.includes("node_modules") ? packageInfo().version : `file:${folder}`;
}

export function typescriptTemplate(name: string): Template {
  const bundle = "esbuild --bundle --platform=node --format=esm --log-level=warning";
  const calls = [{ tool: name, arguments: { text: "one two\nthree" } }];
  return {
    files: [
      {
        path: "package.json",
        text: json({
          name: name.replaceAll("_", "-"),
          version: "0.1.0",
          private: true,
          type: "module",
          scripts: {
            build: `${bundle} src/main.ts --outfile=dist/main.js && node dist/main.js manifest`,
            test: `${bundle} test/plugin.test.ts --outfile=dist/plugin.test.js && node --test dist/plugin.test.js`,
          },
          dependencies: { "@cookie-agent/sdk": sdkDependency(), zod: "^4.0.0" },
          devDependencies: { esbuild: "^0.28.0" },
        }),
      },
      { path: "src/plugin.ts", text: plugin(name) },
      { path: "src/main.ts", text: entry },
      { path: "test/plugin.test.ts", text: test(name) },
      { path: "conformance.json", text: json({ calls }) },
      { path: ".gitignore", text: "dist/\nnode_modules/\n" },
    ],
    next: ["npm install", "npm run build", "npm test", ...tryCommands(name)],
  };
}
