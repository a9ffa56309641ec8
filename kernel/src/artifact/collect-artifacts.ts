import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Digest } from "@cookie-agent/sdk/protocol";
import { hasCode } from "../support/has-code.ts";
import { MAX_OUTPUT_MANIFEST_BYTES, parseManifest } from "./artifact-manifest.ts";

const ARTIFACT_NAME = /^[0-9a-f]{64}$/;
/** An artifact is this old before it can be collected: whoever stored it has named it in a log by then. */
export const COLLECTION_GRACE_MS = 60 * 60 * 1000;

export interface CollectionRequest {
  readonly directory: string;
  /** Other directories whose manifests may name artifacts of this one. */
  readonly manifestDirectories: readonly string[];
  /** Left out whatever their age: they are being published, or are known to be referred to. */
  isExempt(digest: Digest): boolean;
  /** Which of these are referred to. A rejection leaves everything as it is. */
  mentioned(candidates: ReadonlySet<Digest>): Promise<ReadonlySet<Digest>>;
}

export interface Collected {
  readonly removed: readonly Digest[];
  /** Old artifacts that stay because they are referred to; logs only grow, so they are for good. */
  readonly live: readonly Digest[];
}

/** Removes the old artifacts of one directory that nothing refers to, directly or through a manifest (S-110). */
export async function collectArtifacts(request: CollectionRequest): Promise<Collected> {
  const { directory } = request;
  const isOld = (stats: fs.Stats | undefined) =>
    stats?.isFile() === true && stats.mtimeMs < Date.now() - COLLECTION_GRACE_MS;
  const candidates = new Set(
    artifactsIn(directory).filter((digest) => {
      if (request.isExempt(digest)) return false;
      return isOld(fs.lstatSync(join(directory, digest), { throwIfNoEntry: false }));
    }),
  );
  if (candidates.size === 0) return { removed: [], live: [] };
  const live = new Set(await request.mentioned(candidates));
  await followManifests(request, candidates, live);
  const removed = [...candidates].filter(
    (digest) => !live.has(digest) && !request.isExempt(digest) && remove(directory, digest, isOld),
  );
  return { removed, live: [...live].filter((digest) => candidates.has(digest)) };
}

/** What stays keeps what it names, until nothing is added. */
async function followManifests(
  { directory, manifestDirectories }: CollectionRequest,
  candidates: ReadonlySet<Digest>,
  live: Set<Digest>,
): Promise<void> {
  const followed = new Set<string>();
  for (let grown = true; grown; ) {
    grown = false;
    for (const place of [directory, ...manifestDirectories]) {
      for (const digest of artifactsIn(place)) {
        const isDoomed = place === directory && candidates.has(digest) && !live.has(digest);
        const path = join(place, digest);
        if (isDoomed || followed.has(path)) continue;
        followed.add(path);
        for (const named of await streamsOf(path)) {
          if (live.has(named)) continue;
          live.add(named);
          grown = true;
        }
      }
    }
  }
}

async function streamsOf(path: string): Promise<Digest[]> {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile() || stats.size > MAX_OUTPUT_MANIFEST_BYTES) return [];
  return parseManifest(await readFile(path))?.map(({ sha256 }) => sha256) ?? [];
}

/** Puts it aside first: whoever stores the same content meanwhile either makes it young or writes it anew. */
function remove(
  directory: string,
  digest: Digest,
  isOld: (stats: fs.Stats | undefined) => boolean,
): boolean {
  const path = join(directory, digest);
  // A crash in between leaves a temporary, which is swept like any other.
  const aside = join(directory, `.${digest}.${randomUUID()}.tmp`);
  try {
    fs.renameSync(path, aside);
    if (isOld(fs.lstatSync(aside))) {
      fs.rmSync(aside);
      return true;
    }
    if (fs.existsSync(path)) fs.rmSync(aside);
    else fs.renameSync(aside, path);
  } catch (error) {
    if (!hasCode(error, "ENOENT", "EACCES", "EPERM", "EBUSY", "EROFS")) throw error;
  }
  return false;
}

function artifactsIn(directory: string): Digest[] {
  try {
    return fs.readdirSync(directory).filter((name): name is Digest => ARTIFACT_NAME.test(name));
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
