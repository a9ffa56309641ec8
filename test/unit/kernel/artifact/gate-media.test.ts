import { describe, expect, test } from "vitest";
import { gateCounts, gateMedia } from "../../../../kernel/src/artifact/gate-media.ts";
import type { MediaRoom, MediaTarget } from "../../../../kernel/src/config/media-target.ts";
import { findAdaptor } from "../../../../kernel/src/model/adaptors/registry.ts";
import { mediaTargetOf } from "../../../../kernel/src/model/media-target-of.ts";

const MIB = 1024 * 1024;
const KINDS = [
  ["image", "image/png"],
  ["pdf", "application/pdf"],
  ["video", "video/mp4"],
  ["audio", "audio/wav"],
] as const;

function targetWith(image: Partial<MediaRoom>): MediaTarget {
  const room: MediaRoom = {
    mimeTypes: ["image/png"],
    maxBytes: 10,
    maxCount: 2,
    delivery: { placement: "tool_result", maxBytes: 10 },
    ...image,
  };
  return { model: "custom.test/m", family: "wire", kinds: new Map([["image", room]]) };
}

const png = (byteLength: number) => ({ kind: "image", mime: "image/png", byteLength }) as const;
const failure = (act: () => unknown) => {
  try {
    act();
    return null;
  } catch (error) {
    return error;
  }
};

describe("the gates of media", () => {
  test("[T-156] the model's capability is asked before the family, and each refusal names who refused", () => {
    const target = targetWith({ delivery: null });
    const clip = { kind: "video", mime: "video/mp4", byteLength: 1 } as const;
    const model = failure(() => gateMedia(target, clip));
    expect(model).toMatchObject({ code: "media_model" });
    expect(String(model)).toMatch(/custom\.test\/m.*video/);
    const mime = failure(() => gateMedia(target, { ...png(1), mime: "image/gif" }));
    expect(mime).toMatchObject({ code: "media_model" });
    const family = failure(() => gateMedia(target, png(1)));
    expect(family).toMatchObject({ code: "media_family" });
    expect(String(family)).toContain("wire");
    expect(failure(() => gateMedia(target, png(11)))).toMatchObject({ code: "media_size" });
  });

  test("the smaller of both size limits counts, to the byte", () => {
    const narrowFamily = targetWith({ delivery: { placement: "user_turn", maxBytes: 5 } });
    expect(gateMedia(narrowFamily, png(5))).toBe("user_turn");
    expect(failure(() => gateMedia(narrowFamily, png(6)))).toMatchObject({ code: "media_size" });
    const narrowModel = targetWith({ maxBytes: 4 });
    expect(gateMedia(narrowModel, png(4))).toBe("tool_result");
    expect(failure(() => gateMedia(narrowModel, png(5)))).toMatchObject({ code: "media_size" });
  });

  test("one result may hold what a request may hold, and no more", () => {
    const target = targetWith({});
    expect(failure(() => gateCounts(target, ["image", "image"]))).toBeNull();
    expect(failure(() => gateCounts(target, ["image", "image", "image"]))).toMatchObject({
      code: "media_count",
    });
  });

  test.for([
    ["anthropic", ["tool_result", "tool_result", null, null], 7.5 * MIB],
    ["anthropic-compatible", ["tool_result", "tool_result", null, null], 7.5 * MIB],
    ["openai-responses", ["tool_result", "tool_result", null, null], 20 * MIB],
    ["openai-chat", ["user_turn", "user_turn", null, null], 20 * MIB],
    ["openai-compatible", ["user_turn", "user_turn", null, null], 20 * MIB],
  ] as const)("%s carries what its wire has room for", ([id, placements, imageBytes]) => {
    const adaptor = findAdaptor(id);
    if (adaptor === undefined) throw new Error("no such adaptor");
    const media = new Map(
      KINDS.map(([kind, mime]) => [kind, { mimeTypes: [mime], maxBytes: 100 * MIB, maxCount: 1 }]),
    );
    const capabilities = { ...EVERYTHING, media };
    const target = mediaTargetOf({ key: "custom.test/m", adaptor, capabilities });
    const found = KINDS.map(([kind, mime]) => {
      const error = failure(() => gateMedia(target, { kind, mime, byteLength: 1 }));
      return error === null ? gateMedia(target, { kind, mime, byteLength: 1 }) : null;
    });
    expect(found).toEqual(placements);
    expect(failure(() => gateMedia(target, png(imageBytes)))).toBeNull();
    expect(failure(() => gateMedia(target, png(imageBytes + 1)))).toMatchObject({
      code: "media_size",
    });
  });
});

const EVERYTHING = {
  input: ["text", "image", "audio", "pdf", "video"],
  contextTokens: 1000,
  outputTokens: 100,
  toolCalling: true,
  parallelToolCalls: true,
  structuredOutput: false,
  reasoning: false,
  temperature: false,
  topP: false,
  seed: false,
} as const;
