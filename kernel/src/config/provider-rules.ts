import type { VariantReasoning } from "./provider-config.ts";

export interface AuthMethod {
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** Parameter name to the values it may have. */
  readonly parameters: Readonly<Record<string, readonly string[]>>;
}

const API_KEY: AuthMethod = { required: ["api_key"], optional: [], parameters: {} };

/** Credential fields of each wire form (C 5.2). */
export const AUTH_METHODS: ReadonlyMap<string, AuthMethod> = new Map([
  ["no-auth-v1", { required: [], optional: [], parameters: {} }],
  ["bearer-api-key-v1", API_KEY],
  ["api-key-header-v1", { ...API_KEY, parameters: { header_name: ["x-api-key", "api-key"] } }],
  ["anthropic-api-key-v1", API_KEY],
  ["google-api-key-header-v1", API_KEY],
  ["oauth-access-token-v1", { ...API_KEY, required: ["access_token"] }],
  [
    "aws-sigv4-credentials-v1",
    {
      required: ["access_key_id", "secret_access_key"],
      optional: ["session_token"],
      parameters: {},
    },
  ],
  ["azure-api-key-v1", API_KEY],
]);

export interface AdaptorRules {
  /** Methods that a custom provider may name. */
  readonly auth: readonly string[];
  /** Where the service of that name lies. */
  readonly defaultEndpoint?: string;
  /** The path an `http` endpoint on this machine must have. */
  readonly loopbackPath: string;
  readonly setup: { readonly required: readonly string[]; readonly optional: readonly string[] };
  readonly options: readonly string[];
  readonly ownedHeaders: readonly string[];
  readonly reasoning: readonly VariantReasoning["type"][];
}

const NO_SETUP = { required: [], optional: [] };
const EVERY_REASONING = ["effort", "toggle", "budget_tokens"] as const;

const OPENAI: AdaptorRules = {
  auth: ["bearer-api-key-v1", "no-auth-v1"],
  loopbackPath: "/v1",
  setup: NO_SETUP,
  options: ["organization", "project", "store"],
  ownedHeaders: [],
  reasoning: ["effort"],
};
const ANTHROPIC: AdaptorRules = {
  auth: ["anthropic-api-key-v1"],
  loopbackPath: "/v1",
  setup: NO_SETUP,
  options: ["beta"],
  ownedHeaders: ["anthropic-beta"],
  reasoning: EVERY_REASONING,
};
const AZURE: AdaptorRules = {
  auth: ["azure-api-key-v1"],
  loopbackPath: "/",
  setup: {
    required: ["api_version", "deployment"],
    optional: ["model", "version", "deployment_type"],
  },
  options: [],
  ownedHeaders: [],
  reasoning: ["effort"],
};

/** What a custom provider may say, by adaptor (C 5.4, 5.6). */
export const ADAPTORS: ReadonlyMap<string, AdaptorRules> = new Map<string, AdaptorRules>([
  [
    "openai-compatible",
    {
      ...OPENAI,
      auth: ["bearer-api-key-v1", "api-key-header-v1", "no-auth-v1"],
      options: ["api_path"],
    },
  ],
  ["openai-chat", { ...OPENAI, defaultEndpoint: "https://api.openai.com/v1" }],
  ["openai-responses", { ...OPENAI, defaultEndpoint: "https://api.openai.com/v1" }],
  ["anthropic", { ...ANTHROPIC, defaultEndpoint: "https://api.anthropic.com/v1" }],
  ["anthropic-compatible", ANTHROPIC],
  [
    "google-gemini",
    {
      auth: ["google-api-key-header-v1"],
      loopbackPath: "/v1beta",
      setup: NO_SETUP,
      options: [],
      ownedHeaders: [],
      reasoning: EVERY_REASONING,
    },
  ],
  [
    "google-vertex-gemini",
    {
      auth: ["oauth-access-token-v1"],
      loopbackPath: "/v1",
      setup: { required: ["project", "location"], optional: ["resource"] },
      options: [],
      ownedHeaders: [],
      reasoning: EVERY_REASONING,
    },
  ],
  [
    "aws-bedrock-converse",
    {
      auth: ["aws-sigv4-credentials-v1"],
      loopbackPath: "/",
      setup: { required: ["region"], optional: [] },
      options: [],
      ownedHeaders: ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"],
      reasoning: EVERY_REASONING,
    },
  ],
  ["azure-openai-chat", AZURE],
  ["azure-openai-responses", AZURE],
  [
    "cohere-v2-chat",
    {
      auth: ["bearer-api-key-v1"],
      loopbackPath: "/v2",
      setup: NO_SETUP,
      options: [],
      ownedHeaders: [],
      reasoning: ["toggle", "budget_tokens"],
    },
  ],
]);

/** Headers that the transport, the protocol or the credential owns. */
export const FORBIDDEN_HEADERS: readonly string[] = [
  "accept",
  "anthropic-version",
  "api-key",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "proxy-authorization",
  "set-cookie",
  "transfer-encoding",
  "user-agent",
  "x-api-key",
  "x-goog-api-key",
];
