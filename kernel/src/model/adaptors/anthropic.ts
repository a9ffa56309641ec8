import { createAnthropic } from "@ai-sdk/anthropic";
import type { JSONObject } from "@ai-sdk/provider";
import type { VariantReasoning } from "../../config/provider-config.ts";
import type { AdaptorModule } from "./adaptor.ts";

/** The Messages wire, at Anthropic or at servers that speak it. */
export const anthropicMessages: AdaptorModule = {
  openModel({ endpoint, behaviour, capabilities, apiKey, headers, fetch }) {
    const provider = createAnthropic({ baseURL: endpoint, apiKey, headers: { ...headers }, fetch });
    const { beta } = behaviour.options;
    return {
      model: provider.languageModel(behaviour.wireModelId),
      providerOptions: (hasTools) => ({
        anthropic: {
          // Eager argument streaming gives up the server's check of them and gains nothing here.
          toolStreaming: false,
          ...(beta !== undefined && { anthropicBeta: [...beta] }),
          ...(hasTools && !capabilities.parallelToolCalls && { disableParallelToolUse: true }),
          ...mapReasoning(behaviour.reasoning),
        },
      }),
    };
  },
};

function mapReasoning(reasoning: VariantReasoning | null): JSONObject {
  switch (reasoning?.type) {
    case undefined:
      return {};
    case "effort":
      return { effort: reasoning.value };
    case "toggle":
      return { thinking: { type: reasoning.enabled ? "adaptive" : "disabled" } };
    case "budget_tokens":
      return {
        thinking:
          reasoning.value > 0
            ? { type: "enabled", budgetTokens: reasoning.value }
            : { type: "adaptive" },
      };
  }
}
