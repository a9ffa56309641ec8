import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { AdaptorModule } from "./adaptor.ts";
import { readChatCallIds } from "./read-chat-call-ids.ts";

const NAME = "openaiCompatible";

/** The chat wire as most servers speak it. */
export const openaiCompatibleChat: AdaptorModule = {
  readWireCallIds: readChatCallIds,
  openModel({ endpoint, behaviour, capabilities, apiKey, headers, fetch }) {
    const provider = createOpenAICompatible({
      name: NAME,
      baseURL: endpoint,
      apiKey,
      headers: { ...headers },
      fetch,
      includeUsage: true,
      supportsStructuredOutputs: capabilities.structuredOutput,
    });
    const { reasoning } = behaviour;
    return {
      model: provider.chatModel(behaviour.wireModelId),
      providerOptions: (hasTools) => ({
        [NAME]: {
          ...(reasoning?.type === "effort" && { reasoningEffort: reasoning.value }),
          // Not a known option of the package, so it goes into the body as it is.
          ...(hasTools && !capabilities.parallelToolCalls && { parallel_tool_calls: false }),
        },
      }),
    };
  },
};
