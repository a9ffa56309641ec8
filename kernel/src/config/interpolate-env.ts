import { DecodeProblem } from "./decode-problem.ts";
import { formatKey, type KeyPath } from "./key-path.ts";
import { tableEntries } from "./table-reader.ts";

export interface Environment {
  readonly values: Readonly<Record<string, string | undefined>>;
  /** Collects the names that end up in a secret. */
  readonly secretNames: Set<string>;
}

const MARK = "${env:";
const REFERENCE = /^\$\{env:([A-Z_][A-Z0-9_]*)\}/;

/**
 * The provider table with `${env:NAME}` replaced where it is allowed (C-033, C-034); a copy, the original stays literal.
 * Anywhere else in the table the text is an error.
 */
export function interpolateProvider(value: unknown, path: KeyPath, env: Environment): unknown {
  return interpolate(value, path, path.length, env);
}

function interpolate(value: unknown, path: KeyPath, base: number, env: Environment): unknown {
  if (typeof value === "string") {
    const place = placeOf(path.slice(base));
    if (place !== undefined) return expand(value, path, place === "secret", env);
    if (value.includes(MARK)) throw misplaced(path);
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((item, index) => interpolate(item, [...path, index], base, env));
  }
  const entries = tableEntries(value);
  if (entries === undefined) return value;
  const copy = new Map<string, unknown>();
  for (const [key, member] of entries) {
    if (key.includes(MARK)) throw misplaced([...path, key]);
    copy.set(key, interpolate(member, [...path, key], base, env));
  }
  return copy;
}

/** What kind of interpolated place a path below a provider is, if it is one. */
function placeOf(path: KeyPath): "plain" | "secret" | undefined {
  const [first, second] = path;
  if (path.length === 1 && (first === "endpoint" || first === "base_url")) return "plain";
  if (path.length === 1 && first === "api_key") return "secret";
  if (path.length === 2 && first === "setup") return "plain";
  if (path.length === 3 && (first === "auth" || first === "auth_override") && second === "values") {
    return "secret";
  }
  return undefined;
}

/** One pass from left to right: what a variable holds is not looked at again. */
function expand(text: string, path: KeyPath, secret: boolean, env: Environment): string {
  let result = "";
  let rest = text;
  for (;;) {
    const dollar = rest.indexOf("$");
    if (dollar < 0) return result + rest;
    result += rest.slice(0, dollar);
    rest = rest.slice(dollar);
    if (rest.startsWith("$$")) {
      result += "$";
      rest = rest.slice(2);
      continue;
    }
    const reference = REFERENCE.exec(rest);
    if (reference === null) {
      throw new DecodeProblem({
        code: "interpolation",
        keyPath: path,
        problem: "a $ stands for itself only as $$; the one expression is ${env:NAME}",
        advice: "fix it",
      });
    }
    const [whole, name = ""] = reference;
    result += readVariable(name, path, env);
    if (secret) env.secretNames.add(name);
    rest = rest.slice(whole.length);
  }
}

function readVariable(name: string, path: KeyPath, env: Environment): string {
  const value = Object.hasOwn(env.values, name) ? env.values[name] : undefined;
  if (value === undefined) {
    throw new DecodeProblem({
      code: "env_missing",
      keyPath: path,
      problem: `environment variable ${formatKey(name)} is not set`,
      advice: "set it",
    });
  }
  // Node decodes the environment itself and leaves this mark where it could not.
  if (value.includes("\ufffd")) {
    throw new DecodeProblem({
      code: "env_not_utf8",
      keyPath: path,
      problem: `environment variable ${formatKey(name)} is not valid UTF-8`,
      advice: "fix it",
    });
  }
  return value;
}

function misplaced(keyPath: KeyPath): DecodeProblem {
  return new DecodeProblem({
    code: "interpolation",
    keyPath,
    problem: "${env:…} is not allowed here",
    advice: "write the value itself",
  });
}
