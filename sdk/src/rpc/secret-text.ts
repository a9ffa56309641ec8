import { randomUUID } from "node:crypto";
import type { Message } from "vscode-jsonrpc";

const BASE64 = Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const PADDING = 0x3d;

/** A member of a request's params that exists as bytes, which can be wiped, and never as a string (D-087). */
export class SecretText {
  readonly member: string;
  readonly #bytes: Buffer;

  /** The base64 form of `data`, which is wiped. */
  static base64(member: string, data: Buffer): SecretText {
    const text = new SecretText(member, encodeBase64(data));
    data.fill(0);
    return text;
  }

  private constructor(member: string, bytes: Buffer) {
    this.member = member;
    this.#bytes = bytes;
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  wipe(): void {
    this.#bytes.fill(0);
  }

  /** The frame of a message that has this text among its params; to be wiped when it is sent. */
  frameOf(message: Message & { readonly params: object }): Buffer {
    const marker = randomUUID();
    const params = { ...message.params, [this.member]: marker };
    const [head = "", tail = ""] = JSON.stringify({ ...message, params }).split(marker);
    return Buffer.concat([Buffer.from(head), this.#bytes, Buffer.from(tail)]);
  }

  /** For a peer in this process, which takes strings. */
  toJSON(): string {
    return this.#bytes.toString("latin1");
  }
}

/** The text that a message holds as bytes, with the message as one that has params. */
export function secretIn(
  message: Message,
): { readonly secret: SecretText; readonly message: Message & { readonly params: object } } | null {
  if (!("params" in message) || typeof message.params !== "object" || message.params === null) {
    return null;
  }
  const { params } = message;
  const secret = Object.values(params).find((value) => value instanceof SecretText);
  return secret === undefined ? null : { secret, message: { ...message, params } };
}

/** Node's own encoder makes a string. */
function encodeBase64(data: Buffer): Buffer {
  const text = Buffer.alloc(Math.ceil(data.length / 3) * 4, PADDING);
  let at = 0;
  for (let index = 0; index < data.length; index += 3) {
    const [first = 0, second = 0, third = 0] = data.subarray(index, index + 3);
    const bits = (first << 16) | (second << 8) | third;
    const digits = Math.min(data.length - index, 3) + 1;
    for (let digit = 0; digit < digits; digit += 1) {
      text[at + digit] = BASE64[(bits >> (18 - 6 * digit)) & 63] ?? PADDING;
    }
    at += 4;
  }
  return text;
}
