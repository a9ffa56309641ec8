import { ConfigError, type ConfigLayer } from "./config-error.ts";
import { DecodeProblem } from "./decode-problem.ts";
import type { KeyPath } from "./key-path.ts";
import { tableEntries } from "./table-reader.ts";

export const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_DEPTH = 32;
const MAX_ENTRIES = 4096;
const MAX_TEXT_BYTES = 256 * 1024;

/** One configuration file as read: its text places errors until the load is over. */
export interface ConfigSource {
  readonly layer: ConfigLayer;
  readonly path: string;
  /** Relative paths in the file resolve from here. */
  readonly directory: string;
  readonly text: string;
}

/** Steps 2 and 3 of the load pipeline: UTF-8, then TOML. Integers arrive as bigint. */
export async function parseToml(
  source: Omit<ConfigSource, "text">,
  bytes: Uint8Array,
): Promise<{ source: ConfigSource; table: unknown }> {
  const text = decodeText(source, bytes);
  const { parse, TomlError } = await import("smol-toml");
  try {
    return { source: { ...source, text }, table: parse(text, { integersAsBigInt: true }) };
  } catch (error) {
    const known = error instanceof TomlError;
    throw new ConfigError({
      code: "toml_syntax",
      ...place(source),
      ...(known && { line: error.line, column: error.column }),
      problem: `no valid TOML${known ? `: ${phraseOf(error)}` : ""}`,
      advice: "fix it",
    });
  }
}

/** What the parser says before it quotes the source, which may hold a secret. */
function phraseOf({ message }: Error): string {
  const [first = ""] = message.split("\n", 1);
  return first.replace(/^Invalid TOML document: /, "").replace(/\.$/, "");
}

/** Step 4: depth, entries, text length and value kinds (C-026). */
export function checkTomlLimits(value: unknown, path: KeyPath = []): void {
  if (typeof value === "string") {
    if (tooLong(value)) throw limitProblem(path, `a string is over ${MAX_TEXT_BYTES} bytes`);
    return;
  }
  if (typeof value === "bigint") {
    if (!Number.isSafeInteger(Number(value))) {
      throw limitProblem(path, "an integer is beyond 2^53-1 and would lose digits");
    }
    return;
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw limitProblem(path, "a float must be finite");
    return;
  }
  if (typeof value === "boolean") return;
  if (path.length >= MAX_DEPTH) throw limitProblem(path, `nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    if (value.length > MAX_ENTRIES) throw tooMany(path, "an array");
    value.forEach((item, index) => {
      checkTomlLimits(item, [...path, index]);
    });
    return;
  }
  const entries = tableEntries(value);
  if (entries === undefined) throw limitProblem(path, "dates and times are not supported");
  if (entries.size > MAX_ENTRIES) throw tooMany(path, "a table");
  for (const [key, member] of entries) {
    if (tooLong(key)) throw limitProblem(path, `a key is over ${MAX_TEXT_BYTES} bytes`);
    checkTomlLimits(member, [...path, key]);
  }
}

function decodeText(source: Omit<ConfigSource, "text">, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ConfigError({
      code: "toml_syntax",
      ...place(source),
      line: lineOfInvalidByte(bytes),
      problem: "invalid UTF-8",
      advice: "save the file as UTF-8",
    });
  }
}

/** A lossy decoding keeps every line break, so the first replacement marks the line. */
function lineOfInvalidByte(bytes: Uint8Array): number {
  const lossy = Buffer.from(bytes).toString("utf8");
  const authored = Buffer.from("\ufffd");
  let from = 0;
  for (;;) {
    const index = lossy.indexOf("\ufffd", from);
    if (index < 0) return 1;
    const head = lossy.slice(0, index);
    const start = Buffer.byteLength(head);
    const genuine = authored.equals(bytes.subarray(start, start + authored.length));
    if (!genuine) return head.split("\n").length;
    from = index + 1;
  }
}

function place({ layer, path }: Pick<ConfigSource, "layer" | "path">) {
  return { layer, path };
}

function tooLong(text: string): boolean {
  return text.length * 3 > MAX_TEXT_BYTES && Buffer.byteLength(text) > MAX_TEXT_BYTES;
}

function tooMany(path: KeyPath, what: string): DecodeProblem {
  return limitProblem(path, `${what} has over ${MAX_ENTRIES} entries`);
}

function limitProblem(keyPath: KeyPath, problem: string): DecodeProblem {
  return new DecodeProblem({ code: "toml_limit", keyPath, problem, advice: "fix it" });
}
