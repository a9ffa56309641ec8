import type { InternalAgentInvocationId } from "@cookie-agent/sdk/protocol";
import { domainDigest } from "../support/digest.ts";
import { cutUtf8, shown } from "../support/safe-text.ts";
import { type InternalAgentOwner, runInternalAgent } from "./run-internal-agent.ts";

export interface ProposedTitle {
  readonly title: string;
  readonly invocationId: InternalAgentInvocationId;
}

/** A title for a session that began with these messages; null when the agent gives none that can be used (S-228). */
export async function askTitle(
  owner: InternalAgentOwner,
  inputs: readonly string[],
  maxChars: number,
  signal: AbortSignal,
): Promise<ProposedTitle | null> {
  // As JSON no message can end where another one begins, or pass for more than a message.
  const text = JSON.stringify(inputs);
  const outcome = await runInternalAgent(
    owner,
    {
      kind: "session_title",
      input: {
        summary: `${inputs.length} user messages, ${Buffer.byteLength(text)} bytes`,
        digest: domainDigest("cookie-agent:internal-agent-input:1", ["title", text]),
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
  if (outcome.kind !== "completed") return null;
  const title = cleanTitle(outcome.text, maxChars);
  return title === null ? null : { title, invocationId: outcome.invocationId };
}

const QUOTES = /^["'`“”„‘’«»‹›\s]+|["'`“”„‘’«»‹›\s]+$/gu;

/** One line that a list can show, without the quotes that models like to put around it; null: nothing is left (S-030). */
export function cleanTitle(text: string, maxChars: number): string | null {
  const [line = ""] = text.trim().split(/\r\n|[\n\r\u2028\u2029]/);
  const plain = shown(line).replace(/\s+/g, " ").replace(QUOTES, "");
  const cut = cutUtf8([...plain].slice(0, maxChars).join(""), 512).trim();
  return cut === "" ? null : cut;
}
