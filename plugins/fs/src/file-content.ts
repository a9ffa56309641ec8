import { closeSync } from "node:fs";
import type { LocatedTarget } from "./locate-target.ts";
import { digestFile, openTarget, sameFile, targetChanged } from "./target-identity.ts";
import { TextScan } from "./text-scan.ts";

/** What a write must know of the content it replaces. */
export interface ContentFacts {
  readonly sha256: string;
  readonly hasBom: boolean;
}

/** Digests an existing text file without keeping it; another encoding is refused (T 2.2). */
export async function scanContent(
  target: LocatedTarget,
  signal: AbortSignal,
): Promise<ContentFacts> {
  const scan = new TextScan();
  const fd = openTarget(target, sameFile);
  try {
    const sha256 = await digestFile(fd, target.path, signal, (chunk) => scan.push(chunk));
    scan.expectUtf8(target.path);
    return { sha256, hasBom: scan.hasBom };
  } finally {
    closeSync(fd);
  }
}

/** All bytes of a text file with their digest; another encoding is refused (T 2.3). */
export async function readContent(
  target: LocatedTarget,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; sha256: string }> {
  const scan = new TextScan();
  const bytes = Buffer.allocUnsafe(Number(target.leaf?.size ?? 0n));
  let length = 0;
  const fd = openTarget(target, sameFile);
  try {
    const sha256 = await digestFile(fd, target.path, signal, (chunk) => {
      scan.push(chunk);
      if (length + chunk.length > bytes.length) throw targetChanged(target.path);
      length += chunk.copy(bytes, length);
    });
    if (length !== bytes.length) throw targetChanged(target.path);
    scan.expectUtf8(target.path);
    return { bytes, sha256 };
  } finally {
    closeSync(fd);
  }
}
