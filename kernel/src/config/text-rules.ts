import {
  ModelKey,
  ProviderId,
  ProviderModelId,
  ToolName,
  utf8Length,
  VariantId,
} from "@cookie-agent/sdk/protocol";
import type { TextRule } from "./table-reader.ts";

const CONTROL = /\p{Cc}/u;

export function hasControl(text: string): boolean {
  return CONTROL.test(text);
}

export const nonEmpty: TextRule = (text) => (text === "" ? "must not be empty" : undefined);

/** `min` to `max` UTF-8 bytes (C-004). */
export function byteRange(min: number, max: number): TextRule {
  return (text) => {
    const length = utf8Length(text);
    return length < min || length > max ? `must have ${min} to ${max} bytes` : undefined;
  };
}

/** `min` to `max` UTF-8 bytes without control characters. */
export function plainText(min: number, max: number): TextRule {
  const range = byteRange(min, max);
  return (text) =>
    range(text) ?? (hasControl(text) ? "must not hold control characters" : undefined);
}

/** As `plainText`, with at least one character that is no space. */
function visibleText(min: number, max: number): TextRule {
  const plain = plainText(min, max);
  return (text) => plain(text) ?? (text.trim() === "" ? "must not be blank" : undefined);
}

interface Identity {
  safeParse(value: unknown): { success: boolean };
}

function identity(name: string, schema: Identity): TextRule {
  return (text) => (schema.safeParse(text).success ? undefined : `invalid ${name}`);
}

export const modelKey: TextRule = identity("model key", ModelKey);
export const providerId: TextRule = identity("provider id", ProviderId);
export const providerModelId: TextRule = identity("provider model id", ProviderModelId);
export const variantId: TextRule = identity("variant id", VariantId);
export const toolName: TextRule = identity("tool name", ToolName);

/** Adaptor, auth method, recipe: spelled like a provider id. */
export const strictIdentifier: TextRule = identity("strict identifier", ProviderId);

/** Setup field, credential field, auth parameter. */
export const fieldIdentifier: TextRule = (text) =>
  /^[a-z][a-z0-9_]{0,127}$/.test(text) ? undefined : "invalid field identifier";

/** `base` or a variant id. */
export const variantReference: TextRule = (text) => (text === "base" ? undefined : variantId(text));

/** How people see a model or variant. */
export const displayName: TextRule = visibleText(1, 512);

/** A model name as the wire carries it. */
export const wireModelId: TextRule = (text) =>
  plainText(1, 2048)(text) ??
  (text.trim() === text ? undefined : "must not begin or end with white space");
