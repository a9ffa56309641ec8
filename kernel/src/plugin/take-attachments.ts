import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  CookieError,
  type SessionId,
  type ToolCallResult,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import { requireAttachable } from "./artifact-rights.ts";
import type { CallContext } from "./host-services.ts";
import { storeScratch } from "./store-scratch.ts";

export type AnsweredAttachment = NonNullable<ToolCallResult["attachments"]>[number];

/**
 * The attachments of an answer, every one of them an artifact that the plugin may have (E-110). A scratch file is taken
 * away once it is stored: the plugin is not told when that is. Rejects with what keeps the first one from it, and with
 * `cancelled`: all of them may be gigabytes.
 */
export async function takeAttachments(
  attachments: readonly AnsweredAttachment[],
  plugin: {
    readonly context: CallContext & { readonly rootSessionId: SessionId };
    readonly tier: TrustTier;
    readonly scratch: string;
    readonly artifacts: ArtifactStore;
  },
  signal: AbortSignal,
): Promise<AnsweredAttachment[]> {
  const { context, tier, scratch, artifacts } = plugin;
  const taken: AnsweredAttachment[] = [];
  const stored = new Map<string, string>();
  for (const { artifact, scratch: name, ...facts } of attachments) {
    if (signal.aborted) throw new CookieError("cancelled", "the call was cancelled");
    if (artifact !== undefined) {
      requireAttachable(context, artifact, tier);
      taken.push({ ...facts, artifact });
    } else if (name !== undefined) {
      const uri =
        stored.get(name) ??
        (await storeScratch(artifacts, context.rootSessionId, scratch, name)).uri;
      stored.set(name, uri);
      taken.push({ ...facts, artifact: uri });
    }
  }
  // One that cannot be removed is removed with the directory.
  await Promise.all(
    [...stored.keys()].map((name) => rm(join(scratch, name)).catch(() => undefined)),
  );
  return taken;
}
