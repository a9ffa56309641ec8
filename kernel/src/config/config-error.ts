import { CookieError } from "@cookie-agent/sdk/protocol";

export type ConfigLayer = "user" | "workspace";

export type ConfigErrorCode =
  | "io"
  | "unsafe_path"
  | "not_found"
  | "too_large"
  | "toml_syntax"
  | "toml_limit"
  | "unknown_key"
  | "missing_key"
  | "invalid_type"
  | "invalid_value"
  | "conflict"
  | "runtime_invalid"
  | "provider_invalid"
  | "mcp_invalid"
  | "plugin_invalid"
  | "interpolation"
  | "env_missing"
  | "env_not_utf8"
  | "agent_filename"
  | "agent_frontmatter"
  | "agent_limit"
  | "agent_body_empty"
  | "agent_reserved"
  | "agent_permission"
  | "agent_delegation_invalid"
  | "agent_delegation_unknown"
  | "agent_delegation_ineligible";

export interface ConfigErrorFacts {
  readonly code: ConfigErrorCode;
  readonly layer: ConfigLayer;
  readonly path: string;
  /** Dotted, segments that are not bare in quotes. */
  readonly key?: string | undefined;
  /** 1-based. */
  readonly line?: number | undefined;
  /** 1-based. */
  readonly column?: number | undefined;
  /** Never an authored value, a source line or an environment value (C-031). */
  readonly problem: string;
  readonly advice?: string | undefined;
}

/** What stops a load: which file, which key, which line, what is wrong, what to do (C-030). */
export class ConfigError extends CookieError {
  override readonly name = "ConfigError";
  readonly layer: ConfigLayer;
  readonly path: string;
  readonly key: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly problem: string;
  readonly advice: string | undefined;

  constructor(facts: ConfigErrorFacts) {
    const { code, ...data } = facts;
    super(code, errorText(facts), { data });
    this.layer = facts.layer;
    this.path = facts.path;
    this.key = facts.key;
    this.line = facts.line;
    this.column = facts.column;
    this.problem = facts.problem;
    this.advice = facts.advice;
  }
}

function errorText({ path, line, key, problem, advice }: ConfigErrorFacts): string {
  const place = line === undefined ? path : `${path}:${line}`;
  const subject = key === undefined ? place : `${place}: ${key}`;
  return advice === undefined ? `${subject}: ${problem}` : `${subject}: ${problem}; ${advice}`;
}
