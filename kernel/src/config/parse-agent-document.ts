import { AgentId } from "@cookie-agent/sdk/protocol";
import {
  type AgentDocument,
  type AgentMode,
  type AgentModel,
  PARENT_MODEL,
} from "./agent-document.ts";
import { DEFAULT_AGENT_ID, fingerprintAgent } from "./built-in-agents.ts";
import { ConfigError, type ConfigErrorCode, type ConfigLayer } from "./config-error.ts";
import { decodePermissions } from "./decode-permissions.ts";
import { DecodeProblem } from "./decode-problem.ts";
import { internalLimitsOf, isInternalId } from "./internal-limits.ts";
import { formatKeyPath } from "./key-path.ts";
import { parseStrictYaml, type YamlDocument, YamlProblem } from "./strict-yaml.ts";
import { TableReader, unknownKeyAdvice } from "./table-reader.ts";
import { modelKey, plainText, variantReference } from "./text-rules.ts";

export const MAX_AGENT_BYTES = 256 * 1024;
const MAX_PART_BYTES = 128 * 1024;
const KEYS = ["description", "mode", "enabled", "models", "limits", "permissions"];

export interface AgentFile {
  readonly layer: ConfigLayer;
  readonly path: string;
  /** File name without `.md`. */
  readonly stem: string;
  readonly bytes: Uint8Array;
}

/** A document with what merged validation needs to place its errors. */
export interface ParsedAgent {
  readonly document: AgentDocument;
  errorAt(problem: DecodeProblem): ConfigError;
}

/** Parses one authored agent document; rejects with `ConfigError`. */
export async function parseAgentDocument(file: AgentFile): Promise<ParsedAgent> {
  if (!AgentId.safeParse(file.stem).success) {
    throw fileError(file, "agent_filename", 1, "the file name is no valid agent id", "rename it");
  }
  const { frontmatter, body } = splitDocument(file);
  let yaml: YamlDocument | undefined;
  const errorAt = (problem: DecodeProblem) =>
    new ConfigError({
      code: problem.code,
      layer: file.layer,
      path: file.path,
      key: problem.keyPath.length === 0 ? undefined : formatKeyPath(problem.keyPath),
      line: frontmatterLine(problem, yaml),
      problem: problem.problem,
      advice: problem.advice,
    });
  try {
    yaml = await parseStrictYaml(frontmatter);
    const decoded = decodeDocument(file, yaml.root, frontmatter, body);
    const { lineOf } = yaml;
    // The opening fence is line 1. A bare effect stands in the line of its action.
    const ruleLines = decoded.permissions.map(
      ({ action, resource }) => lineOf(["permissions", action, resource]) + 1,
    );
    return { document: { ...decoded, written: { path: file.path, ruleLines } }, errorAt };
  } catch (error) {
    throw error instanceof DecodeProblem ? errorAt(error) : error;
  }
}

/** Line in the file: the opening fence is line 1. */
function frontmatterLine(problem: DecodeProblem, yaml: YamlDocument | undefined) {
  const line = problem instanceof YamlProblem ? problem.line : yaml?.lineOf(problem.keyPath);
  return line === undefined ? undefined : line + 1;
}

function splitDocument(file: AgentFile): { frontmatter: string; body: string } {
  if (file.bytes.length > MAX_AGENT_BYTES) {
    throw fileError(file, "agent_limit", undefined, "over 256 KiB", "shorten it");
  }
  const text = decodeUtf8(file);
  const environment = text.indexOf("${env:");
  if (environment >= 0) {
    throw fileError(
      file,
      "agent_frontmatter",
      text.slice(0, environment).split("\n").length,
      "${env:…} is not allowed in an agent document",
      "remove it",
    );
  }
  if (!text.startsWith("---\n")) {
    throw fileError(file, "agent_frontmatter", 1, "the first line must be ---", "add it");
  }
  const close = /^---$/m.exec(text.slice(4));
  if (close === null) {
    throw fileError(file, "agent_frontmatter", 1, "the closing line --- is missing", "add it");
  }
  const frontmatter = text.slice(4, 4 + close.index);
  const body = text.slice(4 + close.index + 4).replace(/\n+$/, "\n");
  if (Buffer.byteLength(frontmatter) > MAX_PART_BYTES) {
    throw fileError(file, "agent_limit", 1, "the frontmatter is over 128 KiB", "shorten it");
  }
  if (Buffer.byteLength(body) > MAX_PART_BYTES) {
    throw fileError(file, "agent_limit", undefined, "the prompt is over 128 KiB", "shorten it");
  }
  if (body.trim() === "") {
    throw fileError(file, "agent_body_empty", undefined, "the prompt is blank", "write one");
  }
  return { frontmatter, body };
}

