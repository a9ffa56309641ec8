import type { ToolCallPart } from "@cookie-agent/sdk/protocol";
import { ARTIFACT_SCHEME } from "../artifact/artifact-uri.ts";
import type { HistoryMessage, ToolResultMessage } from "../model/bound-model.ts";
import { mediaOfResult } from "../model/place-media.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import { byteLengthOfResult } from "./message-size.ts";

/** Keeps bytes for later; yields the public artifact URI. */
export type KeepArtifact = (bytes: Uint8Array) => Promise<string>;

/** A longer output gives way to a marker. */
const LARGE_OUTPUT_BYTES = 2048;
/** Of a text that gives way, so that its reader knows what it was. */
const HEAD_BYTES = 256;
const MAX_ARGUMENTS_BYTES = 2048;
const ARTIFACT_URI = /artifact:\/\/[0-9a-f]{64}(?:\/[A-Za-z0-9._-]+)?/g;
const MAX_REFERENCES = 8;

/**
 * A copy of the messages in plain words, for a model that refused them as too long: no reasoning, no calls that a wire
 * would want tools for, markers with artifact URIs in place of large outputs, none for what can be read again (S 10.4).
 */
export async function flattenHistory(
  messages: readonly HistoryMessage[],
  keep: KeepArtifact,
): Promise<HistoryMessage[]> {
  const flat: HistoryMessage[] = [];
  let calls = new Map<string, ToolCallPart>();
  for (const message of messages) {
    if (message.role === "user") flat.push(message);
    else if (message.role === "assistant") {
      const parts = message.content.filter((part) => part.type === "tool_call");
      calls = new Map(parts.map((part) => [part.id, part]));
      const words = message.content.flatMap((part) => {
        if (part.type === "tool_call") return [describeCall(part)];
        return part.type === "text" && part.text.trim() !== "" ? [part.text] : [];
      });
      if (words.length === 0) continue;
      const content = [{ type: "text" as const, text: words.join("\n") }];
      flat.push({ role: "assistant", content, model: message.model });
    } else {
      const results = await Promise.all(
        message.results.map((result) => describeResult(result, calls.get(result.callId), keep)),
      );
      flat.push({ role: "user", text: results.join("\n\n"), injected: true });
    }
  }
  return flat;
}

function describeCall({ name, input, raw_input: raw }: ToolCallPart): string {
  const args = cutUtf8(raw ?? stableText(input), MAX_ARGUMENTS_BYTES);
  return `[called ${name} with ${args}]`;
}

async function describeResult(
  result: ToolResultMessage,
  call: ToolCallPart | undefined,
  keep: KeepArtifact,
): Promise<string> {
  const state = result.isError ? "failed" : "answered";
  const head = `[${result.name} ${state}]`;
  const artifact = call === undefined ? undefined : readArtifactOf(call);
  if (artifact !== undefined) return `${head} [left out: ${artifact} can be read again]`;
  const { output, details } = result;
  const byteLength = byteLengthOfResult(result);
  const media = mediaOfResult(result);
  if (byteLength <= LARGE_OUTPUT_BYTES && media.length === 0) {
    return `${head} ${output}${details === null ? "" : `\n${canonicalJson(details)}`}`;
  }
  const isPlain = details === null && media.length === 0 && result.additional === undefined;
  const kept = isPlain
    ? output
    : canonicalJson({
        output,
        metadata: details ?? {},
        attachments: media.map(({ reference, filename }) => ({ reference, filename })),
      });
  const uri = await keep(Buffer.from(kept));
  const references = [...new Set(output.match(ARTIFACT_URI) ?? [])].slice(0, MAX_REFERENCES);
  const form = isPlain ? "all of it" : "all of it, as JSON of the tool's content";
  const refers = references.length === 0 ? "" : `; it refers to ${references.join(", ")}`;
  const start = cutUtf8(output, HEAD_BYTES);
  return `${head} ${start}\n[${byteLength} bytes left out; ${form}: ${uri}${refers}]`;
}

/** The artifact that a call reads, if it names one. */
function readArtifactOf({ input }: ToolCallPart): string | undefined {
  if (typeof input !== "object" || input === null) return undefined;
  return Object.values(input).find(
    (value): value is string => typeof value === "string" && value.startsWith(ARTIFACT_SCHEME),
  );
}

function stableText(input: unknown): string {
  try {
    return JSON.stringify(input) ?? "";
  } catch {
    return "";
  }
}
