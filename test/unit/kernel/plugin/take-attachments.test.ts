import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { takeAttachments } from "../../../../kernel/src/plugin/take-attachments.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { tempDirectory } from "./open-host.ts";

test("[E-110] a cancelled call imports no further file, and takes none away", async () => {
  const scratch = await tempDirectory();
  const names = ["a", "b", "c"];
  for (const name of names) await writeFile(join(scratch, name), name);
  const cancel = new AbortController();
  const store = createLocalArtifactStore({ storeDir: await tempDirectory() });
  let imports = 0;
  const artifacts = {
    put: store.put.bind(store),
    open: store.open.bind(store),
    locate: store.locate.bind(store),
    collect: store.collect.bind(store),
    release: store.release.bind(store),
    syncNames: store.syncNames.bind(store),
    sweepTemporaries: store.sweepTemporaries.bind(store),
    beginCapture: (rootId: SessionId) => {
      imports += 1;
      cancel.abort();
      return store.beginCapture(rootId);
    },
  };
  const sessionId = createId<SessionId>();
  const context = {
    plugin: "sample",
    sessionId,
    rootSessionId: sessionId,
    runId: null,
    toolCallId: null,
  };
  const taking = takeAttachments(
    names.map((name) => ({ scratch: name })),
    { context, tier: "untrusted", scratch, artifacts },
    cancel.signal,
  );
  await expect(taking).rejects.toMatchObject({ code: "cancelled" });
  expect(imports).toBe(1);
  expect(await readdir(scratch)).toEqual(names);
});