function decodeUtf8(file: AgentFile): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(file.bytes);
    return text.replace(/\r\n?/g, "\n");
  } catch {
    throw fileError(file, "agent_frontmatter", undefined, "invalid UTF-8", "save it as UTF-8");
  }
}

function decodeDocument(
  file: AgentFile,
  root: unknown,
  frontmatter: string,
  body: string,
): AgentDocument {
  const reader = openFrontmatter(root ?? new Map());
  const description = reader.required(
    "description",
    reader.string("description", plainText(1, 512)),
  );
  const mode = reader.required(
    "mode",
    reader.oneOf("mode", ["primary", "subagent", "all", "internal"]),
  );
  checkReserved(file.stem, mode, reader);
  return {
    id: file.stem,
    source: file.layer,
    description,
    mode,
    enabled: reader.required("enabled", reader.boolean("enabled")),
    models: decodeModels(reader, mode),
    ...decodeLimits(reader, mode, file.stem),
    permissions: decodePermissions(reader),
    prompt: body,
    ...fingerprintAgent(file.stem, frontmatter, body),
  };
}

function openFrontmatter(root: unknown): TableReader {
  const reader = new TableReader(root, []);
  const unknown = [...reader.keys()].find((key) => !KEYS.includes(key));
  if (unknown === undefined) return reader;
  throw reader.fail(
    "unknown_key",
    unknown,
    "unknown key",
    unknown === "tools" ? "use permissions" : unknownKeyAdvice(unknown, KEYS),
  );
}

function checkReserved(id: string, mode: AgentMode, reader: TableReader): void {
  if (id === DEFAULT_AGENT_ID) {
    throw reader.fail("agent_reserved", [], `the id ${id} is reserved`, "rename the file");
  }
  if (isInternalId(id) && mode !== "internal") {
    throw reader.fail("agent_reserved", "mode", `agent ${id} must have the mode internal`);
  }
}

function decodeModels(reader: TableReader, mode: AgentMode): AgentModel[] {
  const entries = reader.required("models", reader.array("models"));
  if (entries.length === 0 && mode === "primary") {
    throw reader.fail("invalid_value", "models", "a primary agent needs a model", "add one");
  }
  const models: AgentModel[] = [];
  for (const [index, entry] of entries.entries()) {
    const item = new TableReader(entry, reader.at("models", index), ["model", "variant"]);
    const model = item.required("model", item.string("model"));
    const variant =
      item.value("variant") === null ? undefined : item.string("variant", variantReference);
    if (model === PARENT_MODEL) {
      if (mode !== "internal") {
        throw item.fail("invalid_value", "model", `${PARENT_MODEL} is for internal agents`);
      }
      if (variant !== undefined) {
        throw item.fail(
          "invalid_value",
          "variant",
          `${PARENT_MODEL} takes no variant`,
          "remove it",
        );
      }
    } else {
      const problem = modelKey(model);
      if (problem !== undefined) throw item.fail("invalid_value", "model", problem);
    }
    if (models.some((earlier) => earlier.model === model)) {
      throw item.fail("invalid_value", "model", "the model stands there twice", "remove one");
    }
    models.push({ model, variant: variant ?? null });
  }
  return models;
}

function decodeLimits(reader: TableReader, mode: AgentMode, id: string) {
  const limits = reader.table("limits", ["max_output_tokens", "timeout_ms"]);
  const maxOutputTokens = limits?.integer("max_output_tokens", { min: 0 }) ?? 0;
  const timeoutMs = limits?.integer("timeout_ms", { min: 0 }) ?? 0;
  if (mode === "internal") {
    const builtIn = internalLimitsOf(id);
    return {
      maxOutputTokens: maxOutputTokens || builtIn.maxOutputTokens,
      timeoutMs: timeoutMs || builtIn.timeoutMs,
    };
  }
  if (timeoutMs !== 0) {
    throw reader.fail(
      "invalid_value",
      ["limits", "timeout_ms"],
      "a timeout is for internal agents",
      "remove it",
    );
  }
  return { maxOutputTokens, timeoutMs };
}

function fileError(
  { layer, path }: Pick<AgentFile, "layer" | "path">,
  code: ConfigErrorCode,
  line: number | undefined,
  problem: string,
  advice: string,
): ConfigError {
  return new ConfigError({ code, layer, path, line, problem, advice });
}
