import type { AdaptorFacts } from "./adaptor.ts";

const OPENAI_FACTS = {
  metadataKey: "openai",
  replayKey: "openai",
  promptCaching: false,
  addsBudgetToOutput: false,
  plainReasoning: false,
  portableIds: true,
  mapsMessagesAlone: false,
  strictByDefault: false,
} as const;

const ANTHROPIC_FACTS = {
  metadataKey: "anthropic",
  replayKey: "anthropic",
  efforts: ["low", "medium", "high", "xhigh", "max"],
  promptCaching: true,
  addsBudgetToOutput: true,
  plainReasoning: false,
  portableIds: true,
  mapsMessagesAlone: false,
  strictByDefault: false,
  load: async () => (await import("./anthropic.ts")).anthropicMessages,
} as const;

const ADAPTORS: readonly AdaptorFacts[] = [
  {
    id: "openai-compatible",
    metadataKey: "openaiCompatible",
    // The only native part of this wire is a thought signature, which it takes back under this name.
    replayKey: "google",
    efforts: null,
    promptCaching: false,
    addsBudgetToOutput: false,
    plainReasoning: true,
    portableIds: false,
    mapsMessagesAlone: true,
    strictByDefault: false,
    load: async () => (await import("./openai-compatible.ts")).openaiCompatibleChat,
  },
  {
    ...OPENAI_FACTS,
    id: "openai-chat",
    mapsMessagesAlone: true,
    efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    load: async () => (await import("./openai.ts")).openaiChat,
  },
  {
    ...OPENAI_FACTS,
    id: "openai-responses",
    strictByDefault: true,
    efforts: null,
    load: async () => (await import("./openai.ts")).openaiResponses,
  },
  { ...ANTHROPIC_FACTS, id: "anthropic" },
  { ...ANTHROPIC_FACTS, id: "anthropic-compatible" },
];

const BY_ID: ReadonlyMap<string, AdaptorFacts> = new Map(ADAPTORS.map((each) => [each.id, each]));

export function findAdaptor(id: string): AdaptorFacts | undefined {
  return BY_ID.get(id);
}

export const ADAPTOR_IDS: readonly string[] = ADAPTORS.map((each) => each.id);
