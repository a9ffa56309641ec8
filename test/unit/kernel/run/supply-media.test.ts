import type { Digest, ToolAttachment } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import type { MediaTarget } from "../../../../kernel/src/config/media-target.ts";
import type { HistoryMessage, SuppliedMedia } from "../../../../kernel/src/model/bound-model.ts";
import { PromptMapper } from "../../../../kernel/src/model/map-prompt.ts";
import { supplyMedia } from "../../../../kernel/src/run/supply-media.ts";

const MIB = 1024 * 1024;
const NOTHING: SuppliedMedia = new Map();
const NONE: ReadonlySet<ToolAttachment> = new Set();

function imageOf(name: string, byteLength = 1): ToolAttachment {
  const sha256 = name.charCodeAt(0).toString(16).padStart(64, "0") as Digest;
  const reference = `artifact://sha256/${sha256}`;
  return { mime_type: "image/png", filename: name, byte_length: byteLength, sha256, reference };
}

function resultOf(...attachments: ToolAttachment[]): HistoryMessage {
  const result = { callId: "c", name: "show", output: "shown", isError: false, details: null };
  return { role: "tool", results: [{ ...result, attachments, additional: [] }] };
}

function targetOf(
  maxCount: number,
  placement: "tool_result" | "user_turn" = "tool_result",
): MediaTarget {
  const delivery = { placement, maxBytes: 20 * MIB };
  const room = { mimeTypes: ["image/png"], maxBytes: 20 * MIB, maxCount, delivery };
  return { model: "custom.test/m", family: "wire", kinds: new Map([["image", room]]) };
}

/** Everything can be had; what was loaded is noted. */
function storeOf() {
  const loaded: Digest[] = [];
  const load = async (sha256: Digest) => {
    loaded.push(sha256);
    return Buffer.from("bytes");
  };
  return { loaded, load };
}

const kindsOf = (supplied: SuppliedMedia, parts: readonly ToolAttachment[]) =>
  parts.map((part) => supplied.get(part)?.kind);

test("[T-158] of each kind the newest parts go along, up to the model's count", async () => {
  const parts = ["a", "b", "c"].map((name) => imageOf(name));
  const history = parts.map((part) => resultOf(part));
  const supplied = await supplyMedia(history, targetOf(2), storeOf().load, NOTHING, NONE);
  expect(kindsOf(supplied, parts)).toEqual(["note", "media", "media"]);
});

test("all media of a request stay within 32 MiB, the newest first", async () => {
  const parts = ["a", "b", "c"].map((name) => imageOf(name, 16 * MIB));
  const supplied = await supplyMedia(
    [resultOf(...parts)],
    targetOf(9),
    storeOf().load,
    NOTHING,
    NONE,
  );
  expect(kindsOf(supplied, parts)).toEqual(["note", "media", "media"]);
});

test("what went out before is not loaded again, until it has to stand elsewhere", async () => {
  const part = imageOf("a");
  const history = [resultOf(part)];
  const { load, loaded } = storeOf();
  const first = await supplyMedia(history, targetOf(1), load, NOTHING, NONE);
  const second = await supplyMedia(history, targetOf(1), load, first, NONE);
  expect(second.get(part)).toBe(first.get(part));
  expect(loaded).toHaveLength(1);
  const moved = await supplyMedia(history, targetOf(1, "user_turn"), load, second, NONE);
  expect(moved.get(part)).toMatchObject({ placement: "user_turn" });
});

test("a prompt keeps its messages while the same media are supplied, and maps anew what others are", async () => {
  const old = resultOf(imageOf("a"));
  const { load } = storeOf();
  const mapper = new PromptMapper({
    modelKey: "custom.test/m",
    metadataKey: "x",
    replayKey: "x",
    plainReasoning: false,
    portableIds: false,
  });
  const first = await supplyMedia([old], targetOf(1), load, NOTHING, NONE);
  const before = mapper.map("", [old], first);
  const again = await supplyMedia([old], targetOf(1), load, first, NONE);
  expect(mapper.map("", [old], again)[0]).toBe(before[0]);
  const history = [old, resultOf(imageOf("b"))];
  const later = mapper.map("", history, await supplyMedia(history, targetOf(1), load, again, NONE));
  expect(JSON.stringify(before[0])).toContain("image-data");
  expect(JSON.stringify(later[0])).toContain("left out");
  expect(JSON.stringify(later[1])).toContain("image-data");
});
