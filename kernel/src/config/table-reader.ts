import { bareRecord } from "./bare-record.ts";
import type { ConfigErrorCode } from "./config-error.ts";
import { DecodeProblem } from "./decode-problem.ts";
import { formatKey, type KeyPath } from "./key-path.ts";
import { nearestName } from "./nearest-name.ts";

/** What a rule says about a value: undefined when it holds, else what was expected. */
export type TextRule = (text: string) => string | undefined;

export interface NumberRange {
  readonly min?: number;
  readonly max?: number;
}

/**
 * Reads one table of a parsed document strictly. Every failure is a `DecodeProblem` with the path of the key.
 * Integers arrive as bigint, so `1.0` is no integer.
 */
export class TableReader {
  readonly path: KeyPath;
  readonly #entries: ReadonlyMap<string, unknown>;
  /** What keys that are not there were read as. */
  readonly #wanted = new Map<string, string>();

  /** @param known The keys that may stand here; left out where keys are names. */
  constructor(value: unknown, path: KeyPath, known?: readonly string[]) {
    const entries = tableEntries(value);
    if (entries === undefined) throw typeProblem(path, "a table");
    this.path = path;
    this.#entries = entries;
    if (known !== undefined) this.#rejectUnknown(known);
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  value(key: string): unknown {
    return this.#entries.get(key);
  }

  at(...segments: KeyPath): KeyPath {
    return [...this.path, ...segments];
  }

  fail(
    code: ConfigErrorCode,
    segments: KeyPath | string,
    problem: string,
    advice = "fix it",
  ): DecodeProblem {
    const keyPath = typeof segments === "string" ? this.at(segments) : this.at(...segments);
    return new DecodeProblem({ code, keyPath, problem, advice });
  }

  /** Insists on what another reading yielded. */
  required<T>(key: string, value: T | undefined): T {
    if (value !== undefined) return value;
    const wanted = this.#wanted.get(key);
    throw this.fail("missing_key", key, "is required", `add ${wanted ?? "it"}`);
  }

  boolean(key: string): boolean | undefined {
    const value = this.#read(key, "true or false");
    if (value === undefined || typeof value === "boolean") return value;
    throw typeProblem(this.at(key), "true or false");
  }

  string(key: string, rule?: TextRule): string | undefined {
    const value = this.#read(key, "a string");
    return value === undefined ? undefined : checkText(value, this.at(key), rule);
  }

  integer(key: string, range: NumberRange = {}): number | undefined {
    const value = this.#read(key, "an integer");
    if (value === undefined) return undefined;
    if (typeof value !== "bigint") throw typeProblem(this.at(key), "an integer");
    if (!Number.isSafeInteger(Number(value))) {
      throw this.fail("invalid_value", key, "is beyond 2^53-1 and would lose digits");
    }
    return this.#inRange(key, Number(value), range);
  }

  number(key: string, range: NumberRange = {}): number | undefined {
    const value = this.#read(key, "a number");
    if (value === undefined) return undefined;
    if (typeof value !== "number" && typeof value !== "bigint") {
      throw typeProblem(this.at(key), "a number");
    }
    return this.#inRange(key, Number(value), range);
  }

  oneOf<const T extends string>(key: string, choices: readonly T[]): T | undefined {
    const text = this.string(key);
    if (text === undefined) {
      this.#wanted.set(key, `one of ${choices.join(", ")}`);
      return undefined;
    }
    const choice = choices.find((candidate) => candidate === text);
    if (choice !== undefined) return choice;
    throw this.fail("invalid_value", key, `expected one of ${choices.join(", ")}`);
  }

  strings(key: string, rule?: TextRule): string[] | undefined {
    return this.array(key)?.map((value, index) => checkText(value, this.at(key, index), rule));
  }

  array(key: string): readonly unknown[] | undefined {
    const value = this.#read(key, "an array");
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw typeProblem(this.at(key), "an array");
    return value as unknown[];
  }

  /** A map whose keys are names and whose values are text. */
  texts(key: string, rule?: TextRule): Record<string, string> | undefined {
    const map = this.table(key);
    if (map === undefined) return undefined;
    const texts = bareRecord<string>();
    for (const name of map.keys()) texts[name] = map.required(name, map.string(name, rule));
    return texts;
  }

  table(key: string, known?: readonly string[]): TableReader | undefined {
    const value = this.#read(key, "a table");
    return value === undefined ? undefined : new TableReader(value, this.at(key), known);
  }

  /** A free-form table with numbers as JSON carries them. */
  json(key: string): Record<string, unknown> | undefined {
    const table = this.table(key);
    return table === undefined ? undefined : plainObject(table.#entries);
  }

  #read(key: string, wanted: string): unknown {
    const value = this.#entries.get(key);
    if (value === undefined) this.#wanted.set(key, wanted);
    return value;
  }

  #inRange(key: string, value: number, { min, max }: NumberRange): number {
    const low = min !== undefined && value < min;
    const high = max !== undefined && value > max;
    if (!low && !high) return value;
    const bounds = [
      ...(min === undefined ? [] : [`at least ${min}`]),
      ...(max === undefined ? [] : [`at most ${max}`]),
    ];
    throw this.fail("invalid_value", key, `must be ${bounds.join(" and ")}`);
  }

  #rejectUnknown(known: readonly string[]): void {
    for (const key of this.#entries.keys()) {
      if (known.includes(key)) continue;
      throw this.fail("unknown_key", key, "unknown key", unknownKeyAdvice(key, known));
    }
  }
}

export function unknownKeyAdvice(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  return nearest === undefined ? "remove it" : `did you mean ${formatKey(nearest)}?`;
}

/** The members of a TOML table or a YAML map, in order; undefined for anything else. */
export function tableEntries(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (value instanceof Map) return value;
  if (typeof value !== "object" || value === null) return undefined;
  // Both parsers make tables without a prototype; dates and arrays have one.
  if (Object.getPrototypeOf(value) !== null) return undefined;
  return new Map(Object.entries(value));
}

function plainJson(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(plainJson);
  const entries = tableEntries(value);
  return entries === undefined ? value : plainObject(entries);
}

function plainObject(entries: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const object = bareRecord<unknown>();
  for (const [key, member] of entries) object[key] = plainJson(member);
  return object;
}

function checkText(value: unknown, path: KeyPath, rule: TextRule | undefined): string {
  if (typeof value !== "string") throw typeProblem(path, "a string");
  const problem = rule?.(value);
  if (problem === undefined) return value;
  throw new DecodeProblem({
    code: "invalid_value",
    keyPath: path,
    problem,
    advice: "fix it",
  });
}

function typeProblem(keyPath: KeyPath, expected: string): DecodeProblem {
  return new DecodeProblem({
    code: "invalid_type",
    keyPath,
    problem: `expected ${expected}`,
    advice: "fix it",
  });
}
