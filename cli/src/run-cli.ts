import { COMMAND_TABLE } from "./command-table.ts";
import { ExitCode, type ExitError, usageError } from "./exit-code.ts";
import { nearestName } from "./nearest-name.ts";
import { normalizeArgv } from "./normalize-argv.ts";
import { reportError } from "./report-error.ts";
import { dropListenersBut, watchStandardStreams } from "./standard-streams.ts";

/** Runs one command line; the exit code is left in `process.exitCode`. */
export async function main(argv: readonly string[], packageFile: URL): Promise<void> {
  watchStandardStreams(wantsJson(argv));
  try {
    process.exitCode = await dispatch(argv, packageFile);
  } catch (error) {
    process.exitCode = reportError(error, wantsJson(argv));
  }
}

async function dispatch(argv: readonly string[], packageFile: URL): Promise<ExitCode> {
  const parse = (line: readonly string[]) =>
    normalizeArgv(line, Object.keys(COMMAND_TABLE), valueOptions());
  const { words, rest } = parse(argv);
  if (words.length === 0 && rest.includes("--json")) {
    throw usageError("--json needs a command; `cookie --help` lists them");
  }
  if (asksForHelp(words, rest)) {
    const topic = rest[0] === "help" ? parse(rest.slice(1)) : { words, rest };
    if (!isComplete(topic.words) && topic.rest.some((argument) => !argument.startsWith("-"))) {
      throw unknownCommand(topic.words, topic.rest);
    }
    const watching = process.stdout.listeners("error");
    const { showHelp } = await import("./show-help.ts");
    dropListenersBut(watching);
    await showHelp(topic.words, packageFile);
    return ExitCode.success;
  }
  const command = COMMAND_TABLE[words.join(":")];
  if (command === undefined) throw unknownCommand(words, rest);
  return command.execute(rest);
}

function isComplete(words: readonly string[]): boolean {
  return COMMAND_TABLE[words.join(":")] !== undefined;
}

/** Options that take the next argument, of all commands: they may stand before the command's name. */
function valueOptions(): Set<string> {
  const spellings = new Set<string>();
  for (const { flags } of Object.values(COMMAND_TABLE)) {
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

function oneOf(names: readonly string[]): string {
  return new Intl.ListFormat("en", { type: "disjunction" }).format(names);
}

function unknownCommand(words: readonly string[], rest: readonly string[]): ExitError {
  const names = Object.keys(COMMAND_TABLE).map((id) => id.replaceAll(":", " "));
  const next = rest.find((argument) => !argument.startsWith("-"));
  const prefix = words.length === 0 ? "" : `${words.join(" ")} `;
  const inTopic = names.filter((name) => name.startsWith(prefix));
  if (next === undefined) {
    return words.length === 0
      ? usageError(`unknown option ${rest[0] ?? ""}; \`cookie --help\` lists the commands`)
      : usageError(
          `${words.join(" ")} is not complete; it goes on with ${oneOf(inTopic.map((name) => name.slice(prefix.length)))}`,
        );
  }
  const written = `${prefix}${next}`;
  const known = [...inTopic, ...inTopic.map((name) => name.split(" ")[0] ?? "")];
  const near = written === "version" ? "--version" : nearestName(written, known);
  return usageError(
    near === undefined
      ? `unknown command "${written}"; \`cookie --help\` lists the commands`
      : `unknown command "${written}"; did you mean ${near}?`,
  );
}
