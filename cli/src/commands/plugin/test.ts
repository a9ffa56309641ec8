import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import type { ConformanceResult } from "@cookie-agent/sdk/testing";
import { string as stringArg } from "@oclif/core/args";
import { string } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { pluginHostEntry } from "../../first-party.ts";
import { InterruptSignal } from "../../headless/interrupt-signal.ts";
import { renderJunit } from "../../plugin/render-junit.ts";
import { requireLoadable } from "../../plugin/require-loadable.ts";
import { printable } from "../../printable.ts";
import { print, printError, printJson } from "../../standard-streams.ts";

export const testPlugin = defineCommand({
  summary: "Run a plugin through the conformance checks of the protocol, in processes of its own.",
  description: `The checks are those of section 16 of the protocol that a plugin has to meet. Which calls may really be made says the file conformance.json in its folder; without it no tool is called.

Exit code 1 when a check failed. A check that does not apply is skipped and says why.`,
  examples: [
    "<%= config.bin %> plugin test",
    "<%= config.bin %> plugin test my-plugin --junit report.xml",
    "<%= config.bin %> plugin test --command /usr/bin/python3 --arg echo.py --name echo",
  ],
  args: {
    folder: stringArg({
      description: "folder of the plugin; this one by default",
      ignoreStdin: true,
    }),
  },
  flags: {
    command: string({ description: "program of a plugin without manifest" }),
    arg: string({
      description: "argument of that program",
      multiple: true,
      multipleNonGreedy: true,
    }),
    name: string({ description: "name that its entry would have" }),
    env: string({
      description: "NAME=VALUE for its environment, which is empty otherwise",
      multiple: true,
      multipleNonGreedy: true,
    }),
    only: string({
      description: "run only this check, such as C-14",
      multiple: true,
      multipleNonGreedy: true,
    }),
    junit: string({ description: "write the report there as JUnit XML too" }),
  },
  async run({ args, flags }) {
    const { runConformance, ConformanceSamples } = await import("@cookie-agent/sdk/testing");
    const tried = await triedBy(args.folder, flags);
    const env = flags.env === undefined ? {} : { env: parseEnv(flags.env) };
    const interrupt = new InterruptSignal({
      onStopping: () => printError("stopping; Ctrl-C again ends at once"),
      onExit: () => undefined,
    });
    const report = await runConformance(tried, {
      samples: ConformanceSamples.parse(env),
      hostEntry: pluginHostEntry(),
      signal: interrupt.signal,
      ...(flags.only === undefined ? {} : { only: flags.only }),
      onResult: (result) => {
        if (!flags.json) print(describe(result));
      },
    })
      .catch((error: unknown) => {
        if (isCookieError(error, "invalid_params")) throw usageError(`--only: ${error.message}`);
        throw error;
      })
      .finally(() => interrupt.dispose());
    if (flags.junit !== undefined) await writeReport(flags.junit, renderJunit(report));
    const { results, outcome } = report;
    if (flags.json) printJson(report);
    else {
      const count = (wanted: string) => results.filter((each) => each.outcome === wanted).length;
      print(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
      if (outcome === "skipped") print("nothing was checked: see the reasons above");
    }
    return outcome === "failed" ? ExitCode.failure : ExitCode.success;
  },
});

interface TargetFlags {
  readonly command: string | undefined;
  readonly arg: string[] | undefined;
  readonly name: string | undefined;
}

/** A manifest that the kernel would not take is told with its line, before anything is started. */
async function triedBy(folder: string | undefined, flags: TargetFlags) {
  const target = targetOf(folder, flags);
  if (target.directory !== undefined) await requireLoadable(target.directory, ExitCode.failure);
  return target;
}

function targetOf(folder: string | undefined, { command, arg = [], name }: TargetFlags) {
  if (command === undefined) {
    if (arg.length > 0 || name !== undefined) {
      throw usageError("--arg and --name belong to --command");
    }
    return { directory: resolve(folder ?? ".") };
  }
  if (folder !== undefined) throw usageError("give a folder or --command, not both");
  if (name === undefined) throw usageError("--command needs --name, the name of its entry");
  // The plugin runs in a folder of its own, so what lies here has to be named in full.
  return {
    command,
    args: arg.map((each) => (/^[^-].*\.\w+$/.test(each) ? resolve(each) : each)),
    name,
  };
}

function parseEnv(values: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    values.map((value) => {
      const at = value.indexOf("=");
      if (at < 1) throw usageError(`--env takes NAME=VALUE, not "${value}"`);
      return [value.slice(0, at), value.slice(at + 1)];
    }),
  );
}

async function writeReport(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unwritable";
    const message = `--junit: ${file} cannot be written (${why})`;
    throw new ExitError(ExitCode.failure, "output_file", message, error);
  }
}

function describe({ check, run, outcome, title, reason }: ConformanceResult): string {
  const where = run === "behind_ch" ? " (in a shared host)" : "";
  const line = printable(`${outcome.padEnd(7)} ${check} ${title}${where}`);
  return reason === null ? line : `${line}\n        ${printable(reason)}`;
}
