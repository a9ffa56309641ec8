import type { JsonObject } from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";

const MAX_DEPTH = 128;

/** What the text of a call's arguments turned out to be. */
export type ParsedArguments =
  | { readonly kind: "object"; readonly input: JsonObject }
  | { readonly kind: "cut_off" }
  | { readonly kind: "malformed" };

/** Absent, blank and `null` mean no arguments (B112); text that stops inside a value was cut off (B113). */
export function parseToolArguments(text: string): ParsedArguments {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed === "null") return { kind: "object", input: {} };
  const shape = scan(trimmed);
  if (shape.maxDepth > MAX_DEPTH) return { kind: "malformed" };
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    return { kind: shape.open ? "cut_off" : "malformed" };
  }
  return isJsonObject(value) ? { kind: "object", input: value } : { kind: "malformed" };
}

/** Whether a bracket or a string is still open at the end, and how deep the brackets went. */
function scan(text: string): { open: boolean; maxDepth: number } {
  let depth = 0;
  let maxDepth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) {
      inString = true;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > maxDepth) maxDepth = depth;
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
    }
  }
  return { open: inString || depth > 0, maxDepth };
}
