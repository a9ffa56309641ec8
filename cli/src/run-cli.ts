import type { Command } from "./command.ts";
import { COMMAND_TABLE, loadAllCommands } from "./command-table.ts";
import { ExitCode, type ExitError, usageError } from "./exit-code.ts";
import { nearestName } from "./nearest-name.ts";
import { type NormalizedArgv, normalizeArgv } from "./normalize-argv.ts";
import { reportError } from "./report-error.ts";
import { tolerateClosedReaders } from "./standard-streams.ts";

/** Runs one command line; the exit code is left in `process.exitCode`. */
export async function main(argv: readonly string[], packageFile: URL): Promise<void> {
  tolerateClosedReaders();
  try {
    process.exitCode = await dispatch(argv, packageFile);
  } catch (error) {
    process.exitCode = reportError(error, wantsJson(argv));
  }
}

async function dispatch(argv: readonly string[], packageFile: URL): Promise<ExitCode> {
  const { words, rest } = await splitArgv(argv);
  if (words.length === 0 && rest.includes("--json")) {
    throw usageError("--json needs a command; `cookie --help` lists them");
  }
  if (asksForHelp(words, rest)) {
    const { showHelp } = await import("./show-help.ts");
    const topic = rest[0] === "help" ? rest.slice(1) : words;
    await showHelp(topic, packageFile);
    return ExitCode.success;
  }
  const load = COMMAND_TABLE[words.join(":")];
  if (load === undefined) throw unknownCommand(words, rest);
  const command = await load();
  return command.execute(rest);
}

/** Only options before the command need to know which of them take a value, and so every command. */
async function splitArgv(argv: readonly string[]): Promise<NormalizedArgv> {
  const ids = Object.keys(COMMAND_TABLE);
  const split = normalizeArgv(argv, ids, new Set());
  if (split.words.every((word, index) => word === argv[index]) && split.words.length > 0) {
    if (ids.includes(split.words.join(":")) || split.rest.length === 0) return split;
  }
  const commands = await loadAllCommands();
  return normalizeArgv(argv, ids, valueOptions(commands.map(([, command]) => command)));
}

function valueOptions(commands: readonly Command[]): Set<string> {
  const spellings = new Set<string>();
  for (const { flags } of commands) {
    for (const [name, flag] of Object.entries(flags)) {
      if (flag.type !== "option") continue;
      spellings.add(`--${name}`);
      if (flag.char !== undefined) spellings.add(`-${flag.char}`);
    }
  }
  return spellings;
}

function asksForHelp(words: readonly string[], rest: readonly string[]): boolean {
  if (words.length === 0 && (rest.length === 0 || rest[0] === "help")) return true;
  const end = rest.indexOf("--");
  const options = end < 0 ? rest : rest.slice(0, end);
  return options.includes("--help") || options.includes("-h");
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const options = end < 0 ? argv : argv.slice(0, end);
  return options.some(
    (option, index) =>
      option === "--json" ||
      option === "-ojson" ||
      option === "--output=json" ||
      (option === "json" && ["-o", "--output"].includes(options[index - 1] ?? "")),
  );
}

function unknownCommand(words: readonly string[], rest: readonly string[]): ExitError {
  const names = Object.keys(COMMAND_TABLE).map((id) => id.replaceAll(":", " "));
  const next = rest.find((argument) => !argument.startsWith("-"));
  const prefix = words.length === 0 ? "" : `${words.join(" ")} `;
  const inTopic = names.filter((name) => name.startsWith(prefix));
  if (next === undefined) {
    return words.length === 0
      ? usageError(`unknown option ${rest[0] ?? ""}; \`cookie --help\` lists the commands`)
      : usageError(`${words.join(" ")} is not complete; it goes on as ${inTopic.join(" or ")}`);
  }
  const written = `${prefix}${next}`;
  const near = nearestName(written, [...inTopic, ...inTopic.map((name) => name.split(" ")[0] ?? "")]);
  return usageError(
    near === undefined
      ? `unknown command "${written}"; \`cookie --help\` lists the commands`
      : `unknown command "${written}"; did you mean ${near}?`,
  );
}
