import { hash } from "node:crypto";
import type { Digest, Revision } from "@cookie-agent/sdk/protocol";
import { canonicalJson } from "./canonical-json.ts";

export function sha256Hex(data: string | Uint8Array): Digest {
  return hash("sha256", data, "hex");
}

/** Digest over several fields that cannot be shifted into each other: each is preceded by its length (S-008). */
export function domainDigest(domain: string, fields: readonly (string | Uint8Array)[]): Digest {
  const pieces: Uint8Array[] = [Buffer.from(domain)];
  for (const field of fields) {
    const bytes = typeof field === "string" ? Buffer.from(field) : field;
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.byteLength));
    pieces.push(length, bytes);
  }
  return sha256Hex(Buffer.concat(pieces));
}

/** Domain text, one NUL, canonical JSON; equal input gives an equal revision (C-010). */
export function revisionOf(domain: string, value: unknown): Revision {
  return `sha256:${sha256Hex(`${domain}\0${canonicalJson(value)}`)}`;
}
