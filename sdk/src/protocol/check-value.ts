import type * as z from "zod";

/** What is wrong at one place; never the value that stood there. */
export interface ValueProblem {
  /** From the top of the value; empty for the value as a whole. */
  readonly path: readonly string[];
  /** For people, without the place: `is required; expected a string`. */
  readonly problem: string;
}

/** What a value came out as, or what is wrong with it. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      /** Where the first problem is, with dots; `whole` for the value itself. */
      readonly field: string;
      readonly problem: string;
      /** All of them, at least one. */
      readonly problems: readonly ValueProblem[];
    };

/** @param whole What the value is called where no member of it is at fault. */
export function checkValue<S extends z.ZodType>(
  schema: S,
  value: unknown,
  whole = "params",
): Checked<z.output<S>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const problems = parsed.error.issues.flatMap((issue) => describe(issue, value));
  const { path = [], problem = "invalid" } = problems[0] ?? {};
  return { ok: false, field: path.join(".") || whole, problem, problems };
}

type Issue = z.core.$ZodIssue;

function describe(issue: Issue, value: unknown): ValueProblem[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...path, key], problem: "unknown member" }));
  }
  const found = valueAt(value, issue.path);
  const expected = expectedBy(issue);
  if (found === undefined && path.length > 0) {
    return [
      { path, problem: expected === "" ? "is required" : `is required; expected ${expected}` },
    ];
  }
  const closest = issue.code === "invalid_union" ? closestBranch(issue.errors) : undefined;
  if (closest !== undefined) {
    return closest.flatMap((inner) =>
      describe({ ...inner, path: [...issue.path, ...inner.path] }, value),
    );
  }
  if (expected === "" || hasOwnWords(issue)) return [{ path, problem: issue.message }];
  const received = issue.code === "invalid_type" ? `, received ${kindOf(found)}` : "";
  return [{ path, problem: `expected ${expected}${received}` }];
}

/** The schema says itself what is wrong. */
function hasOwnWords({ code, message }: Issue): boolean {
  return code === "invalid_value" && !/^Invalid (?:input|option)/.test(message);
}

/** Of the forms that a value may have, the one that it comes nearest to; none when it has not even their kind. */
function closestBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const entered = branches.filter((issues) => !issues.some(isAboutWhole));
  return entered.reduce<readonly Issue[] | undefined>(
    (best, issues) => (best === undefined || issues.length < best.length ? issues : best),
    undefined,
  );
}

function isAboutWhole({ code, path }: Issue): boolean {
  return path.length === 0 && ["invalid_type", "invalid_value", "invalid_union"].includes(code);
}

/** What would have been right, for the issues that can say so; empty for the others. */
function expectedBy(issue: Issue): string {
  if (issue.code === "invalid_type") return KINDS[issue.expected] ?? issue.expected;
  if (issue.code === "invalid_value") return oneOf(issue.values);
  if (issue.code !== "invalid_union") return "";
  if ("options" in issue && issue.options !== undefined) return oneOf(issue.options);
  const wholes = issue.errors.flatMap((issues) => issues.filter(isAboutWhole).map(expectedBy));
  return [...new Set(wholes)].filter((kind) => kind !== "").join(" or ");
}

const MOST_CHOICES = 16;

function oneOf(choices: readonly unknown[]): string {
  const named = choices.slice(0, MOST_CHOICES).map((choice) => JSON.stringify(choice) ?? "nothing");
  if (named.length < 2) return named.join();
  return `one of ${named.join(", ")}${choices.length > MOST_CHOICES ? " and more" : ""}`;
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  return KINDS[Array.isArray(value) ? "array" : typeof value] ?? typeof value;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return at;
}
