import type * as z from "zod";

/** What a value came out as, or which field is wrong and why; never the value itself. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly field: string; readonly problem: string };

export function checkValue<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  const path = issue?.path.map(String) ?? [];
  const unknownKeys = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 3) : [];
  return {
    ok: false,
    field: [...path, ...unknownKeys.slice(0, 1)].join(".") || "params",
    problem: unknownKeys.length > 0 ? "unknown member" : (issue?.message ?? "invalid"),
  };
}
