import type { JsonObject } from "@cookie-agent/sdk/protocol";
import type { Classification } from "../permission/permission-mode.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { domainDigest } from "../support/digest.ts";
import { type InternalAgentOwner, runInternalAgent } from "./run-internal-agent.ts";

/** All that the classifier learns: no history, no rules, nothing that other calls have left behind (S 6.13). */
export interface ApprovalInput {
  /** Null: nobody has said anything. */
  readonly latestUserMessage: string | null;
  readonly tool: string;
  readonly parameters: JsonObject;
}

const NO_USER_MESSAGE = "(no message: the user has said nothing in this conversation)";

/** What the classifier makes of a call; whatever goes wrong, and whatever it says beside its one word, is `ask`. */
export async function askApproval(
  owner: InternalAgentOwner,
  input: ApprovalInput,
  signal: AbortSignal,
): Promise<Classification> {
  const text = frameApproval(input);
  const outcome = await runInternalAgent(
    owner,
    {
      kind: "approval",
      input: {
        summary: `a call of ${input.tool}, ${Buffer.byteLength(text)} bytes`,
        digest: domainDigest("cookie-agent:internal-agent-input:1", ["approval", text]),
      },
      request: (prompt) => ({
        system: prompt,
        history: [{ role: "user", text }],
        tools: [],
        isAside: true,
      }),
      judgesInput: true,
    },
    signal,
  );
  return outcome.kind === "completed" ? parseDecision(outcome.text) : "ask";
}

/** One line of JSON with sorted keys: a parameter cannot end its string, so it can pose as nothing but itself. */
export function frameApproval({ latestUserMessage, tool, parameters }: ApprovalInput): string {
  const latest_user_message = latestUserMessage ?? NO_USER_MESSAGE;
  return canonicalJson({ latest_user_message, parameters, tool });
}

/** An object with this one key and no other way to write it, so nothing can be read in two ways. */
const DECISION =
  /^[ \t\r\n]*\{[ \t\r\n]*"decision"[ \t\r\n]*:[ \t\r\n]*"(allow|deny|ask)"[ \t\r\n]*\}[ \t\r\n]*$/;

/** Any deviation from the one form of an answer is `ask` (S-177). */
export function parseDecision(text: string): Classification {
  return (DECISION.exec(text)?.[1] ?? "ask") as Classification;
}
