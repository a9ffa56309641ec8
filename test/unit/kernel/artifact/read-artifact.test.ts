import { isCookieError } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ArtifactPageRequest,
  readArtifactPage,
} from "../../../../kernel/src/artifact/read-artifact.ts";
import { createStore, ROOT } from "./artifact-fixture.ts";

const { store } = await createStore();

async function stored(content: string | Uint8Array): Promise<string> {
  const { sha256 } = await store.put(ROOT, Buffer.from(content));
  return `artifact://${sha256}`;
}

async function page(content: string | Uint8Array, request: Omit<ArtifactPageRequest, "uri"> = {}) {
  return readArtifactPage(store, ROOT, { uri: await stored(content), ...request });
}

describe("reading an artifact back", () => {
  test("[T-142] [S-109] a page is an exact substring and says where the text goes on", async () => {
    await expect(page("a\r\nb\nc", { offset: 1, limit: 1 })).resolves.toEqual({
      text: "b\n",
      next_offset: 2,
      next_byte: 0,
      total_lines: 3,
      total_bytes: 6,
      source: "artifact",
    });
  });

  test("[T-142] [S-109] the limit is two thousand lines, whatever is asked for", async () => {
    const result = await page("x\n".repeat(3000), { limit: 5000 });
    expect([result.text.length, result.next_offset]).toEqual([4000, 2000]);
    await expect(page("x", { limit: 0 })).rejects.toSatisfy((e) =>
      isCookieError(e, "invalid_arguments"),
    );
  });

  test("[T-142] pages put together are the stored bytes", async () => {
    const text = fc.string({ unit: fc.constantFrom("a", "é", "😀", "\n", "\r"), maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 4 }), async (content, limit) => {
        const uri = await stored(content);
        let whole = "";
        let next: { offset: number; byte: number } | undefined = { offset: 0, byte: 0 };
        while (next) {
          const result: Awaited<ReturnType<typeof readArtifactPage>> = await readArtifactPage(
            store,
            ROOT,
            { uri, limit, ...next },
          );
          whole += result.text;
          next =
            result.next_offset === null
              ? undefined
              : { offset: result.next_offset, byte: result.next_byte ?? 0 };
        }
        expect(whole).toBe(content);
      }),
      { numRuns: 30 },
    );
  });

  test("[T-142] [B005] one line over the page bound goes on by byte, between characters", async () => {
    const line = `x${"é".repeat(1024 * 1024)}`;
    const first = await page(`${line}\nend\n`);
    expect([Buffer.byteLength(first.text), first.next_offset, first.next_byte]).toEqual([
      2 * 1024 * 1024 - 1,
      0,
      2 * 1024 * 1024 - 1,
    ]);
    const second = await page(`${line}\nend\n`, { offset: 0, byte: first.next_byte ?? 0 });
    expect(second).toMatchObject({ text: "é\nend\n", next_offset: null, next_byte: null });
  });

  test("[T-142] a byte inside a character moves back to its beginning", async () => {
    await expect(page("a😀b\n", { byte: 3 })).resolves.toMatchObject({ text: "😀b\n" });
  });

  test("[T-144] [S-109] several lines over 2 MiB fail and the message names a limit that fits", async () => {
    const line = `${"x".repeat(900_000)}\n`;
    await expect(page(line.repeat(3))).rejects.toMatchObject({
      code: "resource_limit",
      message: expect.stringContaining("limit 2") as unknown,
    });
    await expect(page(line.repeat(3), { limit: 2 })).resolves.toMatchObject({ next_offset: 2 });
  });

  test.for([
    ["past the end", "a\nb\n", { offset: 2 }, "offset 2 is past the end: the artifact has 2 lines"],
    ["past the end of nothing", "", { offset: 1 }, "the artifact has 0 lines"],
    ["past the end of a line", "ab\ncd", { byte: 3 }, "byte 3 is past the end of line 0"],
  ] as const)("[T-142] %s is execution_failed", async ([, content, request, message]) => {
    await expect(page(content, request)).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining(message) as unknown,
    });
  });

  test("[T-142] an empty artifact is an empty page", async () => {
    await expect(page("")).resolves.toMatchObject({ text: "", next_offset: null, total_lines: 0 });
  });

  test("an artifact that is not text is execution_failed", async () => {
    await expect(page(Uint8Array.of(0x89, 0x50, 0xff, 0x0a))).rejects.toMatchObject({
      code: "execution_failed",
    });
  });

  test.for([
    ["a suffix on something else", "text", "stdout"],
    ["JSON that is no manifest", '{"streams":[]}', "stdout"],
  ] as const)("[T-139] [T-143] %s is artifact_uri", async ([, content, stream]) => {
    const uri = `${await stored(content)}/${stream}`;
    await expect(readArtifactPage(store, ROOT, { uri })).rejects.toMatchObject({
      code: "artifact_uri",
    });
  });

  test("[T-143] a stream that the manifest does not declare is artifact_uri", async () => {
    const { sha256 } = await store.put(ROOT, Buffer.from("out"));
    const stream = {
      name: "stdout",
      reference: `artifact://sha256/${sha256}`,
      sha256,
      byte_length: 3,
      line_count: 1,
      truncated: false,
      next_offset: null,
      next_byte: null,
    };
    const uri = await stored(JSON.stringify({ streams: [stream] }));
    await expect(readArtifactPage(store, ROOT, { uri: `${uri}/stdout` })).resolves.toMatchObject({
      text: "out",
    });
    await expect(readArtifactPage(store, ROOT, { uri: `${uri}/stderr` })).rejects.toMatchObject({
      code: "artifact_uri",
    });
  });
});
