import {
  AgentId,
  ClientKey,
  Digest,
  ModelKey,
  ProviderId,
  ProviderModelId,
  Revision,
  SafeCode,
  SessionId,
  Timestamp,
  ToolName,
  VariantId,
  WildcardPattern,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type * as z from "zod";

const x = (length: number) => "x".repeat(length);
const TYPES: [name: string, type: z.ZodType, good: string[], bad: string[]][] = [
  [
    "ids",
    SessionId,
    ["0198c000-0000-7000-8000-000000000001"],
    ["0198C000-0000-7000-8000-000000000001", "0198c000000070008000000000000001", ""],
  ],
  ["digests", Digest, ["a".repeat(64)], ["A".repeat(64), "a".repeat(63), "a".repeat(65)]],
  ["revisions", Revision, [`sha256:${"a".repeat(64)}`], ["a".repeat(64), `sha1:${"a".repeat(64)}`]],
  ["client keys", ClientKey, [x(256), "é".repeat(128)], ["", x(257), "é".repeat(129), "a\u0000"]],
  ["agent ids", AgentId, [x(64), "a-b"], ["", x(65), "-a", "a-", "a--b", "A", "a_b"]],
  ["provider ids", ProviderId, [x(128)], ["", x(129), "A"]],
  ["provider model ids", ProviderModelId, [x(384), "a/b"], ["", x(385), "a//b", "a b"]],
  ["model keys", ModelKey, [`a/${x(384)}`, "a/b/c"], ["a", "a/", "/b", `${x(128)}/${x(384)}`]],
  ["variant ids", VariantId, [x(64), "high"], ["", x(65), "base"]],
  ["tool names", ToolName, [x(64), "A-b_9"], ["", x(65), "a.b", "a b"]],
  ["safe codes", SafeCode, [x(128), "a.b-c_d"], ["", x(129), ".a", "A"]],
  [
    "patterns",
    WildcardPattern,
    [x(4096), "${workspace_dir}/*", "a?*"],
    ["", x(4097), "a\\b", "[a]", "{a}", "${home}", "a\n"],
  ],
  [
    "times",
    Timestamp,
    ["2026-01-01T00:00:00.000Z"],
    ["2026-01-01", "2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00Z"],
  ],
];

describe("scalar types", () => {
  test.for(TYPES)("the bounds of %s", ([, type, good, bad]) => {
    expect(good.filter((text) => !type.safeParse(text).success)).toEqual([]);
    expect(bad.filter((text) => type.safeParse(text).success)).toEqual([]);
  });
});
