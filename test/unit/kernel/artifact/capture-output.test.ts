import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { ArtifactStore } from "../../../../kernel/src/artifact/artifact-store.ts";
import { readArtifactPage } from "../../../../kernel/src/artifact/read-artifact.ts";
import { sha256Hex } from "../../../../kernel/src/support/digest.ts";
import { BASH, createStore, ROOT, SINGLE, startCapture } from "./artifact-fixture.ts";

const { store, storeDir } = await createStore();

function numberedLines(count: number): string {
  return Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("");
}

async function capture(output: typeof SINGLE, writes: [string | null, string][], limits = {}) {
  const running = startCapture(store, output, limits);
  for (const [stream, text] of writes) await running.write(stream, text);
  return running.finish({ incomplete: false });
}

describe("capture of a call's output", () => {
  test("[T-133] an untruncated single result is published in full", async () => {
    const { rendered, retained } = await capture(SINGLE, [[null, "two\nlines"]]);
    const sha256 = sha256Hex("two\nlines");
    expect({ rendered, retained }).toEqual({
      rendered: "two\nlines",
      retained: {
        reference: `artifact://sha256/${sha256}`,
        incomplete: false,
        streams: [
          {
            name: null,
            reference: `artifact://sha256/${sha256}`,
            sha256,
            byte_length: 9,
            line_count: 2,
            truncated: false,
            next_offset: null,
            next_byte: null,
          },
        ],
      },
    });
    await expect(readFile(join(storeDir, ROOT, "artifacts", sha256), "utf8")).resolves.toBe(
      "two\nlines",
    );
  });

  test("[T-131] the digest is that of all pieces in order", async () => {
    const { retained } = await capture(SINGLE, [
      [null, "one\n"],
      [null, "é two\n"],
      [null, "three"],
    ]);
    const sha256 = sha256Hex("one\né two\nthree");
    expect(retained.streams[0]).toMatchObject({ sha256, byte_length: 16, line_count: 3 });
    await expect(readFile(join(storeDir, ROOT, "artifacts", sha256), "utf8")).resolves.toBe(
      "one\né two\nthree",
    );
  });

  test("[T-136] [T-137] [S-118] [B059] a hint gives exact omitted counts and where to go on", async () => {
    const text = numberedLines(2312);
    const { rendered } = await capture(SINGLE, [[null, text]]);
    const shown = numberedLines(2000);
    expect(rendered).toBe(
      `${shown}[Truncated: 312 lines, ${text.length - shown.length} bytes omitted. Read more: read(filePath="artifact://${sha256Hex(text)}", offset=2000)]`,
    );
  });

  test("[T-136] [T-137] a line shown in part counts as omitted and the hint names its byte", async () => {
    const { rendered } = await capture(SINGLE, [[null, "one\ntwo three\n"]], { maxBytes: 7 });
    expect(rendered).toBe(
      `one\ntwo\n[Truncated: 1 lines, 7 bytes omitted. Read more: read(filePath="artifact://${sha256Hex("one\ntwo three\n")}", offset=1, byte=3)]`,
    );
  });

  test("[T-138] named streams follow the declaration, empty ones with a heading", async () => {
    const { rendered } = await capture(BASH, [["stdout", "out\n"]]);
    expect(rendered).toBe("[stdout]\nout\n\n[stderr]\n");
  });

  test.for([
    ["a", "b", "[stdout]\na\n\n[stderr]\nb"],
    ["a\n", "", "[stdout]\na\n\n[stderr]\n"],
    ["a\n\n", "b\n", "[stdout]\na\n\n[stderr]\nb\n"],
    ["", "b", "[stdout]\n\n[stderr]\nb"],
  ] as const)(
    "[T-138] one blank line stands before a heading after %j",
    async ([out, err, rendered]) => {
      const result = await capture(BASH, [
        ["stderr", err],
        ["stdout", out],
      ]);
      expect(result.rendered).toBe(rendered);
    },
  );

  test("[T-136] [T-139] [T-143] hints of named streams go through the manifest", async () => {
    const stdout = numberedLines(2001);
    const { rendered, retained } = await capture(BASH, [["stdout", stdout]]);
    const manifest = retained.reference.slice("artifact://sha256/".length);
    expect(rendered).toContain(`read(filePath="artifact://${manifest}/stdout", offset=2000)]`);
    await expect(
      readArtifactPage(store, ROOT, { uri: `artifact://${manifest}/stdout`, offset: 2000 }),
    ).resolves.toEqual({
      text: "line 2001\n",
      next_offset: null,
      next_byte: null,
      total_lines: 2001,
      total_bytes: stdout.length,
      source: "artifact.stdout",
    });
    const json = await readArtifactPage(store, ROOT, { uri: `artifact://${manifest}` });
    expect(JSON.parse(json.text)).toEqual({ streams: retained.streams });
  });

  test("[T-133] empty declared streams are published too", async () => {
    const { retained } = await capture(BASH, []);
    expect(retained.streams.map((stream) => [stream.name, stream.line_count])).toEqual([
      ["stdout", 0],
      ["stderr", 0],
    ]);
    const opened = await store.open(ROOT, sha256Hex(""));
    expect(opened.byteLength).toBe(0);
    await opened.close();
  });

  test("[T-134] [T-135] [S-118] the byte limit of a stream is its share of the whole", async () => {
    const streams = ["a", "b", "c", "d", "e", "f", "g", "h"];
    const running = startCapture(
      store,
      { mode: "named", streams },
      { maxBytes: 100_000_000, maxLines: 100_000_000 },
    );
    for (const stream of streams) await running.write(stream, "x".repeat(300_000));
    const { rendered, retained } = await running.finish({ incomplete: false });
    expect(retained.streams.map(({ next_byte }) => next_byte)).toEqual(
      streams.map(() => Math.floor((2 * 1024 * 1024 - 16 * 1024) / 8)),
    );
    expect(Buffer.byteLength(rendered)).toBeLessThanOrEqual(2 * 1024 * 1024);
  });

  test("[T-131] [E-104] [S-253] the cap ends the call and what was accepted is kept", async () => {
    const running = startCapture(store, SINGLE, { maxRetainedBytes: 7 });
    await running.write(null, "abcd");
    await expect(running.write(null, "ééé")).rejects.toSatisfy((e) =>
      isCookieError(e, "resource_limit"),
    );
    await expect(running.write(null, "x")).rejects.toSatisfy((e) =>
      isCookieError(e, "resource_limit"),
    );
    expect(running.acceptedBytes).toBe(6);
    const { rendered, retained } = await running.finish({ incomplete: true });
    expect([rendered, retained.incomplete]).toEqual(["abcdé", true]);
  });

  test("[T-132] after a write error the accepted beginning survives and completion is refused", async () => {
    const failing = failAfter(store, 1);
    const running = startCapture(failing, SINGLE);
    await running.write(null, "kept\n");
    await expect(running.write(null, "lost")).rejects.toSatisfy((e) =>
      isCookieError(e, "execution_failed"),
    );
    const { rendered, retained } = await running.finish({ incomplete: true });
    expect([rendered, retained.streams[0]?.byte_length]).toEqual(["kept\n", 5]);

    const refused = startCapture(failAfter(store, 0), SINGLE);
    await expect(refused.write(null, "lost")).rejects.toThrow();
    await expect(refused.finish({ incomplete: false })).rejects.toSatisfy((e) =>
      isCookieError(e, "execution_failed"),
    );
    refused.discard();
  });

  test("[T-038] a second completion is operation_changed", async () => {
    const running = startCapture(store, SINGLE);
    await running.write(null, "once");
    await running.finish({ incomplete: false });
    await expect(running.finish({ incomplete: false })).rejects.toSatisfy((e) =>
      isCookieError(e, "operation_changed"),
    );
  });

  test("[S-115] each stream shows its own 2000 lines or 51200 bytes", async () => {
    const lines = "l\n".repeat(2001);
    const { retained } = await capture(BASH, [
      ["stdout", lines],
      ["stderr", "b".repeat(51_201)],
    ]);
    expect(retained.streams).toMatchObject([
      { truncated: true, next_offset: 2000, next_byte: 0 },
      { truncated: true, next_offset: 0, next_byte: 51_200 },
    ]);
    const whole = await capture(BASH, [
      ["stdout", lines.slice(2)],
      ["stderr", "b".repeat(51_200)],
    ]);
    expect(whole.retained.streams.map(({ truncated }) => truncated)).toEqual([false, false]);
  });

  test("[T-131] captures are private files and none is left behind", async () => {
    const running = startCapture(store, BASH);
    await running.write("stdout", "x");
    const directory = join(storeDir, ROOT, "artifacts");
    const temporary = (await readdir(directory)).filter((name) => name.startsWith(".capture-"));
    expect(temporary).toEqual([expect.stringMatching(/^\.capture-[0-9a-f-]{36}-output0\.tmp$/)]);
    const { mode } = await stat(join(directory, temporary[0] ?? ""));
    expect(mode & 0o777).toBe(0o600);
    running.discard();
    expect((await readdir(directory)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test.for([
    [
      "a hundred mebibytes of short lines",
      "y\n",
      1600,
      { line_count: 52_428_800, next_offset: 2000 },
    ],
    [
      "output whose line never ends",
      "xx",
      800,
      { line_count: 1, next_offset: 0, next_byte: 51_200 },
    ],
  ] as const)(
    "[T-131] [B058] %s passes through in bounded memory",
    async ([, unit, chunks, end]) => {
      const running = startCapture(store, BASH);
      const chunk = unit.repeat(32 * 1024);
      await running.write("stdout", chunk);
      const before = process.memoryUsage.rss();
      for (let i = 1; i < chunks; i += 1) await running.write("stdout", chunk);
      const { retained } = await running.finish({ incomplete: false });
      expect(retained.streams[0]).toMatchObject({
        byte_length: chunks * chunk.length,
        truncated: true,
        ...end,
      });
      expect(process.memoryUsage.rss() - before).toBeLessThan(80 * 1024 * 1024);
    },
  );
});

/** The real store, on a disk that is full after so many appends. */
function failAfter(real: ArtifactStore, appends: number): ArtifactStore {
  return {
    put: (rootId, bytes) => real.put(rootId, bytes),
    open: (rootId, sha256) => real.open(rootId, sha256),
    locate: (rootId, digests) => real.locate(rootId, digests),
    collect: (place, mentioned) => real.collect(place, mentioned),
    release: (place) => real.release(place),
    syncNames: (rootId) => real.syncNames(rootId),
    sweepTemporaries: () => real.sweepTemporaries(),
    async beginCapture(rootId, channel) {
      const file = await real.beginCapture(rootId, channel);
      let left = appends;
      return {
        get byteLength() {
          return file.byteLength;
        },
        append(bytes) {
          left -= 1;
          if (left < 0) return Promise.reject(new Error("ENOSPC"));
          return file.append(bytes);
        },
        seal: () => file.seal(),
        publish: () => file.publish(),
        discard: () => file.discard(),
      };
    },
  };
}
