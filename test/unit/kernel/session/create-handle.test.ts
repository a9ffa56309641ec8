import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createHandle } from "../../../../kernel/src/session/create-handle.ts";

describe("a session's handle", () => {
  test.for([
    ["default", /^default_[0-9a-f]{8}$/],
    ["code-reviewer-with-a-long-name", /^code-reviewer-wi_[0-9a-f]{8}$/],
    ["fifteen-letters-and-more", /^fifteen-letters_[0-9a-f]{8}$/],
    ["-", /^a_[0-9a-f]{8}$/],
  ] as const)("[S-013] of agent %s is its slug and eight hex digits", ([agent, handle]) => {
    expect(createHandle(agent)).toMatch(handle);
  });

  test("[S-013] never ends its slug in a hyphen and never exceeds 25 characters", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]+(?:-[a-z0-9]+){0,6}$/), (agent) => {
        expect(createHandle(agent)).toMatch(/^[a-z0-9-]{0,15}[a-z0-9]_[0-9a-f]{8}$/);
      }),
    );
  });
});

describe("[S-014] among the handles of a tree", () => {
  test("one that is taken is drawn again", () => {
    const draws = ["00000001", "00000002", "00000003"];
    const taken = new Set(["explore_00000001", "explore_00000002"]);
    expect(createHandle("explore", taken, () => draws.shift() ?? "")).toBe("explore_00000003");
  });

  test("sixteen draws that are all taken are an error that says so", () => {
    let draws = 0;
    const draw = () => {
      draws += 1;
      return "00000001";
    };
    expect(() => createHandle("explore", new Set(["explore_00000001"]), draw)).toThrow(
      /no free handle .* 16 draws/,
    );
    expect(draws).toBe(16);
  });
});
