import { isCookieError, SessionCompact } from "@cookie-agent/sdk/protocol";
import { string as stringArg } from "@oclif/core/args";
import { string } from "@oclif/core/flags";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { ExitCode, ExitError } from "../../exit-code.ts";
import { InterruptSignal } from "../../headless/interrupt-signal.ts";
import { printable } from "../../printable.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printError, printJson } from "../../standard-streams.ts";

export const compactSession = defineCommand({
  summary: "Replace the conversation of a session by a summary, so that there is room again.",
  description: `The session's own model writes the summary. The record keeps everything; only what the model reads from now on is shorter.

Exit code 1 when nothing was summarized although there is something to summarize.`,
  examples: [
    '<%= config.bin %> session compact <id> --focus "the open questions about the parser"',
  ],
  args: { id: stringArg({ description: "session id", required: true, ignoreStdin: true }) },
  flags: {
    focus: string({ description: "what the summary is to pay attention to", helpValue: "text" }),
    ...attachFlags,
    "data-dir": dataDirFlag,
  },
  async run({ args, flags }) {
    const sessionId = requireSessionId(args.id, "session compact");
    const interrupt = new InterruptSignal({
      onStopping: () => printError("stopping; Ctrl-C again ends at once"),
      onExit: () => undefined,
    });
    try {
      const result = await withClient(flags, (client) =>
        client.request(
          SessionCompact,
          { session_id: sessionId, focus: flags.focus ?? null },
          { signal: interrupt.signal },
        ),
      );
      const problem = result.cancellation_reason ?? result.failure;
      if (flags.json) printJson({ session_id: sessionId, ...result });
      else if (problem !== undefined) printError(`not summarized: ${printable(problem)}`);
      else print(result.compacted ? "summarized" : "there is nothing to summarize");
      return problem === undefined ? undefined : ExitCode.failure;
    } catch (error) {
      if (!isCookieError(error, "cancelled")) throw error;
      throw new ExitError(ExitCode.cancelled, "cancelled", "the session was not summarized", error);
    } finally {
      interrupt.dispose();
    }
  },
});
