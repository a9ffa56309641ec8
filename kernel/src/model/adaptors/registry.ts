import type { AdaptorFacts } from "./adaptor.ts";

const BEARER = "bearer-api-key-v1";
const NO_AUTH = "no-auth-v1";

const OPENAI_FACTS = {
  loopbackPath: "/v1",
  authMethods: [BEARER, NO_AUTH],
  metadataKey: "openai",
  replayKey: "openai",
  reasoningTypes: ["effort"],
  forbiddenHeaders: [],
  promptCaching: false,
  addsBudgetToOutput: false,
  plainReasoning: false,
  portableIds: true,
  strictByDefault: false,
} as const;

const ANTHROPIC_FACTS = {
  loopbackPath: "/v1",
  authMethods: ["anthropic-api-key-v1"],
  metadataKey: "anthropic",
  replayKey: "anthropic",
  reasoningTypes: ["effort", "toggle", "budget_tokens"],
  efforts: ["low", "medium", "high", "xhigh", "max"],
  forbiddenHeaders: ["anthropic-beta"],
  promptCaching: true,
  addsBudgetToOutput: true,
  plainReasoning: false,
  portableIds: true,
  strictByDefault: false,
  load: async () => (await import("./anthropic.ts")).anthropicMessages,
} as const;

const ADAPTORS: readonly AdaptorFacts[] = [
  {
    id: "openai-compatible",
    loopbackPath: "/v1",
    authMethods: [BEARER, "api-key-header-v1", NO_AUTH],
    metadataKey: "openaiCompatible",
    // The only native part of this wire is a thought signature, which it takes back under this name.
    replayKey: "google",
    reasoningTypes: ["effort"],
    efforts: null,
    forbiddenHeaders: [],
    promptCaching: false,
    addsBudgetToOutput: false,
    plainReasoning: true,
    portableIds: false,
    strictByDefault: false,
    load: async () => (await import("./openai-compatible.ts")).openaiCompatibleChat,
  },
  {
    ...OPENAI_FACTS,
    id: "openai-chat",
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
