import { createOpenAI } from "@ai-sdk/openai";
import type { AdaptorModule, ModelTarget } from "./adaptor.ts";
import { readChatCallIds } from "./read-chat-call-ids.ts";

/** OpenAI's own chat wire. */
export const openaiChat: AdaptorModule = {
  readWireCallIds: readChatCallIds,
  openModel(target) {
    return {
      model: openProvider(target).chat(target.behaviour.wireModelId),
      providerOptions: (hasTools) => ({
        openai: {
          ...sharedOptions(target, hasTools),
          systemMessageMode: "developer",
        },
      }),
    };
  },
};

/** OpenAI's Responses wire: nothing is stored there, so reasoning comes back encrypted (C-151). */
export const openaiResponses: AdaptorModule = {
  openModel(target) {
    return {
      model: openProvider(target).responses(target.behaviour.wireModelId),
      providerOptions: (hasTools) => ({
        openai: {
          ...sharedOptions(target, hasTools),
          store: target.behaviour.options.store ?? false,
        },
      }),
    };
  },
};

function openProvider({ endpoint, behaviour, apiKey, headers, fetch }: ModelTarget) {
  const { organization, project } = behaviour.options;
  return createOpenAI({
    baseURL: endpoint,
    apiKey,
    headers: { ...headers },
    fetch,
    ...(organization !== undefined && { organization }),
    ...(project !== undefined && { project }),
  });
}

function sharedOptions({ behaviour, capabilities }: ModelTarget, hasTools: boolean) {
  const { reasoning } = behaviour;
  return {
    // The package guesses from the model's name, which a custom endpoint need not share.
    forceReasoning: capabilities.reasoning,
    ...(reasoning?.type === "effort" && { reasoningEffort: reasoning.value }),
    ...(hasTools && { parallelToolCalls: capabilities.parallelToolCalls }),
  };
}
