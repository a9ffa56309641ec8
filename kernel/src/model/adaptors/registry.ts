import type { AdaptorFacts } from "./adaptor.ts";

const MIB = 1024 * 1024;
const IN_RESULT = { placement: "tool_result", maxBytes: 20 * MIB } as const;
const IN_USER_TURN = { placement: "user_turn", maxBytes: 20 * MIB } as const;
/** The chat wire has text alone in the results of tools. */
const CHAT_MEDIA = { image: IN_USER_TURN, pdf: IN_USER_TURN };

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
  media: { image: { placement: "tool_result", maxBytes: 7.5 * MIB }, pdf: IN_RESULT },
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
    media: CHAT_MEDIA,
    strictByDefault: false,
    load: async () => (await import("./openai-compatible.ts")).openaiCompatibleChat,
  },
  {
    ...OPENAI_FACTS,
    id: "openai-chat",
    mapsMessagesAlone: true,
    media: CHAT_MEDIA,
    efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    load: async () => (await import("./openai.ts")).openaiChat,
  },
  {
    ...OPENAI_FACTS,
    id: "openai-responses",
    media: { image: IN_RESULT, pdf: IN_RESULT },
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
