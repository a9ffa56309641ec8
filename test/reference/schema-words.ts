import * as z from "zod";
import { code } from "./markdown.ts";

export type Schema = z.core.$ZodType;

/** A schema without what says that it may be absent or null. */
export interface Unwrapped {
  readonly schema: Schema;
  readonly isOptional: boolean;
  readonly isNullable: boolean;
  /** Taken where the member is absent; undefined: none. */
  readonly otherwise: unknown;
}

export function unwrap(wrapped: Schema, isNamed: (schema: Schema) => boolean): Unwrapped {
  let schema = wrapped;
  let isOptional = false;
  let isNullable = false;
  let otherwise: unknown;
  while (!isNamed(schema)) {
    if (schema instanceof z.ZodOptional) isOptional = true;
    else if (schema instanceof z.ZodNullable) isNullable = true;
    else if (schema instanceof z.ZodDefault) {
      isOptional = true;
      otherwise = schema.def.defaultValue;
    } else break;
    schema = schema.def.innerType;
  }
  return { schema, isOptional, isNullable, otherwise };
}

/** What the checks of a schema ask for beyond its type, in their own words. */
export function rulesOf(schema: Schema): string[] {
  const rules: string[] = [];
  const range = new Range();
  for (const check of schema._zod.def.checks ?? []) {
    const { def } = check._zod;
    if (check instanceof z.core.$ZodCheckMinLength) range.min = check._zod.def.minimum;
    else if (check instanceof z.core.$ZodCheckMaxLength) range.max = check._zod.def.maximum;
    else if (check instanceof z.core.$ZodCheckGreaterThan) range.min = Number(check._zod.def.value);
    else if (check instanceof z.core.$ZodCheckLessThan) range.max = Number(check._zod.def.value);
    else {
      const message = messageOf(def);
      const isExpectation = message?.startsWith("expected ");
      if (check instanceof z.core.$ZodCheckRegex && !isExpectation) {
        rules.push(code(check._zod.def.pattern.source));
      } else if (message !== undefined) {
        rules.push(message.replace(/^expected /, "").replace(/^0 to /, "at most "));
      }
    }
  }
  const unit = schema instanceof z.ZodString ? " characters" : "";
  const length = range.words();
  return [...new Set([...(length === undefined ? [] : [length + unit]), ...rules])];
}

class Range {
  min: number | undefined;
  max: number | undefined;

  words(): string | undefined {
    if (this.min !== undefined && this.max !== undefined) return `${this.min} to ${this.max}`;
    if (this.min !== undefined) return `at least ${this.min}`;
    return this.max === undefined ? undefined : `at most ${this.max}`;
  }
}

function messageOf({ error }: z.core.$ZodCheckDef): string | undefined {
  const said = error?.({ input: undefined } as never);
  return typeof said === "object" ? said?.message : (said ?? undefined);
}
