import { expect, test } from "vitest";
import { inspectMedia } from "../../../../kernel/src/artifact/inspect-media.ts";
import { isoOf, pngOf } from "../../../support/media-files.ts";
import { createStore, ROOT } from "./artifact-fixture.ts";

const MIB = 1024 * 1024;

/** A whole PNG of exactly so many bytes. */
function pngOfBytes(byteLength: number): Buffer {
  const overhead = pngOf(2, 2, 1).byteLength - 1;
  return pngOf(2, 2, byteLength - overhead);
}

function padded(head: Buffer, byteLength: number): Buffer {
  const file = Buffer.alloc(byteLength);
  head.copy(file);
  return file;
}

test.for([
  ["an image of 20 MiB", pngOfBytes(20 * MIB), true],
  ["an image of a byte more", pngOfBytes(20 * MIB + 1), false],
  ["audio of 20 MiB", padded(Buffer.from("OggS"), 20 * MIB), true],
  ["audio of a byte more", padded(Buffer.from("OggS"), 20 * MIB + 1), false],
  ["a video of 25 MiB", padded(isoOf("isom"), 25 * MIB), true],
  ["a video of a byte more", padded(isoOf("isom"), 25 * MIB + 1), false],
] as const)("[T-155] %s", async ([, bytes, fits]) => {
  const { store } = await createStore();
  const { sha256 } = await store.put(ROOT, bytes);
  const inspected = inspectMedia(store, ROOT, { sha256 });
  if (fits) await expect(inspected).resolves.toMatchObject({ byteLength: bytes.byteLength });
  else await expect(inspected).rejects.toMatchObject({ code: "media_size" });
});
