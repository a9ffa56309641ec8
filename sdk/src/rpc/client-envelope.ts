import type { Message } from "vscode-jsonrpc";

/** What a client sent that is no message of the protocol, as it is answered (D-011). */
export interface BadEnvelope {
  readonly code: number;
  readonly message: string;
  readonly detail?: string;
}

export type Envelope = { readonly frame: Message } | { readonly bad: BadEnvelope };

const MEMBERS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"]);
/** An id comes back with every answer, so it may not be a document of its own. */
const MAX_ID_LENGTH = 256;

/** Reads one message of a client; the JSON-RPC library drops what is malformed without a word. */
export function readClientEnvelope(text: string): Envelope {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { bad: { code: -32700, message: "parse error" } };
  }
  const detail = envelopeProblem(value);
  if (detail === undefined) return { frame: value as Message };
  return { bad: { code: -32600, message: "invalid request", detail } };
}

function envelopeProblem(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "a message is one JSON object";
  }
  if (Object.keys(value).some((name) => !MEMBERS.has(name))) {
    return "a message has the members jsonrpc, id, method and params only";
  }
  const { jsonrpc, id, method, params }: Partial<Record<string, unknown>> = { ...value };
  if (jsonrpc !== "2.0") return 'jsonrpc: expected "2.0"';
  if (typeof method !== "string" || method === "") return "method: expected a name";
  if ("id" in value && !isId(id)) {
    return `id: expected a number or a text of at most ${MAX_ID_LENGTH} characters`;
  }
  if ("params" in value && (typeof params !== "object" || params === null)) {
    return "params: expected an object";
  }
  return undefined;
}

function isId(id: unknown): boolean {
  return typeof id === "number" || (typeof id === "string" && id.length <= MAX_ID_LENGTH);
}
