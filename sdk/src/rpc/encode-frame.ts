import { type Message, Message as Messages } from "vscode-jsonrpc";
import { CookieError } from "../protocol/errors.ts";
import { toWireError } from "./wire-error.ts";

/** Counting the bytes of a longer frame is worth it: its owner may then encode it in one piece. */
const COUNTED_LENGTH = 4096;

export interface EncodedFrame {
  readonly text: string;
  /** UTF-8 bytes of the text; undefined when it is short. */
  readonly byteLength: number | undefined;
}

/**
 * One frame as JSON. Throws `resource_limit` over `maxBytes` and `internal` for what JSON cannot express; a response
 * is replaced by that error instead, so that its request is answered (E-002, D-151).
 */
export function encodeFrame(message: Message, maxBytes: number): EncodedFrame {
  let error: CookieError;
  try {
    const text = JSON.stringify(message);
    // No UTF-16 unit takes more than three bytes, so a short frame needs no count.
    if (text.length < COUNTED_LENGTH && text.length * 3 <= maxBytes) {
      return { text, byteLength: undefined };
    }
    const byteLength = Buffer.byteLength(text);
    if (byteLength <= maxBytes) return { text, byteLength };
    error = overCap(maxBytes);
  } catch (cause) {
    error = new CookieError("internal", "a frame holds what JSON cannot express", { cause });
  }
  if (!Messages.isResponse(message)) throw error;
  const answer = { jsonrpc: "2.0", id: message.id, error: toWireError(error) };
  return { text: JSON.stringify(answer), byteLength: undefined };
}

export function overCap(limit: number): CookieError {
  return new CookieError(
    "resource_limit",
    `a frame may hold ${limit} bytes; send less at once or store the text as an artifact`,
    { data: { limit } },
  );
}
