import type {
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
} from "@ai-sdk/provider";
import type { CacheTtl, PromptCachingConfig } from "../config/config.ts";

export const DEFAULT_PROMPT_CACHING: PromptCachingConfig = {
  enabled: true,
  systemTtl: "one_hour",
  toolsTtl: "one_hour",
  rollingTtl: "five_minutes",
};

/** Puts at most three cache markers on copies of the marked elements; mapped messages are shared (C-170). */
export function markPrompt(
  prompt: LanguageModelV3Prompt,
  policy: PromptCachingConfig,
): LanguageModelV3Prompt {
  if (!policy.enabled) return prompt;
  const marked = [...prompt];
  const first = marked[0];
  const systemMarked = first?.role === "system" && first.content !== "";
  if (systemMarked) marked[0] = withMarker(first, policy.systemTtl);
  for (let index = marked.length - 1; index >= (systemMarked ? 1 : 0); index -= 1) {
    const message = marked[index];
    if (message === undefined || !isRollingTarget(message)) continue;
    marked[index] = withMarker(message, policy.rollingTtl);
    break;
  }
  return marked;
}

export function markTools(
  tools: readonly LanguageModelV3FunctionTool[],
  policy: PromptCachingConfig,
): LanguageModelV3FunctionTool[] {
  const last = tools.at(-1);
  if (!policy.enabled || last === undefined) return [...tools];
  return [...tools.slice(0, -1), withMarker(last, policy.toolsTtl)];
}

function withMarker<T extends LanguageModelV3Message | LanguageModelV3FunctionTool>(
  target: T,
  ttl: CacheTtl,
): T {
  const cacheControl = { type: "ephemeral", ttl: ttl === "one_hour" ? "1h" : "5m" };
  const anthropic = { ...target.providerOptions?.anthropic, cacheControl };
  return { ...target, providerOptions: { ...target.providerOptions, anthropic } };
}

/** Tool messages and empty ones are skipped (C-171). */
function isRollingTarget(message: LanguageModelV3Message): boolean {
  switch (message.role) {
    case "system":
      return message.content !== "";
    case "user":
      return message.content.some((part) => part.type === "file" || part.text !== "");
    case "assistant":
      return message.content.some(
        (part) => part.type === "tool-call" || (part.type === "text" && part.text !== ""),
      );
    case "tool":
      return false;
  }
}
