import type { SessionId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { publicArtifactUri } from "../../../../kernel/src/artifact/artifact-uri.ts";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { attachMedia } from "../../../../kernel/src/tool/attach-media.ts";
import { pngOf } from "../../../support/media-files.ts";
import { tempDirectory } from "../plugin/open-host.ts";

test("[E-111] of hundreds of images no more are read than it takes to see that they are too many", async () => {
  const store = createLocalArtifactStore({ storeDir: await tempDirectory() });
  const rootSessionId = createId<SessionId>();
  const { sha256 } = await store.put(rootSessionId, pngOf(2, 2));
  let opened = 0;
  const counting = {
    put: store.put.bind(store),
    beginCapture: store.beginCapture.bind(store),
    locate: store.locate.bind(store),
    collect: store.collect.bind(store),
    release: store.release.bind(store),
    syncNames: store.syncNames.bind(store),
    sweepTemporaries: store.sweepTemporaries.bind(store),
    open: (...of: Parameters<typeof store.open>) => {
      opened += 1;
      return store.open(...of);
    },
  };
  const room = {
    mimeTypes: ["image/png"],
    maxBytes: 1024,
    maxCount: 2,
    delivery: { placement: "tool_result", maxBytes: 1024 },
  } as const;
  const target = { model: "m", family: "f", kinds: new Map([["image" as const, room]]) };
  const context = {
    sessionId: rootSessionId,
    rootSessionId,
    runId: createId<never>(),
    cwd: "/",
    workspaceRoot: "/",
    session: {
      media: () => target,
      mayRead: () => false,
      info: () => {
        throw new Error("nobody asks");
      },
    },
  };
  const attachments = Array.from({ length: 256 }, () => ({ artifact: publicArtifactUri(sha256) }));
  await expect(attachMedia(attachments, "show", context, counting)).rejects.toMatchObject({
    code: "media_count",
  });
  expect(opened).toBe(3);
});
