import { join } from "node:path";
import { Digest, Timestamp } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { durableReplace } from "../support/durable-replace.ts";
import { withFileLock } from "../support/file-lock.ts";
import { makeDirectory } from "../support/make-directory.ts";
import { compareUtf8 } from "./compare-utf8.ts";
import { ConfigError } from "./config-error.ts";
import { readBoundedFile } from "./read-bounded-file.ts";

const MAX_BYTES = 1024 * 1024;

export interface TrustRecord {
  readonly digest: Digest;
  /** RFC 3339, UTC. */
  readonly trustedAt: string;
}

export interface TrustStore {
  /** By canonical directory that holds `.cookie-agent`. */
  readonly records: ReadonlyMap<string, TrustRecord>;
  /** Set when the file cannot be understood; then nothing is trusted and nothing is written. */
  readonly warning?: string;
}

/** Reads `<root>/trust.json`; a missing file is an empty store. */
export async function readTrust(root: string): Promise<TrustStore> {
  const path = join(root, "trust.json");
  const read = await readBoundedFile(path, MAX_BYTES, { followLinks: true }).catch(() => undefined);
  if (read?.kind === "missing") return { records: new Map() };
  const parsed = read?.kind === "bytes" ? parseStore(read.bytes) : undefined;
  if (parsed !== undefined) return { records: parsed };
  return {
    records: new Map(),
    warning: `${path}: not a valid trust store, so no workspace is trusted; repair or remove it`,
  };
}

export interface TrustedWorkspace extends TrustRecord {
  readonly directory: string;
}

/** Every record, sorted by directory. */
export async function listTrust(root: string): Promise<TrustedWorkspace[]> {
  const { records } = await readTrust(root);
  return [...records]
    .map(([directory, record]) => ({ directory, ...record }))
    .sort((a, b) => compareUtf8(a.directory, b.directory));
}

export interface TrustGrant {
  readonly root: string;
  /** Canonical directory that holds `.cookie-agent`. */
  readonly directory: string;
  /** Of the content that the user was shown. */
  readonly digest: Digest;
}

export async function grantTrust({ root, directory, digest }: TrustGrant): Promise<void> {
  await changeStore(root, (records) => {
    records.set(directory, { digest, trustedAt: new Date().toISOString() });
    return true;
  });
}

/** True when there was a record to remove. */
export function revokeTrust({ root, directory }: Omit<TrustGrant, "digest">): Promise<boolean> {
  return changeStore(root, (records) => records.delete(directory));
}

async function changeStore(
  root: string,
  change: (records: Map<string, TrustRecord>) => boolean,
): Promise<boolean> {
  await makeDirectory(root);
  const path = join(root, "trust.json");
  return withFileLock(join(root, "trust.lock"), async () => {
    const { records, warning } = await readTrust(root);
    if (warning !== undefined) {
      throw storeError(path, "invalid_value", "not a valid trust store", "repair or remove it");
    }
    const changed = new Map(records);
    if (!change(changed)) return false;
    const bytes = encodeStore(changed);
    if (bytes.length > MAX_BYTES) {
      throw storeError(path, "too_large", "over 1 MiB", "revoke the trust of some directories");
    }
    await durableReplace(path, bytes);
    return true;
  });
}

const StoreFile = z.strictObject({
  schema_version: z.literal(1),
  workspaces: z.record(z.string(), z.strictObject({ digest: Digest, trusted_at: Timestamp })),
});

function parseStore(bytes: Uint8Array): Map<string, TrustRecord> | undefined {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
  const file = StoreFile.safeParse(json);
  if (!file.success) return undefined;
  return new Map(
    Object.entries(file.data.workspaces).map(([directory, { digest, trusted_at }]) => [
      directory,
      { digest, trustedAt: trusted_at },
    ]),
  );
}

function encodeStore(records: ReadonlyMap<string, TrustRecord>): Buffer {
  const workspaces = Object.fromEntries(
    [...records].map(([directory, { digest, trustedAt }]) => [
      directory,
      { digest, trusted_at: trustedAt },
    ]),
  );
  return Buffer.from(`${JSON.stringify({ schema_version: 1, workspaces }, null, 2)}\n`);
}

function storeError(
  path: string,
  code: "invalid_value" | "too_large",
  problem: string,
  advice: string,
): ConfigError {
  return new ConfigError({ code, layer: "user", path, problem, advice });
}
