import * as z from "zod";

/**
 * A request: its wire name and what travels each way. Params are checked where they arrive and where they leave;
 * the receiver of plugin input rejects unknown members, every other receiver ignores them (E-006).
 */
export interface Method<
  Params extends z.ZodType = z.ZodType,
  Result extends z.ZodType = z.ZodType,
> {
  readonly kind: "request";
  readonly name: string;
  readonly params: Params;
  readonly result: Result;
}

/** A message without an answer. */
export interface Notification<Params extends z.ZodType = z.ZodType> {
  readonly kind: "notification";
  readonly name: string;
  readonly params: Params;
  /** Whether raw bytes may follow its frame (E-016). */
  readonly raw: boolean;
}

export type ParamsOf<M extends Method | Notification> = z.infer<M["params"]>;
export type ParamsInput<M extends Method | Notification> = z.input<M["params"]>;
export type ResultOf<M extends Method> = z.infer<M["result"]>;
export type ResultInput<M extends Method> = z.input<M["result"]>;

/** Schemas are built when they are first used: a process uses few of them, and building them all takes its start. */
export function request<P extends z.ZodType, R extends z.ZodType>(
  name: string,
  buildParams: () => P,
  buildResult: () => R,
): Method<P, R> {
  let params: P | undefined;
  let result: R | undefined;
  return {
    kind: "request",
    name,
    get params() {
      params ??= buildParams();
      return params;
    },
    get result() {
      result ??= buildResult();
      return result;
    },
  };
}

export function notification<P extends z.ZodType>(
  name: string,
  buildParams: () => P,
  { raw = false } = {},
): Notification<P> {
  let params: P | undefined;
  return {
    kind: "notification",
    name,
    raw,
    get params() {
      params ??= buildParams();
      return params;
    },
  };
}

/** What a plugin sends: unknown members are errors, `_meta` is always allowed (E-006). */
export function fromPlugin<S extends z.ZodRawShape>(shape: S) {
  return z.strictObject({ ...shape, _meta: z.record(z.string(), z.unknown()).optional() });
}

/** What a plugin receives: unknown members are ignored (E-006). */
export function toPlugin<S extends z.ZodRawShape>(shape: S) {
  return z.object(shape);
}

/** An answer that says nothing but "done" (E-003). */
export const Empty = z.object({});
