import { StringDecoder } from "node:string_decoder";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Utf8Stream } from "../../../../kernel/src/artifact/utf8-stream.ts";
import { sha256Hex } from "../../../../kernel/src/support/digest.ts";
import { createStore, LIMITS, SINGLE, startCapture } from "./artifact-fixture.ts";

const { store } = await createStore();

/** Bytes that are nearly UTF-8: whole characters, their beginnings, stray bytes. */
const bytes = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 4 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 3 }).map((each) => Buffer.from(each)),
      fc
        .constantFrom(
          "f09f8daa",
          "f09f8d",
          "f09f",
          "e28294",
          "e282",
          "eda080",
          "c0af",
          "f5",
          "f8",
          "80",
          "0a",
        )
        .map((hex) => Buffer.from(hex, "hex")),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Buffer.concat(parts));
const cuts = fc.array(fc.nat(), { maxLength: 12 });

function cutAt(whole: Buffer, at: readonly number[]): Buffer[] {
  const edges = [0, ...at.map((each) => each % (whole.length + 1)), whole.length];
  edges.sort((a, b) => a - b);
  return edges.slice(1).map((end, i) => whole.subarray(edges[i] ?? 0, end));
}

describe("bytes as UTF-8", () => {
  test("[E-101] however they are cut, they come out as if all were decoded at once", () => {
    fc.assert(
      fc.property(bytes, cuts, (whole, at) => {
        const stream = new Utf8Stream();
        const parts = cutAt(whole, at).map((part) => Buffer.from(stream.write(part)));
        expect(Buffer.concat([...parts, stream.end()]).toString("hex")).toBe(
          Buffer.from(whole.toString("utf8")).toString("hex"),
        );
        expect(parts.every((part) => part.toString("utf8") === repaired(part))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("[E-101] [T-131] raw or decoded by the plugin, the artifact and what is shown are the same", async () => {
    await fc.assert(
      fc.asyncProperty(bytes, cuts, fc.nat(60), async (whole, at, maxRetainedBytes) => {
        const limits = { ...LIMITS, maxBytes: 20, maxRetainedBytes: 20 + maxRetainedBytes };
        const pieces = cutAt(whole, at);
        const decoder = new StringDecoder("utf8");
        const texts = [...pieces.map((piece) => decoder.write(piece)), decoder.end()];
        const raw = await captured(
          pieces.map((piece) => [piece]),
          limits,
        );
        expect(raw).toEqual(await captured(texts, limits));
      }),
      { numRuns: 60 },
    );
  });

  test("[E-104] the cap may be reached inside raw bytes: what fits is kept, to the last character", async () => {
    const running = startCapture(store, SINGLE, { maxRetainedBytes: 10 });
    const euros = Buffer.from("€€€€");
    await expect(
      running.write(null, [euros.subarray(0, 5), euros.subarray(5)]),
    ).rejects.toMatchObject({ code: "resource_limit" });
    const { rendered } = await running.finish({ incomplete: true });
    expect(rendered).toBe("€€€");
  });

  test("[E-101] a character that was begun ends where text follows", async () => {
    const running = startCapture(store, SINGLE);
    await running.write(null, [Buffer.from([0x61, 0xe2, 0x82])]);
    await running.write(null, "b");
    await running.write(null, [Buffer.from([0xac, 0xe2])]);
    expect((await running.finish({ incomplete: false })).rendered).toBe("a\ufffdb\ufffd\ufffd");
  });
});

const repaired = (part: Buffer) => Buffer.from(part.toString("utf8")).toString("utf8");

/** How a call ends whose output comes in these pieces. */
async function captured(pieces: readonly (string | Buffer[])[], limits: typeof LIMITS) {
  const kept: Buffer[] = [];
  const running = startCapture(store, SINGLE, limits, (_, parts) => {
    kept.push(...parts.map((part) => Buffer.from(part)));
  });
  const write = async () => {
    for (const piece of pieces) await running.write(null, piece);
    return running.finish({ incomplete: false });
  };
  let failure: string | undefined;
  const end = await write().catch((error: unknown) => {
    failure = isCookieError(error) ? error.code : String(error);
    return running.finish({ incomplete: true });
  });
  expect(end.retained.streams[0]?.sha256).toBe(sha256Hex(Buffer.concat(kept)));
  return { ...end, failure };
}
