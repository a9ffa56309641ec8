import type { CookieClient } from "@cookie-agent/sdk/client";
import { PluginsStatus } from "@cookie-agent/sdk/protocol";
import { string as stringArg } from "@oclif/core/args";
import { integer, string } from "@oclif/core/flags";
import { defineCommand } from "../command.ts";
import { dataDirFlag, dataDirOption } from "../data-dir-flag.ts";
import { ExitCode, ExitError, usageError } from "../exit-code.ts";
import { parseAllowedTools } from "../headless/allowed-tools.ts";
import { driveRun, type RunEnd } from "../headless/drive-run.ts";
import { InterruptSignal } from "../headless/interrupt-signal.ts";
import { openRunSession } from "../headless/open-run-session.ts";
import { openOutput } from "../headless/output-sink.ts";
import { permissionFlags } from "../headless/permission-flags.ts";
import { parsePermissionMode } from "../headless/permission-mode.ts";
import { openProgressLine } from "../headless/progress-line.ts";
import { readPrompt } from "../headless/prompt-source.ts";
import { type OutputFormat, RunReport } from "../headless/run-report.ts";
import { setUp } from "../headless/set-up.ts";
import { openLocalKernel } from "../open-kernel.ts";
import { switchFlag } from "../switch-flag.ts";
import { offerTrust } from "../workspace-question.ts";

/** A timer cannot wait longer. */
const LONGEST_TIMEOUT_S = 2_147_483;
const MOST_TURNS = 1_000_000;

export const run = defineCommand({
  summary: "Run one prompt to its end, without a daemon and without approvals.",
  description: `Prints the final answer on stdout; on a terminal, stderr shows what is going on.

On a terminal one question may come first: whether to trust what this directory's own .cookie-agent brings. Then nobody is asked anything: a tool call that a rule wants approved is decided by --permission-mode, and where that leaves it to a person the run is cancelled.

Exit codes: 0 completed, 1 failed, 2 wrong command line, 3 stopped by a permission, 4 cancelled or interrupted, 5 could not start.`,
  examples: [
    "<%= config.bin %> run 'explain this repository'",
    '<%= config.bin %> run -m offline/script \'call read {"filePath":"README.md","limit":3}\'',
    "git diff | <%= config.bin %> run -f - -o json",
  ],
  args: {
    prompt: stringArg({ description: "the prompt; - reads stdin", ignoreStdin: true }),
  },
  flags: {
    prompt: string({ char: "p", description: "the prompt; - reads stdin" }),
    "prompt-file": string({ char: "f", description: "file with the prompt; - reads stdin" }),
    agent: string({ char: "a", description: "agent that runs" }),
    model: string({ char: "m", description: "model, as provider/model" }),
    variant: string({ description: "variant of the model; base is none" }),
    ...permissionFlags,
    "trust-workspace": switchFlag("trust this directory's own .cookie-agent, for this run only"),
    "max-turns": integer({
      description: "most model turns",
      default: 100,
      min: 1,
      max: MOST_TURNS,
    }),
    timeout: integer({
      description: "most seconds for the whole run",
      default: 600,
      min: 1,
      max: LONGEST_TIMEOUT_S,
    }),
    "resume-session": string({ description: "id of the session to go on with" }),
    "data-dir": dataDirFlag,
    output: string({
      char: "o",
      description: "what is printed: text (the default), json, none",
      options: ["text", "json", "none"],
    }),
    "output-file": string({ description: "write the output there instead of on stdout" }),
    verbose: switchFlag("one line on stderr for each step"),
  },
  async run({ args, flags }): Promise<ExitCode> {
    const format = outputFormat(flags);
    const mode = parsePermissionMode(flags["permission-mode"]);
    const allowed = parseAllowedTools(flags["allowed-tools"] ?? []);
    const input = await readPrompt({
      positional: args.prompt,
      prompt: flags.prompt,
      promptFile: flags["prompt-file"],
    });

    const readsStdin = [args.prompt, flags.prompt, flags["prompt-file"]].includes("-");
    if (format === "text" && !flags["trust-workspace"] && !readsStdin) await offerTrust();

    // A pipe that nobody reads yet holds this up: no signal is caught before, so that Ctrl-C ends it.
    const sink = openOutput(flags["output-file"], () => interrupt.abort("output"));
    const progress = openProgressLine(process.stderr, flags.verbose);
    const interrupt = new InterruptSignal({
      onStopping: () => progress?.note("stopping; Ctrl-C again ends at once"),
      onExit: () => progress?.end(),
    });
    const report = new RunReport({ format, verbose: flags.verbose, sink, progress });
    let end: RunEnd;
    try {
      const local = await setUp(
        openLocalKernel({
          trustWorkspace: flags["trust-workspace"],
          ...dataDirOption(flags["data-dir"]),
          logger: flags.verbose ? report.logger : report.noticesOnly,
        }),
      );
      try {
        for (const notice of local.kernel.notices) report.notice(notice);
        const session = await setUp(
          openRunSession(local.client, {
            agent: flags.agent,
            model: flags.model,
            variant: flags.variant,
            resume: flags["resume-session"],
            mode,
            allowed,
          }),
        );
        for (const notice of await failedPlugins(local.client)) report.notice(notice);
        end = await driveRun(
          local.client,
          {
            ...session,
            input,
            maxTurns: flags["max-turns"],
            timeoutMs: flags.timeout * 1000,
            outputs: format === "json" && flags.verbose,
            signal: interrupt.signal,
          },
          report,
        );
        report.finish(session.sessionId, end);
      } catch (error) {
        if (!(error instanceof ExitError) || error.exitCode !== ExitCode.success) throw error;
        report.notice(error.message);
        return error.exitCode;
      } finally {
        await local.close();
      }
    } finally {
      progress?.end();
      interrupt.dispose();
      sink.close();
    }
    return end.exitCode;
  },
});

/** A plugin that cannot be used is named, or its tools would be missing without a word (B148). */
async function failedPlugins(client: CookieClient): Promise<string[]> {
  const { plugins } = await client.request(PluginsStatus, {});
  return plugins
    .filter(({ state }) => state === "failed")
    .map(({ plugin, reason }) => `plugin ${plugin} cannot be used: ${reason ?? "it failed"}`);
}

function outputFormat(flags: {
  readonly json: boolean;
  readonly output: string | undefined;
  readonly "output-file": string | undefined;
}): OutputFormat {
  if (flags.json && flags.output !== undefined) {
    throw usageError("--json and --output exclude each other; --json is --output json");
  }
  const format = (flags.json ? "json" : (flags.output ?? "text")) as OutputFormat;
  if (format === "none" && flags["output-file"] !== undefined) {
    throw usageError("--output-file and --output none exclude each other");
  }
  return format;
}
