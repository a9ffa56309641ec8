import type { JsonObject } from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";
import { networkCode } from "./error-causes.ts";

/** What a provider said about its own failure, wherever it said it. */
export interface VendorReport {
  readonly message: string;
  readonly code: string | null;
  readonly words: string;
  readonly status: number | null;
}

export const DECODE_ERROR_NAMES: ReadonlySet<string> = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
]);
interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly data?: unknown;
  readonly responseBody?: unknown;
  readonly cause?: unknown;
}

/** By name, not by class: the provider packages stay unloaded until one of them is used. */
export function readVendorReport(error: unknown): VendorReport | null {
  if (!(error instanceof Error) || error.name !== "AI_APICallError") return null;
  const call: ErrorLike = error;
  if (typeof call.statusCode !== "number" || networkCode(error) !== null) return null;
  if (decodeErrorName(error) !== null) return null;
  if (call.statusCode < 300) return null;
  const body =
    parseReport(call.data) ??
    parseReport(typeof call.responseBody === "string" ? parseJson(call.responseBody) : undefined);
  return {
    message: body?.message ?? (error.message === "" ? "no details given" : error.message),
    code: body?.code ?? null,
    words: body?.words ?? "",
    status: call.statusCode,
  };
}

/** A package may report its own failure to read the first event as an answer of the provider. */
export function decodeErrorName(error: unknown): string | null {
  const { responseBody }: ErrorLike = error instanceof Error ? error : {};
  const body = typeof responseBody === "string" ? asRecord(parseJson(responseBody)) : null;
  const name = body?.name;
  return typeof name === "string" && DECODE_ERROR_NAMES.has(name) ? name : null;
}

/** `{error: {message, type, code}}`, `{type, message}`, `{response: {error}}`, or a message alone. */
export function parseReport(value: unknown): VendorReport | null {
  const outer = asRecord(value);
  if (outer === null) return null;
  const inner = asRecord(outer.error) ?? asRecord(asRecord(outer.response)?.error) ?? outer;
  const message =
    typeof inner.message === "string"
      ? inner.message
      : typeof outer.error === "string"
        ? outer.error
        : null;
  if (message === null) return null;
  const names = [inner.code, inner.type, outer.status].filter(
    (name): name is string => typeof name === "string",
  );
  const numbers = [inner.code, inner.status, inner.statusCode, outer.statusCode].map(Number);
  return {
    message,
    code: safeCode(names[0]),
    words: names.join(" ").toLowerCase(),
    status: numbers.find((n) => Number.isInteger(n) && n >= 400 && n <= 599) ?? null,
  };
}

function safeCode(text: string | undefined): string | null {
  const code = text?.toLowerCase() ?? "";
  return /^[a-z0-9][a-z0-9._-]{0,127}$/.test(code) ? code : null;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asRecord(value: unknown): JsonObject | null {
  return isJsonObject(value) ? value : null;
}
