import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import type { FinishReason, Usage } from "@cookie-agent/sdk/protocol";

/** Why a response ended; calls count by being there, not by what the provider announces. */
export function toFinishReason(
  unified: string,
  raw: string | undefined,
  calls: boolean,
): FinishReason {
  if (unified === "length") return "length";
  if (unified === "content-filter") return raw === "refusal" ? "refused" : "content_filter";
  if (calls) return "tool_calls";
  // A server that announces calls and sends none has simply stopped.
  if (unified === "stop" || unified === "tool-calls") return "stop";
  return "other";
}

export function toUsage({ inputTokens, outputTokens }: LanguageModelV3Usage): Usage {
  return {
    input_tokens: toCount(inputTokens.total),
    input_tokens_no_cache: toCount(inputTokens.noCache),
    input_tokens_cache_read: toCount(inputTokens.cacheRead),
    input_tokens_cache_write: toCount(inputTokens.cacheWrite),
    output_tokens: toCount(outputTokens.total),
    output_tokens_text: toCount(outputTokens.text),
    output_tokens_reasoning: toCount(outputTokens.reasoning),
  };
}

function toCount(tokens: number | undefined): number | null {
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null;
}
