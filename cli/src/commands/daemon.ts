import type { Logger } from "@cookie-agent/kernel";
import { integer } from "@oclif/core/flags";
import { defineCommand } from "../command.ts";
import { dataDirFlag, dataDirOption } from "../data-dir-flag.ts";
import { ExitCode, ExitError } from "../exit-code.ts";
import { InterruptSignal } from "../headless/interrupt-signal.ts";
import { openOwnKernel } from "../open-kernel.ts";
import { jsonLine, printable } from "../printable.ts";
import { switchFlag } from "../switch-flag.ts";

export const daemon = defineCommand({
  summary: "Serve the sessions of this directory to other programs of this machine.",
  description: `The first line on stdout is the token, the second the address; nothing else is ever printed there. Other commands work on the daemon with --url and --token, or with COOKIE_DAEMON_TOKEN in their environment. Whoever has the token can do what you can do: never put it into a log.

News of its work goes to stderr, with --json as one document a line. SIGINT and SIGTERM end it: runs are cancelled, each with a record, then it exits with 0; a second signal ends it at once with 1.`,
  examples: [
    "<%= config.bin %> daemon --port 0",
    'COOKIE_DAEMON_TOKEN="$token" <%= config.bin %> session list',
  ],
  args: {},
  flags: {
    port: integer({
      description: "port of 127.0.0.1, 0 for any; default is server.port",
      min: 0,
      max: 65_535,
    }),
    "trust-workspace": switchFlag("trust this directory's own .cookie-agent as it is now"),
    "data-dir": dataDirFlag,
  },
  async run({ flags }) {
    // No child ever sees the token of another daemon (D-008).
    delete process.env["COOKIE_DAEMON_TOKEN"];
    const logger = flags.json ? jsonLogger : lineLogger;
    const interrupt = new InterruptSignal(
      { onStopping: () => logger.log("info", "shutting down"), onExit: () => undefined },
      ExitCode.failure,
    );
    try {
      const kernel = await openOwnKernel({
        trustWorkspace: flags["trust-workspace"],
        ...dataDirOption(flags["data-dir"]),
        logger,
        attended: true,
      });
      try {
        for (const notice of kernel.notices) logger.log("warn", notice);
        const { token, url } = await kernel.listen(
          flags.port === undefined ? {} : { port: flags.port },
        );
        await handOver(`${token}\n${url}\n`);
        await aborted(interrupt.signal);
      } finally {
        await kernel.close();
      }
    } finally {
      interrupt.dispose();
    }
    return ExitCode.success;
  },
});

/** A daemon whose token nobody can read is of no use. */
function handOver(lines: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(lines, (error) => {
      if (!error) resolve();
      else {
        const message = "the token cannot be handed over: stdout is closed";
        reject(new ExitError(ExitCode.failure, "stdout", message, error));
      }
    });
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const lineLogger: Logger = {
  log(level, message, fields) {
    if (level === "debug") return;
    const { plugin } = fields ?? {};
    const origin = typeof plugin === "string" ? `${plugin}: ` : "";
    const line = printable(`${level} ${origin}${message}`);
    process.stderr.write(`${new Date().toISOString()} ${line}\n`);
  },
};

const jsonLogger: Logger = {
  log(level, message, fields) {
    if (level === "debug") return;
    process.stderr.write(jsonLine({ ...fields, time: new Date().toISOString(), level, message }));
  },
};
