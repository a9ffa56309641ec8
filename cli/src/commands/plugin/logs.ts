import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { PluginsStatus } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { integer } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { homeDirectory, withLocalKernel } from "../../open-kernel.ts";
import { requirePlugin, requirePluginName } from "../../plugin/require-plugin.ts";
import { printableLines } from "../../printable.ts";
import { print, printJson } from "../../standard-streams.ts";

/** The end of a file that is looked at. */
const TAIL_BYTES = 1024 * 1024;

export const pluginLogs = defineCommand({
  summary: "Show what a plugin wrote to stderr and to the log.",
  description:
    "Shipped plugins share processes: what core ones write is in `host-core`, bash is in `host-exec`.",
  args: {
    plugin: string({ description: "name of the plugin", required: true, ignoreStdin: true }),
  },
  flags: { lines: integer({ description: "most lines", default: 200, min: 1, max: 100_000 }) },
  async run({ args, flags }) {
    requirePluginName(args.plugin);
    const file = join(homeDirectory(), ".cookie-agent", "logs", `${args.plugin}.log`);
    const tail = await readTail(file);
    if (tail === undefined) await requireKnown(args.plugin);
    const lines = (tail ?? []).slice(-flags.lines);
    if (flags.json) printJson({ plugin: args.plugin, file, lines });
    else if (lines.length === 0) print(`nothing was logged (${file})`);
    else print(printableLines(lines.join("\n")));
    return undefined;
  },
});

/** Without a file, a misspelt name must not look like a plugin that has nothing to say. */
async function requireKnown(name: string): Promise<void> {
  if (name.startsWith("host-")) return;
  const { plugins } = await withLocalKernel({}, ({ client }) => client.request(PluginsStatus, {}));
  requirePlugin(plugins, name);
}

/** Undefined: there is no such file. */
async function readTail(file: string): Promise<string[] | undefined> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { size } = await handle.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const buffer = Buffer.alloc(size - start);
    const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, start);
    const lines = buffer.toString("utf8", 0, bytesRead).split("\n");
    // The first line may have been cut.
    return lines.slice(start > 0 ? 1 : 0).filter((line) => line !== "");
  } finally {
    await handle.close();
  }
}
