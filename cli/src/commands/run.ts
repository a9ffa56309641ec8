import {
  isCookieError,
  type PermissionMode,
  type RunSelection,
  RuntimeSnapshotGet,
  SessionCreate,
  type SessionId,
  SessionPermissionSet,
  SessionResume,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { Args, Flags } from "@oclif/core";
import { BaseCommand, describeError } from "../base-command.ts";
import { ExitCode, ExitError } from "../exit-code.ts";
import { parseAllowedTools } from "../headless/allowed-tools.ts";
import { driveRun, type RunEnd } from "../headless/drive-run.ts";
import { openOutput } from "../headless/output-sink.ts";
import { ProgressLine } from "../headless/progress-line.ts";
import { readPrompt } from "../headless/prompt-source.ts";
import { type OutputFormat, RunReport } from "../headless/run-report.ts";
import { selectRun } from "../headless/select-run.ts";
import { type LocalKernel, openLocalKernel } from "../open-kernel.ts";

/** Exit code after a second SIGINT (C 7.3). */
const INTERRUPTED_TWICE = 130;

export default class Run extends BaseCommand {
  static override summary = "Run one prompt to its end, without a daemon and without questions.";
  static override description =
    "Prints the final answer on stdout. Exit codes: 0 completed, 1 failed, 2 usage, 3 stopped by a permission, 4 cancelled, 5 not started.";
  static override examples = [
    "<%= config.bin %> run 'explain this repository'",
    '<%= config.bin %> run -m offline/script \'call read {"filePath":"README.md","limit":3}\'',
    "git diff | <%= config.bin %> run -f - -o json",
  ];

  static override args = {
    prompt: Args.string({ description: "the prompt; - reads stdin" }),
  };

  static override flags = {
    prompt: Flags.string({ char: "p", description: "the prompt; - reads stdin" }),
    "prompt-file": Flags.string({ char: "f", description: "file with the prompt; - reads stdin" }),
    agent: Flags.string({ char: "a", description: "agent that runs" }),
    model: Flags.string({ char: "m", description: "model as provider/model" }),
    variant: Flags.string({ description: "variant of the model; base = none" }),
    "permission-mode": Flags.string({
      description:
        "what happens when a rule says ask: auto-approve, auto-approve-n, auto-approve-y, ask, yolo",
      default: "auto-approve",
    }),
    "allowed-tools": Flags.string({
      description:
        "allow without asking: read, write, bash, delegate, mcp, plugin, plugin:<name>, skill:<name>",
      multiple: true,
      multipleNonGreedy: true,
    }),
    "trust-workspace": Flags.boolean({
      description: "trust this directory's own configuration for this run only",
      default: false,
    }),
    "max-turns": Flags.integer({ description: "most model turns", default: 100, min: 1 }),
    timeout: Flags.integer({ description: "most seconds for the whole run", default: 600, min: 1 }),
    "resume-session": Flags.string({ description: "id of the session to go on with" }),
    "data-dir": Flags.string({ description: "where sessions are kept" }),
    output: Flags.string({
      char: "o",
      description: "what is printed",
      options: ["text", "json", "none"],
    }),
    "output-file": Flags.string({ description: "write the output there instead of stdout" }),
    verbose: Flags.boolean({ description: "progress on stderr", default: false }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Run);
    if (flags.json && flags.output !== undefined)
      throw usage("--json and --output exclude each other");
    const format = (flags.json ? "json" : (flags.output ?? "text")) as OutputFormat;
    if (format === "none" && flags["output-file"] !== undefined) {
      throw usage("--output-file and --output none exclude each other");
    }
    const mode = parseMode(flags["permission-mode"]);
    const allowed = parseAllowedTools(flags["allowed-tools"] ?? []);
    const input = await readPrompt({
      positional: args.prompt,
      prompt: flags.prompt,
      promptFile: flags["prompt-file"],
    });

    const interrupt = new InterruptSignal();
    const sink = openOutput(flags["output-file"], () => interrupt.abort());
    const local = await setUp(() =>
      openLocalKernel({
        headless: true,
        trustWorkspace: flags["trust-workspace"],
        ...(flags["data-dir"] === undefined ? {} : { dataDir: flags["data-dir"] }),
      }),
    );
    const progress = process.stderr.isTTY ? new ProgressLine(process.stderr) : null;
    const report = new RunReport({ format, verbose: flags.verbose, sink, progress });
    let end: RunEnd;
    try {
      for (const notice of local.kernel.notices) report.notice(notice);
      const session = await setUp(() =>
        openSession(local, {
          agent: flags.agent,
          model: flags.model,
          variant: flags.variant,
          resume: flags["resume-session"],
        }),
      );
      await setUp(() => configureSession(local, session.sessionId, mode, allowed));
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
    } finally {
      progress?.end();
      interrupt.dispose();
      await local.close();
      sink.close();
    }
    process.exitCode = end.exitCode;
  }
}

interface OpenedSession {
  readonly sessionId: SessionId;
  readonly cursor: number;
  readonly selection: RunSelection;
}

async function openSession(
  { client }: LocalKernel,
  flags: {
    agent: string | undefined;
    model: string | undefined;
    variant: string | undefined;
    resume: string | undefined;
  },
): Promise<OpenedSession> {
  const { snapshot } = await client.request(RuntimeSnapshotGet, {});
  if (flags.resume === undefined) {
    const selection = selectRun(snapshot, flags, null);
    const { session } = await client.request(SessionCreate, { selection });
    return { sessionId: session.session_id, cursor: session.last_event_seq, selection };
  }
  const resumed = await client.request(SessionResume, { session_id: flags.resume as SessionId });
  return {
    sessionId: resumed.session.session_id,
    cursor: resumed.session.last_event_seq,
    selection: selectRun(snapshot, flags, resumed.selection),
  };
}

async function configureSession(
  { client }: LocalKernel,
  sessionId: SessionId,
  mode: PermissionMode,
  allowed: ReturnType<typeof parseAllowedTools>,
): Promise<void> {
  await client.request(SessionSetPermissionMode, { session_id: sessionId, mode });
  for (const rule of allowed) {
    await client.request(SessionPermissionSet, {
      session_id: sessionId,
      ...rule,
      effect: "allow",
      source: "flag",
    });
  }
}

/** What fails before the run exists is a failure of set-up (C 7.3). */
async function setUp<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof ExitError) throw error;
    const { code, message } = describeError(error);
    throw new ExitError(ExitCode.setup, isCookieError(error) ? error.code : code, message, error);
  }
}

/** SIGINT and SIGTERM ask the run to stop; a second SIGINT ends the process at once. */
class InterruptSignal {
  readonly #controller = new AbortController();
  readonly #onSignal = (): void => {
    if (this.#controller.signal.aborted) process.exit(INTERRUPTED_TWICE);
    this.abort();
  };

  constructor() {
    process.on("SIGINT", this.#onSignal);
    process.on("SIGTERM", this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }

  dispose(): void {
    process.off("SIGINT", this.#onSignal);
    process.off("SIGTERM", this.#onSignal);
  }
}

function parseMode(text: string): PermissionMode {
  const modes: readonly PermissionMode[] = [
    "auto_approve",
    "auto_approve_n",
    "auto_approve_y",
    "ask",
    "yolo",
  ];
  const mode = modes.find((known) => known === text.replaceAll("-", "_"));
  if (mode === undefined) {
    throw usage(
      `--permission-mode does not know "${text}"; it takes auto-approve, auto-approve-n, auto-approve-y, ask, yolo`,
    );
  }
  return mode;
}

function usage(message: string): ExitError {
  return new ExitError(ExitCode.usage, "usage", message);
}
