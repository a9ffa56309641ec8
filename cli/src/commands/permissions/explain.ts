import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  isCookieError,
  type ParamsInput,
  type PermissionExplanation,
  RuntimeSnapshotGet,
  SessionCreate,
  SessionGet,
  type SessionId,
  SessionPermissionExplain,
} from "@cookie-agent/sdk/protocol";
import { string as stringArg } from "@oclif/core/args";
import { string } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { dataDirFlag, dataDirOption } from "../../data-dir-flag.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { parseAllowedTools } from "../../headless/allowed-tools.ts";
import { permissionFlags } from "../../headless/permission-flags.ts";
import { parsePermissionMode } from "../../headless/permission-mode.ts";
import { selectRun } from "../../headless/select-run.ts";
import { setUp } from "../../headless/set-up.ts";
import { withLocalKernel } from "../../open-kernel.ts";
import { explanationText } from "../../permissions/explanation-text.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";

/** Stands in where no model is configured yet; the rules do not depend on it. */
const OFFLINE_MODEL = "offline/script";

export const explainPermissions = defineCommand({
  summary: "Say which rules decide about a call, and why, without making it.",
  description: `The call is prepared as a run would prepare it: its arguments are checked, what it touches is named, and the rules of the agent and of the session judge that. Nothing runs and no session is kept.

Exit codes: 0 explained, 1 the call cannot be prepared, 2 wrong command line, 5 could not start.`,
  examples: [
    `<%= config.bin %> permissions explain read '{"filePath":".env"}'`,
    `<%= config.bin %> permissions explain bash '{"command":"git push && ls"}' --permission-mode yolo`,
  ],
  args: {
    tool: stringArg({ description: "name of the tool", required: true, ignoreStdin: true }),
    arguments: stringArg({ description: "arguments, as JSON", default: "{}", ignoreStdin: true }),
  },
  flags: {
    agent: string({ char: "a", description: "agent whose rules count" }),
    ...permissionFlags,
    "resume-session": string({ description: "id of the session whose own rules count too" }),
    "trust-workspace": switchFlag("trust this directory's own .cookie-agent, for this call only"),
    "data-dir": dataDirFlag,
  },
  async run({ args, flags }) {
    const mode = parsePermissionMode(flags["permission-mode"]);
    const allowed = parseAllowedTools(flags["allowed-tools"] ?? []);
    const callArguments = parseArguments(args.arguments);
    const resume = flags["resume-session"];
    const sessionId =
      resume === undefined ? undefined : requireSessionId(resume, "--resume-session");
    const explanation = await withLocalKernel(
      { trustWorkspace: flags["trust-workspace"], ...dataDirOption(flags["data-dir"]) },
      async ({ client }) => {
        const session = await setUp(chooseSession(client, flags.agent, sessionId));
        return explain(client, {
          ...session,
          tool: args.tool,
          arguments: callArguments,
          mode,
          rules: allowed.map((rule) => ({ ...rule, effect: "allow" as const })),
        });
      },
    );
    if (flags.json) printJson({ explanation });
    else print(explanationText(explanation));
    return undefined;
  },
});

async function explain(
  client: CookieClient,
  question: ParamsInput<typeof SessionPermissionExplain>,
): Promise<PermissionExplanation> {
  try {
    const { explanation } = await client.request(SessionPermissionExplain, question);
    return explanation;
  } catch (error) {
    if (!isCookieError(error)) throw error;
    if (error.data["field"] === "tool") throw usageError(error.message);
    throw new ExitError(ExitCode.failure, error.code, error.message, error);
  }
}

/** An existing session is only looked at; a new one never reaches the disk. */
async function chooseSession(
  client: CookieClient,
  agent: string | undefined,
  resumed: SessionId | undefined,
) {
  const { snapshot } = await client.request(RuntimeSnapshotGet, {});
  const model = snapshot.default_agent === null ? OFFLINE_MODEL : undefined;
  if (resumed === undefined) {
    const selection = selectRun(snapshot, { agent, model }, null);
    const { session } = await client.request(SessionCreate, { selection });
    return { session_id: session.session_id, selection };
  }
  const { session } = await client.request(SessionGet, { session_id: resumed });
  const selection = agent === undefined ? undefined : selectRun(snapshot, { agent, model }, null);
  return { session_id: session.session_id, ...(selection && { selection }) };
}

function parseArguments(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? `: ${error.message}` : "";
    throw usageError(`the arguments are no JSON${reason}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw usageError(`the arguments have to be a JSON object, such as '{"filePath":"README.md"}'`);
}
