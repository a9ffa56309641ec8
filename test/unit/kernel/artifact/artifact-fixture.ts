import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OutputDeclaration } from "@cookie-agent/sdk/protocol";
import { SessionId } from "@cookie-agent/sdk/protocol";
import { afterAll } from "vitest";
import type { ArtifactStore } from "../../../../kernel/src/artifact/artifact-store.ts";
import { type OnKept, OutputCapture } from "../../../../kernel/src/artifact/capture-output.ts";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";

export const ROOT = SessionId.parse("0198c000-0000-7000-8000-000000000001");
export const OTHER_ROOT = SessionId.parse("0198c000-0000-7000-8000-000000000002");
export const LIMITS = { maxLines: 2000, maxBytes: 51_200, maxRetainedBytes: 268_435_456 };
export const SINGLE: OutputDeclaration = { mode: "single" };
export const BASH: OutputDeclaration = { mode: "named", streams: ["stdout", "stderr"] };

/** A store of one project with two session trees, removed after the file's tests. */
export async function createStore(): Promise<{ store: ArtifactStore; storeDir: string }> {
  const storeDir = await mkdtemp(join(tmpdir(), "cookie-artifacts-"));
  afterAll(() => rm(storeDir, { recursive: true, force: true }));
  await mkdir(join(storeDir, ROOT));
  await mkdir(join(storeDir, OTHER_ROOT));
  return { store: createLocalArtifactStore({ storeDir }), storeDir };
}

export function startCapture(
  store: ArtifactStore,
  output: OutputDeclaration,
  limits: Partial<typeof LIMITS> = {},
  onKept: OnKept = () => undefined,
): OutputCapture {
  return new OutputCapture({
    store,
    rootId: ROOT,
    output,
    limits: { ...LIMITS, ...limits },
    onKept,
  });
}
