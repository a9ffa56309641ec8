import type { ParsedNode } from "yaml";
import { DecodeProblem, type DecodeProblemFacts } from "./decode-problem.ts";
import type { KeyPath } from "./key-path.ts";

const MAX_DEPTH = 16;
const MAX_ENTRIES = 256;
const MAX_TEXT_BYTES = 128 * 1024;
/** Beyond this the parser is not even started: deep input can end the process. */
const MAX_SCANNED_DEPTH = 64;
const TOO_DEEP = `nested deeper than ${MAX_DEPTH} levels`;

export interface YamlDocument {
  /** Maps as `Map`, integers as bigint, like the decoders expect. */
  readonly root: unknown;
  /** 1-based line of a key, or of the nearest map around it. */
  lineOf(path: KeyPath): number;
}

/** A problem of the text itself, found before there is a document to look lines up in. */
export class YamlProblem extends DecodeProblem {
  /** 1-based. */
  readonly line: number;

  constructor(facts: DecodeProblemFacts, line: number) {
    super(facts);
    this.line = line;
  }
}

type Yaml = typeof import("../support/yaml-parser.ts");

/**
 * Parses YAML 1.2 core without anchors, aliases, tags, merge keys, directives and further documents (C-075).
 * Rejects with `YamlProblem`.
 */
export async function parseStrictYaml(text: string): Promise<YamlDocument> {
  const yaml = await import("../support/yaml-parser.ts");
  scanTokens(text, yaml);
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, {
    version: "1.2",
    schema: "core",
    strict: true,
    uniqueKeys: false,
    merge: false,
    stringKeys: true,
    resolveKnownTags: false,
    customTags: [],
    intAsBigInt: true,
    prettyErrors: false,
    logLevel: "silent",
    lineCounter: lines,
  });
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault !== undefined) {
    // The message of the parser may quote the text.
    const problem = `YAML syntax error (${fault.code.toLowerCase()})`;
    throw syntaxProblem(problem, lines.linePos(fault.pos[0]).line);
  }
  const places = new Map<string, number>();
  const lineOf = (path: KeyPath) => nearestLine(places, path);
  try {
    const root = toValue(document.contents, [], yaml, (path, offset) => {
      places.set(JSON.stringify(path), lines.linePos(offset).line);
    });
    return { root, lineOf };
  } catch (error) {
    throw error instanceof DecodeProblem ? new YamlProblem(error, lineOf(error.keyPath)) : error;
  }
}

function nearestLine(places: ReadonlyMap<string, number>, path: KeyPath): number {
  for (let length = path.length; length > 0; length -= 1) {
    const line = places.get(JSON.stringify(path.slice(0, length)));
    if (line !== undefined) return line;
  }
  return 1;
}

/** Refuses forbidden constructs and hostile depth from the token stream alone, which needs no stack. */
function scanTokens(text: string, yaml: Yaml): void {
  let line = 1;
  let column = 0;
  let flowDepth = 0;
  const blocks: number[] = [];
  for (const token of new yaml.Lexer().lex(text)) {
    const type = yaml.CST.tokenType(token);
    const forbidden = FORBIDDEN_TOKENS.get(type ?? "");
    if (forbidden !== undefined) {
      throw syntaxProblem(`${forbidden} are not allowed`, line);
    }
    if (type === "flow-map-start" || type === "flow-seq-start") flowDepth += 1;
    if (type === "flow-map-end" || type === "flow-seq-end") flowDepth -= 1;
    if (type !== "space" && type !== "newline" && flowDepth === 0) {
      // A node deeper in a block stands further right, except that a list may stand below its key.
      while ((blocks.at(-1) ?? -1) >= column) blocks.pop();
      blocks.push(column);
    }
    if (flowDepth + blocks.length > MAX_SCANNED_DEPTH) {
      throw new YamlProblem(limitProblem([], TOO_DEEP), line);
    }
    // One-character control tokens are marks of the lexer, not text.
    if (type === "doc-mode" || type === "flow-error-end" || type === "scalar") continue;
    const breaks = token.split("\n").length - 1;
    line += breaks;
    column = breaks === 0 ? column + token.length : token.length - token.lastIndexOf("\n") - 1;
  }
}

const FORBIDDEN_TOKENS: ReadonlyMap<string, string> = new Map([
  ["anchor", "anchors"],
  ["alias", "aliases"],
  ["tag", "tags"],
  ["directive-line", "directives"],
  ["doc-start", "further documents"],
  ["doc-end", "document end marks"],
]);

function syntaxProblem(problem: string, line: number): YamlProblem {
  const facts = { code: "agent_frontmatter", keyPath: [], problem, advice: "fix it" } as const;
  return new YamlProblem(facts, line);
}

function toValue(
  node: ParsedNode | null,
  path: KeyPath,
  yaml: Yaml,
  place: (path: KeyPath, offset: number) => void,
): unknown {
  if (node === null) return null;
  if (yaml.isScalar(node)) {
    const { value } = node;
    if (typeof value === "string" && Buffer.byteLength(value) > MAX_TEXT_BYTES) {
      throw limitProblem(path, `a string is over ${MAX_TEXT_BYTES} bytes`);
    }
    return value;
  }
  if (path.length >= MAX_DEPTH) throw limitProblem(path, TOO_DEEP);
  if (yaml.isSeq(node)) {
    if (node.items.length > MAX_ENTRIES) throw limitProblem(path, `over ${MAX_ENTRIES} entries`);
    return node.items.map((item, index) => {
      place([...path, index], item.range[0]);
      return toValue(item, [...path, index], yaml, place);
    });
  }
  if (!yaml.isMap(node)) throw limitProblem(path, "unsupported YAML");
  if (node.items.length > MAX_ENTRIES) throw limitProblem(path, `over ${MAX_ENTRIES} entries`);
  const map = new Map<string, unknown>();
  for (const { key, value } of node.items) {
    const name = yaml.isScalar(key) ? String(key.value) : "";
    const keyPath = [...path, name];
    place(keyPath, key.range[0]);
    if (name === "<<") {
      throw new DecodeProblem({
        code: "agent_frontmatter",
        keyPath,
        problem: "merge keys are not allowed",
        advice: "remove it",
      });
    }
    if (map.has(name)) throw duplicateProblem(keyPath);
    map.set(name, toValue(value, keyPath, yaml, place));
  }
  return map;
}

function duplicateProblem(keyPath: KeyPath): DecodeProblem {
  return new DecodeProblem({
    code: keyPath[0] === "permissions" ? "agent_permission" : "agent_frontmatter",
    keyPath,
    problem: "stands there twice",
    advice: "remove one of them",
  });
}

function limitProblem(keyPath: KeyPath, problem: string): DecodeProblem {
  return new DecodeProblem({ code: "agent_limit", keyPath, problem, advice: "fix it" });
}
