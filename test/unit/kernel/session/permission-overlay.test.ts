import type { OverlayRule } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { insertRule } from "../../../../kernel/src/session/permission-overlay.ts";

const rule = (resource: string, effect: OverlayRule["effect"] = "allow"): OverlayRule => ({
  action: "bash",
  resource,
  effect,
  source: "user",
});

describe("a session's own rules", () => {
  test("a rule for the same action and resource is replaced and comes last", () => {
    expect(insertRule([rule("a"), rule("b")], rule("a", "deny"))).toEqual([
      rule("b"),
      rule("a", "deny"),
    ]);
  });

  test("what changes nothing yields the same overlay", () => {
    const overlay = [rule("a")];
    expect(insertRule(overlay, rule("a"))).toBe(overlay);
    expect(insertRule(overlay, { ...rule("a"), source: "flag" })).not.toBe(overlay);
  });

  test("[S-151] there are at most 256", () => {
    const full = Array.from({ length: 256 }, (_, index) => rule(`r${index}`));
    expect(() => insertRule(full, rule("one more"))).toThrow(/at most 256/);
    expect(insertRule(full, rule("r0", "deny"))).toHaveLength(256);
  });
});
