import type { EventPayload } from "@cookie-agent/sdk/protocol";
import * as z from "zod";

/** Fields that may fall back to null or absent before a payload counts as unreadable (S-052). */
const MAX_DEGRADED_FIELDS = 8;

export interface RepairedPayload {
  readonly payload: EventPayload;
  /** Paths of the fields that were set to null or left out. */
  readonly degraded: readonly string[];
}

type Path = readonly PropertyKey[];

/**
 * Drops what a reader can do without: each refused place becomes null or absent at the nearest field around it
 * that may be so. Undefined when a required field is broken or too many fields are.
 */
export function repairPayload(
  schema: z.ZodType<EventPayload>,
  payload: unknown,
  firstError: z.ZodError,
): RepairedPayload | undefined {
  const value: unknown = structuredClone(payload);
  const degraded = new Set<string>();
  let error = firstError;
  while (degraded.size <= MAX_DEGRADED_FIELDS) {
    const before = degraded.size;
    for (const issue of error.issues) {
      const place = nearestSparePlace(schema, value, issue.path);
      if (place === undefined) return undefined;
      setPlace(value, place);
      degraded.add(place.path.map(String).join("."));
    }
    if (degraded.size > MAX_DEGRADED_FIELDS) return undefined;
    const again = schema.safeParse(value);
    if (again.success) return { payload: again.data, degraded: [...degraded] };
    if (degraded.size === before) return undefined;
    error = again.error;
  }
  return undefined;
}

interface SparePlace {
  readonly path: Path;
  readonly fallback: null | undefined;
}

/** Walks schema and value along `path` and remembers the deepest field that may be null or absent. */
function nearestSparePlace(schema: z.ZodType, value: unknown, path: Path): SparePlace | undefined {
  let place: SparePlace | undefined;
  let at: z.core.$ZodType | undefined = schema;
  let valueAt: unknown = value;
  for (let depth = 0; at !== undefined; depth += 1) {
    const wrapped = unwrap(at);
    if (wrapped.fallback !== "required" && depth > 0) {
      place = { path: path.slice(0, depth), fallback: wrapped.fallback };
    }
    const key = path[depth];
    if (key === undefined) return place;
    at = childSchema(wrapped.inner, valueAt, key);
    valueAt = member(valueAt, key);
  }
  return place;
}

function unwrap(schema: z.core.$ZodType): {
  inner: z.core.$ZodType;
  fallback: null | undefined | "required";
} {
  let inner = schema;
  let fallback: null | undefined | "required" = "required";
  while (
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable ||
    inner instanceof z.ZodDefault
  ) {
    if (inner instanceof z.ZodNullable) fallback = null;
    else if (fallback === "required") fallback = undefined;
    inner = inner.unwrap();
  }
  return { inner, fallback };
}

function childSchema(
  schema: z.core.$ZodType,
  value: unknown,
  key: PropertyKey,
): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return fieldSchema(schema, key);
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const discriminator = schema.def.discriminator;
    const tag = member(value, discriminator);
    for (const option of schema.options) {
      const tagSchema = childSchema(option, value, discriminator);
      if (tagSchema instanceof z.ZodLiteral && tagSchema.values.has(tag as never)) {
        return childSchema(option, value, key);
      }
    }
  }
  return undefined;
}

function fieldSchema(schema: z.ZodObject, key: PropertyKey): z.core.$ZodType | undefined {
  const shape: Readonly<Record<PropertyKey, z.core.$ZodType>> = schema.shape;
  return Object.hasOwn(shape, key) ? shape[key] : undefined;
}

function setPlace(root: unknown, { path, fallback }: SparePlace): void {
  const parent = path.slice(0, -1).reduce(member, root);
  const key = path.at(-1);
  if (typeof parent !== "object" || parent === null || key === undefined) return;
  if (fallback === null) Reflect.set(parent, key, null);
  else Reflect.deleteProperty(parent, key);
}

function member(value: unknown, key: PropertyKey): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return Reflect.get(value, key) as unknown;
}
