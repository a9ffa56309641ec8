import { mkdir, readdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { string as stringArg } from "@oclif/core/args";
import { string } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { LANGUAGES, type Language } from "../../plugin/templates/language.ts";
import { printable } from "../../printable.ts";
import { print, printJson } from "../../standard-streams.ts";

export const initPlugin = defineCommand({
  summary: "Write a small plugin that works, to go on from.",
  description: "Writes into a new or empty folder only. The plugin is named after the folder.",
  examples: ["<%= config.bin %> plugin init word-count --language python"],
  args: {
    folder: stringArg({ description: "folder to make", required: true, ignoreStdin: true }),
  },
  flags: {
    language: string({
      description: `one of ${LANGUAGES.join(", ")}`,
      options: [...LANGUAGES],
      default: "typescript",
    }),
  },
  async run({ args, flags }) {
    if (args.folder === "") throw usageError("the folder has no name");
    const directory = resolve(args.folder);
    const name = nameOf(directory);
    const language = flags.language as Language;
    const { filesOf } = await import("../../plugin/templates/files-of.ts");
    const { files, next } = filesOf(language, name);
    await makeEmpty(directory);
    for (const { path, text, executable } of files) {
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true });
      // Exclusive: what somebody puts there meanwhile is not overwritten.
      await writeFile(file, text, { flag: "wx", mode: executable === true ? 0o755 : 0o644 });
    }
    if (flags.json) printJson({ plugin: name, directory, files: files.map(({ path }) => path) });
    else {
      print(printable(`${name} is in ${directory}`));
      for (const line of [`cd ${shellWord(args.folder)}`, ...next]) print(printable(`  ${line}`));
    }
    return undefined;
  },
});

/** A path as it can be typed, also one that has spaces or looks like an option. */
function shellWord(path: string): string {
  const named = path.startsWith("-") ? `./${path}` : path;
  return /^[\w./-]+$/.test(named) ? named : `'${named.replaceAll("'", `'\\''`)}'`;
}

/** A plugin's name that is a permission and a tool's name as well. */
function nameOf(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replace(/[-. ]+/g, "_");
  if (/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name) && name.length <= 64) return name;
  throw usageError(
    `"${basename(directory) || directory}" cannot be a plugin's name: begin with a letter, use letters a-z, digits and -, at most 64`,
  );
}

async function makeEmpty(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    if ((await readdir(directory)).length === 0) return;
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unwritable";
    if (why === "EEXIST" || why === "ENOTDIR") {
      const message = `${directory} cannot be made (${why}): a file stands in its way; name a new folder`;
      throw new ExitError(ExitCode.failure, "io", message, error);
    }
    throw new ExitError(ExitCode.failure, "io", `${directory} cannot be made (${why})`, error);
  }
  throw new ExitError(
    ExitCode.failure,
    "not_empty",
    `${directory} is not empty; name a new folder`,
  );
}
