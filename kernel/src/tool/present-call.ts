import type { JsonObject, ToolPresentation } from "@cookie-agent/sdk/protocol";
import { cutUtf8, safeText, shown } from "../support/safe-text.ts";

const MAX_ARGUMENT_BYTES = 512;
const SECRET_MARKERS = ["token", "secret", "password", "api_key", "apikey", "authorization"];

/** What is shown of a call beside its output; an argument that may hold a secret is not (T-040). */
export function presentCall(title: string, argument: string | null): ToolPresentation {
  return {
    title: safeText(title, 1024),
    primary_argument: argument === null ? null : redactArgument(argument),
  };
}

/** An argument as text: strings verbatim, other values as compact JSON, absent ones null (E-080). */
export function argumentText(args: JsonObject, name: string): string | null {
  if (!Object.hasOwn(args, name)) return null;
  const value = args[name];
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function redactArgument(argument: string): string {
  const lower = argument.toLowerCase();
  if (SECRET_MARKERS.some((marker) => lower.includes(marker))) return "<redacted>";
  return cutUtf8(shown(argument), MAX_ARGUMENT_BYTES);
}
